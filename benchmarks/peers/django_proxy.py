# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "django>=5.2,<7",
#     "django-ratelimit>=4.1,<5",
#     "requests>=2.32",
# ]
# ///
"""A proxy that django-ratelimit protects: `django_proxy.py PORT API`."""

import sys

import requests
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse
from django.urls import re_path
from django_ratelimit.decorators import ratelimit

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    # One process, whose threads share the count.
    SILENCED_SYSTEM_CHECKS=["django_ratelimit.E003", "django_ratelimit.W001"],
)


@ratelimit(key="header:authorization", rate="60/6s")  # type: ignore[untyped-decorator]
def forward(request: HttpRequest) -> HttpResponse:
    """Pass a request on to the API."""
    headers = {"Authorization": request.headers["Authorization"]}
    answer = requests.get(sys.argv[2] + request.get_full_path(), headers=headers, timeout=60)
    return HttpResponse(answer.content, status=answer.status_code, content_type="application/json")


urlpatterns = [re_path("", forward)]

if __name__ == "__main__":
    execute_from_command_line(["", "runserver", "--noreload", sys.argv[1]])
