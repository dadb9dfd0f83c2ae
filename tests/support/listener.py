"""An address that listens to alerts and pings."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer


@contextmanager
def hearing(take: Callable[[str, bytes], None]) -> Iterator[str]:
    """Hand over the path and the body of each request; yields the address, without its scheme."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            take(self.path, self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")  # what Slack answers

        do_GET = do_POST  # noqa: N815  # the base class calls it

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
