"""The two operations of the API page as an ASGI application."""

import json
import math
import re
from urllib.parse import parse_qsl, unquote

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from public_jobs_sandbox.faults import client_left
from public_jobs_sandbox.state import Organisation, Sandbox, SeenRequest

JOBS_PATH = "/api/public/v1/jobs"
DEFAULT_PAGE_SIZE = 20
MAXIMUM_PAGE_SIZE = 100


def make_app(sandbox: Sandbox) -> ASGIApp:
    """Return the application, which serves the paths of the API page (*Endpoints*)."""
    # The path as it was sent: in the decoded path, the `%2F` of a publicId is a separator.
    jobs_path = re.compile(re.escape(sandbox.options.path_prefix + JOBS_PATH) + "(/[^/]+)?")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_log(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
            await send(message)

        request = sandbox.see(
            scope["method"],
            scope["raw_path"].decode(),
            dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True)),
            {name.decode(): value.decode("latin-1") for name, value in scope["headers"]},
        )
        options = sandbox.options
        jitter = sandbox.random.uniform(0, options.jitter)
        delay = options.latency + jitter
        before = options.latency / 2 + sandbox.random.uniform(0, jitter)
        if delay and await client_left(receive, within=before):
            return
        answer = _answer(sandbox, request, jobs_path)
        if delay and await client_left(receive, within=delay - before):
            return
        await answer(scope, receive, send_and_log)

    return app


def _answer(sandbox: Sandbox, request: SeenRequest, jobs_path: re.Pattern[str]) -> ASGIApp:
    """Return the response to a request, or the fault to produce instead.

    The checks have the order of a gateway in front of a service: path, key, limit, then the rest.
    """
    path = jobs_path.fullmatch(request.path)
    if path is None:
        return _error(404, "Not found")
    if request.method != "GET":
        return _error(405, "Method not allowed", allow="GET")
    key = _key(request.headers)
    organisation = sandbox.owner_of(key)
    if organisation is None:
        return _error(401, "API key missing, malformed or revoked")
    request.organisation = organisation.name
    wait = sandbox.count(key)
    if wait is not None:
        return _rejection(sandbox.options.reject_with, wait)
    return sandbox.take_fault(request) or _operation(organisation, request, path[1])


def _operation(organisation: Organisation, request: SeenRequest, detail: str | None) -> Response:
    if not organisation.plan_includes_api:
        return _error(403, "The plan does not include the public API")
    if detail:
        return _detail(organisation, unquote(detail.removeprefix("/")))
    return _list(organisation, request.query)


def _key(headers: dict[str, str]) -> str:
    """Return the key from either header (*Authentication*, 3)."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer if scheme == "Bearer" else headers.get("x-api-key", "")


def _rejection(reject_with: str, wait: float) -> Response:
    """Return the response to a request over the rate limit (*Errors*)."""
    status, _, header = reject_with.replace("{}", str(math.ceil(wait))).partition(" ")
    name, _, value = header.partition(": ")
    return _error(int(status), "Rate limit exceeded", **({name: value} if name else {}))


def _list(organisation: Organisation, query: dict[str, str]) -> Response:
    """Return one page of summaries (*List published jobs*)."""
    number = _parameter(query, "page", default=1)
    size = _parameter(query, "pageSize", default=DEFAULT_PAGE_SIZE, most=MAXIMUM_PAGE_SIZE)
    if number is None or size is None:
        return _error(400, "page or pageSize is not a whole number within its bounds")
    postings = organisation.published()
    summaries = [it.summary_json() for it in postings[(number - 1) * size : number * size]]
    return _json(
        b'{"data":[%b],"page":%d,"pageSize":%d,"total":%d}'
        % (b",".join(summaries), number, size, len(postings))
    )


def _parameter(
    query: dict[str, str], name: str, *, default: int, most: float = math.inf
) -> int | None:
    """Return a number from the query; None if it is out of bounds."""
    text = query.get(name, str(default))
    # int() also accepts digits of other scripts, and rejects very long numbers.
    value = int(text) if re.fullmatch("[0-9]{1,1000}", text) else 0
    return value if 1 <= value <= most else None


def _detail(organisation: Organisation, public_id: str) -> Response:
    """Return one job in full (*Get a single published job*).

    Only published jobs of the organisation are found.
    So the 404 is the same for unknown, unpublished and other organisations' jobs (rule 1).
    """
    posting = organisation.find(public_id)
    return _json(posting.detail_json()) if posting else _error(404, "Not found")


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")


def _error(status: int, message: str, **headers: str) -> Response:
    return _json(json.dumps({"error": message}).encode(), status, headers)
