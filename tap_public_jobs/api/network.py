"""What keeps the tap from reaching a host, and the variable or setting that mends it."""

import os
import socket
import ssl
from pathlib import Path

from requests.exceptions import InvalidSchema, InvalidURL, ProxyError


def wrong_variable(error: Exception, verify: object) -> str:
    """Name the variable that lets no request succeed; empty if there is none."""
    if isinstance(error, InvalidURL | InvalidSchema):  # base_url is checked before
        return (
            f"{_proxy()} must be the address of an HTTP proxy, such as http://a.example.com:3128."
        )
    try:
        if isinstance(verify, str) and not Path(verify).is_dir():
            ssl.create_default_context(cafile=verify)
    except OSError:
        name = _first_set("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
        return f"{name} must be a file with certificates in PEM form: {verify!r}."
    return ""


def why_unreachable(error: Exception, cause: BaseException) -> tuple[str, str]:
    """Say why a host cannot be reached, and the remedy; both are empty if that is unclear."""
    if isinstance(error, ProxyError):
        return (
            "the proxy did not connect to it",
            f"Correct {_proxy()}, or add the host to NO_PROXY.",
        )
    if isinstance(cause, ssl.SSLCertVerificationError):
        remedy = "If a proxy decrypts TLS, or your own authority signed it, set REQUESTS_CA_BUNDLE"
        return "its certificate is not trusted", f"{remedy} to that authority's certificate."
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return "it does not answer with TLS", "Correct base_url and its port."
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
        return "its name is unknown", "Correct base_url, or set HTTPS_PROXY if you need it."
    if isinstance(cause, ConnectionRefusedError):
        return "nothing listens at that port", "Is the API up? If so, correct base_url."
    return "", ""


def _proxy() -> str:
    return _first_set("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def _first_set(*names: str) -> str:
    return next((name for name in names if os.environ.get(name)), names[0].upper())
