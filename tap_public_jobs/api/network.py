"""What keeps the tap from reaching a host, and the variable or setting that mends it."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path

from requests.exceptions import InvalidSchema, InvalidURL, ProxyError

# In the order in which requests prefers them.
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def wrong_variable(error: Exception, verify: object) -> str:
    """Name the variable that no request can work with; empty if there is none.

    Args:
        error: What a request failed with.
        verify: The path of a file or folder with certificates, if one is set.
    """
    if isinstance(error, InvalidURL | InvalidSchema):  # base_url is checked before
        rule = "must be the address of an HTTP proxy, such as http://proxy.example.com:3128."
        return f"{_set_one(PROXIES)} {rule}"
    try:
        if isinstance(verify, str) and not Path(verify).is_dir():
            ssl.create_default_context(cafile=verify)
    except OSError:
        return f"{_set_one(BUNDLES)} must be a file with certificates in PEM form: {verify!r}."
    return ""


def why_unreachable(error: Exception, cause: BaseException, said: str) -> str:
    """Say why a host that has never answered cannot be reached, and the remedy; empty if unclear.

    Args:
        error: What a request failed with.
        cause: The first cause of that.
        said: Its message.
    """
    if isinstance(error, ProxyError):
        remedy = f"Correct {_set_one(PROXIES)}, or add the host to NO_PROXY."
        return f"the proxy did not connect to it ({said}). {remedy}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({said}). If a proxy decrypts TLS, or your own "
            "authority signed it, set REQUESTS_CA_BUNDLE to a file with that authority's "
            "certificate."
        )
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
        return f"it does not answer with TLS ({said}). Correct base_url and its port."
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
        return f"its name is unknown ({said}). Correct base_url, or set HTTPS_PROXY if you need it."
    if isinstance(cause, ConnectionRefusedError):
        return f"nothing listens at that port ({said}). Is the API up? If so, correct base_url."
    return ""


def _set_one(names: tuple[str, ...]) -> str:
    return next((name for name in names if os.environ.get(name)), names[0].upper())
