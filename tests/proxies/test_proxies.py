"""The proxies of docs/set-up/webhooks.md, as the page configures them, in front of a receiver.

`uv run pytest tests/proxies` runs it; it needs Caddy and nginx.
"""

import contextlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from e2e.pipeline import environment, listening
from public_jobs_receiver.payload import LARGEST_BODY
from raw_server import unused_port
from receiver.conftest import NOTED, NOTIFICATION, TOKEN, post, serving

from tap_public_jobs.notification_log import NotificationLog

PAGE = (Path(__file__).parents[2] / "docs/set-up/webhooks.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```(?:nginx)?\n( +(?:\{|server ).*?) +```", PAGE, re.DOTALL)
CADDY, NGINX = map(textwrap.dedent, SNIPPETS)


@contextlib.contextmanager
def proxied(name: str, folder: Path, backend: str) -> Iterator[str]:
    """Run a proxy, without TLS and with its output in a file."""
    with unused_port() as port:
        if name == "caddy":
            command = "caddy run --adapter caddyfile --config conf"
            text = CADDY.replace("hooks.example.com", f"http://127.0.0.1:{port}")
            text = text.replace("{", "{\n admin off", 1)
        else:
            command = "nginx -p . -e output -c conf"
            text = re.sub("ssl_.*;", "", NGINX).replace("443 ssl", f"127.0.0.1:{port}")
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            paths = "".join(f"{kind}_temp_path {kind};" for kind in kinds)
            text = f"http {{ access_log output; {paths} {text} }}"
            text = f"user root; daemon off; pid pid; events {{}} {text}"
        (folder / "conf").write_text(text.replace("127.0.0.1:8080", backend))
        with listening(command.split(), port, folder, environment()):
            yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("name", ["caddy", "nginx"])
def test_a_proxy_passes_on_hooks_alone_and_logs_no_token(name: str, tmp_path: Path) -> None:
    """A typo in the portal must not look healthy."""
    log = NotificationLog(f"sqlite:///{tmp_path / 'changes.db'}")
    log.append({log.name: []})
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    largest = NOTIFICATION.ljust(LARGEST_BODY)
    with unused_port() as port, proxied(name, tmp_path, f"127.0.0.1:{port}") as url:
        hook = f"{url}/hooks/{TOKEN}"
        in_header = {"X-Token": TOKEN}  # as the setting PUBLIC_JOBS_WEBHOOK_TOKEN_HEADER allows
        # The proxy logs errors.
        assert [post(hook)[0], post(f"{url}/hooks", **in_header)[0]] == [502, 502]
        with serving(log, port=port):
            assert [post(hook), post(f"{hook}/"), post(hook, largest)] == [NOTED] * 3
            assert [post(f"{url}/hooks{it}", **bearer) for it in ("", "/")] == [NOTED] * 2
            assert requests.get(hook, {"challenge": "a b"}, timeout=60).text == "a b"
            before = log.read()
            paths = ("", "hook", "Hooks", "hooksx", "api/hooks", "health", "hooks/../health")
            typos = {path: post(f"{url}/{path}/{TOKEN}", **bearer)[0] for path in paths}
            assert typos == dict.fromkeys(paths, 404)
            assert [post(f"{url}/{it}", **bearer)[0] for it in ("", "health")] == [404] * 2
            large = [largest + b" ", largest * 40, iter([largest, b" "])]
            assert [post(hook, it)[0] for it in large] == [413] * 3
            assert log.read() == before

    assert TOKEN not in (tmp_path / "output").read_text(errors="replace")
