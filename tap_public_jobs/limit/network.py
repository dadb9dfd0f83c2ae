"""Why the tap cannot reach the API, and which setting or variable to correct."""

import socket
import ssl

from requests.exceptions import InvalidSchema, InvalidURL, ProxyError

# Why a host cannot be reached, and what to correct, by the type of the error or of its cause.
# These reasons last until somebody corrects them.
_LASTING: dict[type[Exception], str] = {
    InvalidURL: "an address is wrong. Correct HTTPS_PROXY, ALL_PROXY, or the port in base_url.",
    InvalidSchema: "the proxy is no HTTP proxy. Correct HTTPS_PROXY or ALL_PROXY.",
}
# In a first run these do, too; once the API has answered, they may pass. The empty one always may.
_OF_A_FIRST_RUN: dict[type[Exception], str] = {
    ProxyError: "the proxy did not connect to it. Correct HTTPS_PROXY, or set NO_PROXY.",
    ssl.SSLCertVerificationError: "its certificate is not trusted. If a proxy decrypts TLS, or "
    "your own authority signed it, set REQUESTS_CA_BUNDLE to that authority's certificate.",
    ssl.SSLEOFError: "",
    ssl.SSLError: "it does not answer with TLS. Correct base_url, or its port.",
    socket.gaierror: "its name is unknown. Correct base_url, or set HTTPS_PROXY if you need it.",
    ConnectionRefusedError: "nothing listens at that port. Is the API up? If so, correct base_url.",
}


def why_unreachable(error: Exception, cause: BaseException, *, has_answered: bool) -> str:
    """Say why a host cannot be reached, and what to correct; empty if that may pass."""
    if type(error) is OSError:  # of requests, about a path
        return "certificates are not found. Correct REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE."
    if getattr(cause, "library", "SSL") in {"PEM", "X509"}:  # about a file, and not the server
        return (
            "a file has no certificates in PEM form. Correct REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE."
        )
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN:
        return ""  # the name server is busy
    reasons = _LASTING if has_answered else _LASTING | _OF_A_FIRST_RUN
    found = (reasons[it] for it in reasons if isinstance(error, it) or isinstance(cause, it))
    return next(found, "")
