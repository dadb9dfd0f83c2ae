"""The client as the tap builds it."""

from raw_server import answered, connect, plain_environment, tls

__all__ = ["answered", "connect", "plain_environment", "tls"]
