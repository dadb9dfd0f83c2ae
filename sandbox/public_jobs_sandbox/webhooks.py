"""Sends webhooks to a receiver whenever a job changes (*Events*).

The API page documents no payloads, headers, retries or order.
They are all options (see `Options`), so that tests can show that a receiver relies on none of them.
"""

import hashlib
import hmac
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Queue
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import requests

from public_jobs_sandbox.options import Options
from public_jobs_sandbox.organisations import to_json
from public_jobs_sandbox.postings import Job

logger = logging.getLogger(__name__)


class Event(NamedTuple):
    """A change of a job: the name of the event, and the job after the change."""

    name: str
    job: Job


def _flat(event: Event) -> object:
    return {"event": event.name, "publicId": event.job["publicId"]}


def _nested(event: Event) -> object:
    job = {"publicId": event.job["publicId"], "jobTitle": event.job.get("jobTitle")}
    return {"type": event.name, "data": {"job": job}}


PAYLOADS: dict[str, Callable[[Event], object]] = {
    "flat": _flat,
    "nested": _nested,
    "batch": _flat,
    "job": lambda event: event.job,
    "renamed": lambda event: {"event": event.name, "job_slug": event.job["publicId"]},
    "internal_id": lambda event: {"event": event.name, "jobId": event.job.get("id")},
}
"""The body for one event, by the name of the payload; `batch` sends a list of bodies."""


@dataclass
class Delivery:
    """A message to the receiver, and the outcome of each try.

    Attributes:
        options: The options of the sandbox when the change was made.
        body: The JSON to send, the same in every try.
        answers: For each try the status, or the kind of error if there was no response.
    """

    options: Options = field(repr=False)
    body: bytes
    answers: list[int | str] = field(default_factory=list)

    @property
    def arrived(self) -> bool:
        """Whether the last try was answered with 2xx."""
        return bool(self.answers) and self.answers[-1] in range(200, 300)

    def post(self, session: requests.Session) -> int | str:
        """Try once, and return the status or the kind of error."""
        headers = {"Content-Type": "application/json", "User-Agent": "public-jobs-sandbox"}
        if self.options.webhook_secret is not None:
            key = self.options.webhook_secret.encode()
            digest = hmac.new(key, self.body, hashlib.sha256).hexdigest()
            headers[self.options.webhook_signature_header] = f"sha256={digest}"
        try:
            response = session.post(
                self.options.webhook_url or "",
                data=self.body,
                headers=headers,
                timeout=self.options.webhook_timeout,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            # Its text contains the path of the URL, which is a secret of the receiver.
            return type(error).__name__
        return response.status_code


class Webhooks:
    """Sends deliveries one at a time from a thread, which starts with the first change.

    Any thread may call any method.

    Args:
        wait: Waits for the given seconds before a retry; the default wait ends on `close`.
        seed: Determines the order within `webhook_window`.

    Attributes:
        deliveries: Every delivery so far, in the order of their first tries.
    """

    def __init__(self, *, wait: Callable[[float], object] | None = None, seed: int = 1) -> None:
        self.deliveries: list[Delivery] = []
        self._stopping = threading.Event()
        self._wait = wait or self._stopping.wait
        self._random = Random(seed)  # noqa: S311 - an order, not a secret
        self._lock = threading.Lock()
        self._held: list[Event] = []
        self._options = Options()
        self._queue: Queue[Delivery | None] = Queue()
        self._thread: threading.Thread | None = None

    def send(self, event: Event, options: Options) -> None:
        """Send an event once the window is full, if the options name a receiver."""
        if options.webhook_url is None:
            return
        with self._lock:
            self._options = options
            self._held.append(event)
            if len(self._held) >= options.webhook_window:
                self._release()

    def flush(self) -> None:
        """Send what is held back, and wait until no delivery is left to try."""
        with self._lock:
            self._release()
        self._queue.join()

    def close(self) -> None:
        """Send what is left without pauses or further retries, and end the thread."""
        with self._lock:
            self._release()
            if self._thread is None:
                return
            self._stopping.set()
            self._queue.join()
            self._queue.put(None)
            self._thread.join()
            self._thread = None
            self._stopping.clear()

    def _release(self) -> None:
        """Queue what is held back; the caller holds the lock."""
        if not self._held:
            return
        deliveries = [
            Delivery(self._options, body)
            for body in _bodies(self._held, self._options.webhook_payload)
            for _ in range(self._options.webhook_copies)
        ]
        self._held = []
        self._random.shuffle(deliveries)
        self.deliveries += deliveries
        for delivery in deliveries:
            self._queue.put(delivery)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with requests.Session() as session:
            session.trust_env = False  # no proxy between the sandbox and its receiver
            for delivery in iter(self._queue.get, None):
                self._try(delivery, session)
                self._queue.task_done()
        self._queue.task_done()

    def _try(self, delivery: Delivery, session: requests.Session) -> None:
        """Try a delivery; one that fails goes to the end of the queue, behind newer ones."""
        delivery.answers.append(delivery.post(session))
        if delivery.arrived:
            return
        pauses = delivery.options.webhook_pauses
        tries = len(delivery.answers)
        if tries > len(pauses) or self._stopping.is_set():
            host = urlsplit(delivery.options.webhook_url or "").hostname
            logger.warning(
                "Gave up on a webhook to %s after these answers: %s", host, delivery.answers
            )
            return
        self._wait(pauses[tries - 1])
        self._queue.put(delivery)


def _bodies(events: Sequence[Event], payload: str) -> list[bytes]:
    bodies = [PAYLOADS[payload](event) for event in events]
    return [to_json(bodies)] if payload == "batch" else [to_json(body) for body in bodies]
