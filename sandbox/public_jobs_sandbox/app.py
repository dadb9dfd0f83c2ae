"""The two operations of the API page as a Starlette application."""

import email.utils
import math
import re
import time
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Message, Receive, Scope, Send

from public_jobs_sandbox import openapi
from public_jobs_sandbox.faults import KINDS, client_left
from public_jobs_sandbox.organisations import Organisation, to_json
from public_jobs_sandbox.paging import OutOfBoundsError, Page
from public_jobs_sandbox.state import Sandbox, SeenRequest

JOBS_PATH = "/api/public/v1/jobs"

Operation = Callable[[Organisation, SeenRequest, str], Response]


def make_app(sandbox: Sandbox) -> Starlette:
    """Return the application: the paths of the API page (*Endpoints*), and `/openapi.json`."""
    api = _Api(sandbox)
    jobs = re.escape(sandbox.options.path_prefix + JOBS_PATH)
    return Starlette(
        routes=[
            Route("/openapi.json", _openapi(sandbox.options.path_prefix)),
            _RawRoute(f"{jobs}/(?P<public_id>[^/]+)", api.serving(api.get_job)),
            _RawRoute(jobs, api.serving(api.list_jobs)),
            _RawRoute(".*", api.serving(None)),
        ]
    )


class _RawRoute(BaseRoute):
    """Matches the path as it was sent.

    Starlette matches the decoded path, in which the `%2F` of a publicId is a separator.
    """

    def __init__(
        self, pattern: str, app: Callable[[Scope, Receive, Send], Awaitable[None]]
    ) -> None:
        self._pattern = re.compile(pattern.encode())
        self._app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found = scope["type"] == "http" and self._pattern.fullmatch(scope["raw_path"])
        if not found:
            return Match.NONE, {}
        return Match.FULL, {"path_params": found.groupdict()}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _Api:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def serving(self, operation: Operation | None) -> Callable[..., Awaitable[None]]:
        """Return the application for one operation, or for unknown paths if there is none."""
        sandbox = self._sandbox

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_and_log(message: Message) -> None:
                if message["type"] == "http.response.start":
                    request.status = message["status"]
                await send(message)

            options = sandbox.options
            request = sandbox.see(
                scope["method"],
                scope["raw_path"].decode(),
                dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True)),
                {name.decode(): value.decode("latin-1") for name, value in scope["headers"]},
            )
            jitter = sandbox.random.uniform(0, options.jitter)
            delay = options.latency + jitter
            before = options.latency / 2 + sandbox.random.uniform(0, jitter)
            if delay and await client_left(receive, within=before):
                return
            answer = self._answer(operation, request, scope)
            if delay and await client_left(receive, within=delay - before):
                return
            if isinstance(answer, str):
                await KINDS[answer](options, scope, receive, send_and_log)
            else:
                await answer(scope, receive, send_and_log)

        return app

    def _answer(
        self, operation: Operation | None, request: SeenRequest, scope: Scope
    ) -> Response | str:
        """Return the response to a request, or the kind of fault to produce instead."""
        if operation is None:
            return _error(404, "Not found")
        if request.method != "GET":
            return _error(405, "Method not allowed", allow="GET")
        admitted = self._admit(request)
        if not isinstance(admitted, Organisation):
            return admitted
        public_id = scope["path_params"].get("public_id", b"")
        return operation(admitted, request, unquote(public_id.decode()))

    def _admit(self, request: SeenRequest) -> Organisation | Response | str:
        """Return the organisation of a request, its error, or the kind of its fault.

        The checks have the order of a gateway in front of a service: key, limit, plan.
        """
        key = self._key(request.headers)
        organisation = self._sandbox.owner_of(key)
        if key is None or organisation is None:
            return _error(401, "API key missing, malformed or revoked")
        request.organisation = organisation.name
        wait = self._sandbox.count(request, key)
        if wait is not None:
            return self._rejection(wait)
        if fault := self._sandbox.take_fault(request):
            return fault
        if not organisation.plan_includes_api:
            return _error(403, "The plan does not include the public API")
        return organisation

    def _key(self, headers: dict[str, str]) -> str | None:
        """Return the key from either header (*Authentication*, 3)."""
        authorization = headers.get("authorization")
        x_api_key = headers.get("x-api-key")
        if authorization is None:
            return x_api_key
        scheme, _, bearer = authorization.partition(" ")
        key = bearer if scheme == "Bearer" else None
        if x_api_key is None or key == x_api_key:
            return key
        if self._sandbox.options.both_headers == "reject":
            return None
        return key if self._sandbox.options.both_headers == "authorization" else x_api_key

    def _rejection(self, wait: float) -> Response:
        """Return the response to a request over the rate limit (*Errors*)."""
        options = self._sandbox.options
        headers: dict[str, str] = {}
        if options.retry_after == "seconds":
            headers["retry-after"] = str(math.ceil(wait))
        elif options.retry_after == "date":
            date = math.ceil(time.time() + wait)
            headers["retry-after"] = email.utils.formatdate(date, usegmt=True)
        elif options.retry_after is not None:
            headers["retry-after"] = options.retry_after
        return _error(options.rejection_status, "Rate limit exceeded", **headers)

    def list_jobs(self, organisation: Organisation, request: SeenRequest, _: str) -> Response:
        """Return one page of summaries (*List published jobs*)."""
        options = self._sandbox.options
        try:
            page = Page.from_query(request.query, options)
        except OutOfBoundsError as error:
            return _error(400, str(error))
        postings = organisation.published()
        if options.order == "newest_first":
            postings.reverse()
        elif options.order == "shuffled":
            self._sandbox.random.shuffle(postings)
        total = len(postings) if options.total == "exact" else options.total
        summaries = [posting.summary_json() for posting in page.of(postings)]
        return _json(
            b'{"data":[%b],"page":%d,"pageSize":%d,"total":%d}'
            % (b",".join(summaries), page.number, page.size, total)
        )

    def get_job(self, organisation: Organisation, _: SeenRequest, public_id: str) -> Response:
        """Return one job in full (*Get a single published job*).

        The lookup sees only published jobs of the organisation.
        So the 404 is the same for unknown, unpublished and other organisations' jobs (rule 1).
        """
        posting = organisation.find(public_id)
        if posting is None:
            return _error(404, "Not found")
        return _json(posting.detail_json(self._sandbox.options))


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")


def _error(status: int, message: str, **headers: str) -> Response:
    return _json(to_json({"error": message}), status, headers)


def _openapi(path_prefix: str) -> Callable[[object], Response]:
    body = to_json(openapi.load() | {"servers": [{"url": path_prefix or "/"}]})
    return lambda _: _json(body)
