"""What an error of the network says, and which setting or variable to correct."""

import re
import socket
import ssl

from requests.exceptions import InvalidSchema, InvalidURL, ProxyError

from tap_public_jobs.lines import shortened

# Why a host cannot be reached, and what to correct, by the type of the error or of its cause.
_REASONS: dict[type[Exception], str] = {
    InvalidURL: "an address is wrong: correct HTTPS_PROXY, ALL_PROXY, or the port in base_url",
    InvalidSchema: "the proxy is no HTTP proxy: correct HTTPS_PROXY or ALL_PROXY",
    ProxyError: "the proxy did not connect to it: correct HTTPS_PROXY, or set NO_PROXY",
    ssl.SSLCertVerificationError: "its certificate is not trusted: if a proxy decrypts TLS, or "
    "your own authority signed it, set REQUESTS_CA_BUNDLE to that authority's certificate",
    ssl.SSLError: "it does not answer with TLS: correct base_url, or its port",
    socket.gaierror: "its name is unknown: correct base_url, or set HTTPS_PROXY if you need it",
    ConnectionRefusedError: "nothing listens at that port: if it is up, correct base_url",
}
_NO_CERTIFICATES = (
    "certificates are not found: set REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE to a file of "
    "certificates in PEM form"
)


def describe(error: Exception) -> tuple[str, str]:
    """Say what an error of the network means.

    Returns:
        Its innermost cause in one line; and why the host cannot be reached, and what to correct, or
        nothing if that is not known.
    """
    cause: BaseException = error
    # The messages of requests and urllib3 name objects in memory. Behind a proxy, urllib3 keeps
    # what it wraps only as an argument.
    while inner := cause.__cause__ or cause.__context__ or _wrapped(cause):
        cause = inner
    # Without the password of a proxy.
    said = shortened(re.sub("//.*@", "//…@", " ".join(str(cause).split())), 200)
    # An OSError alone is of requests, about a path; these libraries are about a file.
    if type(error) is OSError or getattr(cause, "library", None) in {"PEM", "X509"}:
        return said, _NO_CERTIFICATES
    found = (_REASONS[it] for it in _REASONS if isinstance(error, it) or isinstance(cause, it))
    # An address that is wrong may have a password in any part.
    return "" if isinstance(error, ValueError) else said, next(found, "")


def _wrapped(error: BaseException) -> BaseException | None:
    return next((each for each in error.args if isinstance(each, BaseException)), None)
