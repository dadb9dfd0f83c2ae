"""What a failed connection means, in words."""

from __future__ import annotations

import socket
import ssl


def root_cause(error: BaseException) -> BaseException:
    """Undo the nesting of requests and urllib3, whose own messages name objects in memory."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def lasting_fault(cause: BaseException, host: str) -> str | None:
    """Describe a fault that another try would meet again; None for any other."""
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
        return f"there is no host {host}"
    if isinstance(cause, ConnectionRefusedError):
        return f"{host} refuses connections"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}; if your own authority "
            "signed it, set REQUESTS_CA_BUNDLE)"
        )
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return f"{host} does not speak https"
    return None
