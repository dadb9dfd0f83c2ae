"""An address that listens: to alerts and pings, or to the tap."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


@contextmanager
def hearing(take: Callable[[str, bytes], tuple[int, bytes] | None]) -> Iterator[str]:
    """Hand over the path and the body of each request; yields the address, without its scheme.

    Answers with the status and the body that come back, or else as Slack does.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = take(self.path, body) or (200, b"ok")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST  # noqa: N815  # the base class calls it

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
