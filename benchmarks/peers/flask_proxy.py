# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "flask-limiter>=4.1,<5",
#     "requests>=2.32",
# ]
# ///
"""A proxy that flask-limiter protects: `flask_proxy.py PORT API`."""

import sys

import requests
from flask import Flask, Response, request
from flask_limiter import Limiter

app = Flask(__name__)
limiter = Limiter(
    lambda: request.headers["Authorization"],
    app=app,
    default_limits=["60 per 6 seconds"],
    strategy="moving-window",
    headers_enabled=True,
    storage_uri="memory://",
)


@app.route("/<path:_>")  # type: ignore[untyped-decorator]
def forward(_: str) -> Response:
    """Pass a request on to the API."""
    headers = {"Authorization": request.headers["Authorization"]}
    answer = requests.get(sys.argv[2] + request.full_path, headers=headers, timeout=60)
    return Response(answer.content, answer.status_code, content_type="application/json")


if __name__ == "__main__":
    app.run(port=int(sys.argv[1]), threaded=True)
