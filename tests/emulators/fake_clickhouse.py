"""ClickHouse over HTTP: `fake_clickhouse.py FOLDER PORT`.

chdb is the engine of ClickHouse without its server. What this server lacks: users, sessions, and
answers in parts.
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from chdb.session import Session


class ClickHouseHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        options = parse_qs(urlsplit(self.path).query)
        query = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            status, answer = 200, session.query(query, options["default_format"][0]).bytes()
        except RuntimeError as error:
            status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    session = Session(sys.argv[1])
    session.query("create database public_jobs")
    session.query("use public_jobs")
    HTTPServer(("127.0.0.1", int(sys.argv[2])), ClickHouseHandler).serve_forever()
