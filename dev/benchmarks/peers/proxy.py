# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "django>=5.2,<7",
#     "django-ratelimit>=4.1,<5",
#     "flask-limiter>=4.1,<5",
#     "requests>=2.32",
# ]
# ///
"""A proxy that flask-limiter or django-ratelimit protects: `proxy.py flask|django PORT API`."""

import sys

import django.conf
import django.urls
import flask
import flask_limiter
import requests
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse
from django_ratelimit.decorators import ratelimit

app = flask.Flask(__name__)
limiter = flask_limiter.Limiter(
    lambda: flask.request.headers["Authorization"],
    app=app,
    default_limits=["60 per 6 seconds"],
    strategy="moving-window",
    headers_enabled=True,
    storage_uri="memory://",
)
django.conf.settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    # One process, whose threads share the count.
    SILENCED_SYSTEM_CHECKS=["django_ratelimit.E003", "django_ratelimit.W001"],
)


def answer(path: str, key: str) -> requests.Response:
    """Pass a request on to the API."""
    return requests.get(sys.argv[3] + path, headers={"Authorization": key}, timeout=60)


@app.route("/<path:_>")  # type: ignore[untyped-decorator]
def through_flask(_: str) -> flask.Response:
    """Answer what flask-limiter lets through."""
    found = answer(flask.request.full_path, flask.request.headers["Authorization"])
    return flask.Response(found.content, found.status_code, content_type="application/json")


@ratelimit(key="header:authorization", rate="60/6s")  # type: ignore[untyped-decorator]
def through_django(request: HttpRequest) -> HttpResponse:
    """Answer what django-ratelimit lets through."""
    found = answer(request.get_full_path(), request.headers["Authorization"])
    return HttpResponse(found.content, status=found.status_code, content_type="application/json")


urlpatterns = [django.urls.re_path("", through_django)]

if __name__ == "__main__":
    if sys.argv[1] == "flask":
        app.run(port=int(sys.argv[2]), threaded=True)
    else:
        execute_from_command_line(["", "runserver", "--noreload", sys.argv[2]])
