"""Changes of jobs are sent to a receiver, in every way that the API page leaves open."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import json
import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest
import requests
from api.raw_server import unused_port
from public_jobs_sandbox.options import Options
from public_jobs_sandbox.postings import make_jobs
from public_jobs_sandbox.server import serving
from public_jobs_sandbox.state import Sandbox
from public_jobs_sandbox.webhooks import PAYLOADS, Event, Webhooks

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = Any

JOBS = make_jobs(45)
PUBLIC_IDS = [job["publicId"] for job in JOBS]
PATH = "/hooks/a-secret-path"
UNTIL_CLOSED = 600.0


class Receiver(ThreadingHTTPServer):
    """Keeps the requests it gets, and answers with `statuses` one by one, then with 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}{PATH}"
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []

    @property
    def payloads(self) -> list[Json]:
        return [json.loads(body) for _, _, body in self.seen]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.path, headers, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        """Write nothing to stderr."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def options(receiver: Receiver) -> Options:
    return Options(limited=False, webhook_url=receiver.url, webhook_pauses=(0.0, 0.0))


@contextlib.contextmanager
def changing(options: Options, **changes: Json) -> Iterator[Sandbox]:
    """Serve a sandbox, and wait at the end until all its changes are sent."""
    sandbox = Sandbox.demo(45, options=dataclasses.replace(options, **changes))
    with serving(sandbox):
        yield sandbox
        sandbox.webhooks.flush()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "webhooks"]


def answers(sandbox: Sandbox) -> list[list[int | str]]:
    return [delivery.answers for delivery in sandbox.webhooks.deliveries]


class TestEvents:
    def test_each_change_is_sent_in_order(self, options: Options, receiver: Receiver) -> None:
        new = make_jobs(1, seed=99)[0]

        with changing(options) as sandbox:
            sandbox.publish(new)
            sandbox.publish(new | {"jobTitle": "Gardener"})
            sandbox.edit(PUBLIC_IDS[0], jobTitle="Gardener")
            sandbox.unpublish(PUBLIC_IDS[0])
            sandbox.publish(PUBLIC_IDS[0])

        assert receiver.payloads == [
            {"event": "job.published", "publicId": new["publicId"]},
            {"event": "job.updated", "publicId": new["publicId"]},
            {"event": "job.updated", "publicId": PUBLIC_IDS[0]},
            {"event": "job.unpublished", "publicId": PUBLIC_IDS[0]},
            {"event": "job.published", "publicId": PUBLIC_IDS[0]},
        ]
        assert {path for path, _, _ in receiver.seen} == {PATH}
        assert {headers["content-type"] for _, headers, _ in receiver.seen} == {"application/json"}
        assert answers(sandbox) == [[204]] * 5
        sent = [delivery.body for delivery in sandbox.webhooks.deliveries]
        assert sent == [body for _, _, body in receiver.seen]

    def test_a_change_triggered_by_a_request_is_sent_too(
        self, options: Options, receiver: Receiver
    ) -> None:
        sandbox = Sandbox.demo(45, options=options)
        sandbox.at_request(1, lambda: sandbox.unpublish(PUBLIC_IDS[3]))

        with serving(sandbox) as base_url:
            response = requests.get(
                f"{base_url}/api/public/v1/jobs/{PUBLIC_IDS[3]}",
                headers={"x-api-key": sandbox.key},
                timeout=10,
            )
            sandbox.webhooks.flush()

        assert response.status_code == 404
        assert receiver.payloads == [{"event": "job.unpublished", "publicId": PUBLIC_IDS[3]}]

    def test_edits_from_two_threads_are_both_made_and_both_sent(
        self, options: Options, receiver: Receiver
    ) -> None:
        barrier = threading.Barrier(2, timeout=0.1)

        class Meeting(dict[str, Json]):
            """A job whose editors wait for each other, unless a lock keeps one of them out."""

            def __or__(self, fields: Json) -> Json:
                with contextlib.suppress(threading.BrokenBarrierError):
                    barrier.wait()
                return super().__or__(fields)

        sandbox = Sandbox(options)
        sandbox.organisation.publish(Meeting(JOBS[0]))
        with serving(sandbox):
            editors = [
                threading.Thread(target=sandbox.edit, args=(PUBLIC_IDS[0],), kwargs={field: 1})
                for field in ("first", "second")
            ]
            for editor in editors:
                editor.start()
            for editor in editors:
                editor.join()

        job = sandbox.organisation.postings[PUBLIC_IDS[0]].job
        assert job == JOBS[0] | {"first": 1, "second": 1}
        assert receiver.payloads == [{"event": "job.updated", "publicId": PUBLIC_IDS[0]}] * 2

    def test_without_an_address_nothing_is_sent_and_no_thread_starts(self) -> None:
        with changing(Options()) as sandbox:
            sandbox.unpublish(PUBLIC_IDS[0])

            assert threads() == []
        assert sandbox.webhooks.deliveries == []

    def test_the_thread_starts_with_the_first_change_and_ends_with_the_server(
        self, options: Options, receiver: Receiver
    ) -> None:
        sandbox = Sandbox.demo(45, options=options)
        for public_id in PUBLIC_IDS[:2]:
            with serving(sandbox):
                assert threads() == []
                sandbox.unpublish(public_id)
                assert threads() == ["webhooks"]
            assert threads() == []

        assert [event["publicId"] for event in receiver.payloads] == PUBLIC_IDS[:2]


class TestPayloads:
    @pytest.mark.parametrize(
        ("payload", "body"),
        [
            ("flat", {"event": "job.updated", "publicId": PUBLIC_IDS[0]}),
            (
                "nested",
                {
                    "type": "job.updated",
                    "data": {"job": {"publicId": PUBLIC_IDS[0], "jobTitle": "Gärtner"}},
                },
            ),
            ("batch", [{"event": "job.updated", "publicId": PUBLIC_IDS[0]}]),
            ("job", JOBS[0] | {"jobTitle": "Gärtner"}),
            ("renamed", {"event": "job.updated", "job_slug": PUBLIC_IDS[0]}),
            ("internal_id", {"event": "job.updated", "jobId": JOBS[0]["id"]}),
        ],
    )
    def test_shape(self, options: Options, receiver: Receiver, payload: str, body: Json) -> None:
        with changing(options, webhook_payload=payload) as sandbox:
            sandbox.edit(PUBLIC_IDS[0], jobTitle="Gärtner")

        assert receiver.payloads == [body]

    def test_every_payload_has_a_shape(self) -> None:
        assert get_args(get_type_hints(Options)["webhook_payload"]) == tuple(PAYLOADS)

    def test_a_batch_holds_several_changes(self, options: Options, receiver: Receiver) -> None:
        with changing(options, webhook_payload="batch", webhook_window=2) as sandbox:
            for public_id in PUBLIC_IDS[:3]:
                sandbox.unpublish(public_id)

        assert [[event["publicId"] for event in batch] for batch in receiver.payloads] == [
            PUBLIC_IDS[:2],
            PUBLIC_IDS[2:3],
        ]

    def test_a_signature_covers_the_body(self, options: Options, receiver: Receiver) -> None:
        with changing(options, webhook_secret="wéss") as sandbox:  # noqa: S106  # of this test
            sandbox.edit(PUBLIC_IDS[0], jobTitle="Gärtner")

        ((_, headers, body),) = receiver.seen
        digest = hmac.new("wéss".encode(), body, hashlib.sha256).hexdigest()
        assert headers["x-hub-signature-256"] == f"sha256={digest}"

    def test_the_header_of_the_signature_can_be_chosen(
        self, options: Options, receiver: Receiver
    ) -> None:
        with changing(options, webhook_secret="s", webhook_signature_header="X-Sign") as sandbox:  # noqa: S106
            sandbox.unpublish(PUBLIC_IDS[0])

        ((_, headers, _),) = receiver.seen
        assert headers["x-sign"].startswith("sha256=")
        assert "x-hub-signature-256" not in headers

    def test_without_a_secret_nothing_is_signed(self, options: Options, receiver: Receiver) -> None:
        with changing(options) as sandbox:
            sandbox.unpublish(PUBLIC_IDS[0])

        ((_, headers, _),) = receiver.seen
        assert "x-hub-signature-256" not in headers


class TestOrder:
    def test_each_delivery_is_sent_as_often_as_configured(
        self, options: Options, receiver: Receiver
    ) -> None:
        with changing(options, webhook_copies=3) as sandbox:
            sandbox.unpublish(PUBLIC_IDS[0])
            sandbox.unpublish(PUBLIC_IDS[1])

        public_ids = [event["publicId"] for event in receiver.payloads]
        assert public_ids == [PUBLIC_IDS[0]] * 3 + [PUBLIC_IDS[1]] * 3

    def test_a_window_shuffles_the_same_way_for_the_same_seed(
        self, options: Options, receiver: Receiver
    ) -> None:
        runs: list[list[str]] = []
        for _ in range(2):
            receiver.seen.clear()
            with changing(options, webhook_window=8, webhook_copies=2) as sandbox:
                for public_id in PUBLIC_IDS[:8]:
                    sandbox.unpublish(public_id)
            runs.append([event["publicId"] for event in receiver.payloads])

        in_order = sorted(PUBLIC_IDS[:8] * 2, key=PUBLIC_IDS.index)
        assert sorted(runs[0], key=PUBLIC_IDS.index) == in_order
        assert runs[0] != in_order
        assert runs[0] == runs[1]

    def test_a_window_that_is_not_full_is_held_back_until_the_end(
        self, options: Options, receiver: Receiver
    ) -> None:
        sandbox = Sandbox.demo(45, options=dataclasses.replace(options, webhook_window=3))
        with serving(sandbox):
            sandbox.unpublish(PUBLIC_IDS[0])
            assert sandbox.webhooks.deliveries == []

        assert receiver.payloads == [{"event": "job.unpublished", "publicId": PUBLIC_IDS[0]}]


class TestRetries:
    @pytest.mark.parametrize("status", [302, 404, 500])
    def test_a_delivery_that_is_not_answered_with_2xx_is_sent_again(
        self, options: Options, receiver: Receiver, status: int
    ) -> None:
        receiver.statuses = [status, 503, 200]

        with changing(options) as sandbox:
            sandbox.unpublish(PUBLIC_IDS[0])

        (delivery,) = sandbox.webhooks.deliveries
        assert delivery.answers == [status, 503, 200]
        assert delivery.arrived
        assert receiver.payloads == [{"event": "job.unpublished", "publicId": PUBLIC_IDS[0]}] * 3

    def test_newer_deliveries_pass_one_that_failed(self, receiver: Receiver) -> None:
        options = Options(webhook_url=receiver.url)
        receiver.statuses = [500]
        both_queued = threading.Event()
        webhooks = Webhooks(wait=lambda _: both_queued.wait())

        webhooks.send(Event("first", JOBS[0]), options)
        webhooks.send(Event("second", JOBS[1]), options)
        both_queued.set()
        webhooks.flush()
        webhooks.close()

        assert [event["event"] for event in receiver.payloads] == ["first", "second", "first"]

    def test_retries_wait_as_configured_and_then_end(
        self, receiver: Receiver, caplog: pytest.LogCaptureFixture
    ) -> None:
        receiver.statuses = [500, 501, 502, 503]
        pauses: list[float] = []
        webhooks = Webhooks(wait=pauses.append)
        options = Options(webhook_url=receiver.url, webhook_pauses=(1.5, 3.0))

        with caplog.at_level(logging.INFO):
            webhooks.send(Event("job.updated", JOBS[0]), options)
            webhooks.flush()
            webhooks.close()

        (delivery,) = webhooks.deliveries
        assert delivery.answers == [500, 501, 502]
        assert not delivery.arrived
        assert pauses == [1.5, 3.0]
        assert caplog.messages == [
            "Gave up on a webhook to 127.0.0.1 after these answers: [500, 501, 502]"
        ]

    def test_a_receiver_that_is_down_is_tried_again_and_its_path_appears_nowhere(
        self, options: Options, caplog: pytest.LogCaptureFixture
    ) -> None:
        with unused_port() as port, caplog.at_level(logging.INFO):
            url = f"http://127.0.0.1:{port}{PATH}"
            with changing(options, webhook_url=url, webhook_secret="s3cr3t") as sandbox:  # noqa: S106
                sandbox.unpublish(PUBLIC_IDS[0])

        assert answers(sandbox) == [["ConnectionError"] * 3]
        shown = f"{caplog.text} {sandbox.webhooks.deliveries} {sandbox.options}"
        assert "Gave up" in shown
        assert PATH not in shown
        assert "s3cr3t" not in shown

    def test_a_receiver_that_does_not_answer_in_time_is_tried_again(self, options: Options) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
            with changing(options, webhook_url=url, webhook_timeout=0.05) as sandbox:
                sandbox.unpublish(PUBLIC_IDS[0])

        assert answers(sandbox) == [["ReadTimeout"] * 3]

    def test_stopping_the_server_ends_a_pause(self, options: Options, receiver: Receiver) -> None:
        receiver.statuses = [500, 500, 500]
        options = dataclasses.replace(options, webhook_pauses=(UNTIL_CLOSED, UNTIL_CLOSED))
        sandbox = Sandbox.demo(45, options=options)

        with serving(sandbox):
            sandbox.unpublish(PUBLIC_IDS[0])

        (delivery,) = sandbox.webhooks.deliveries
        assert delivery.answers in ([500], [500, 500]), "a second try only if it was pausing"
        assert threads() == []


@pytest.mark.parametrize("url", ["127.0.0.1:9000/a-secret-path", "ftp://127.0.0.1/", "http:///x"])
def test_an_address_that_cannot_be_posted_to_is_refused(url: str) -> None:
    words = "^webhook_url must begin with http:// or https:// and name a host$"
    with pytest.raises(ValueError, match=words):
        Options(webhook_url=url)
