"""The gate that every request passes: its origin, its client, its limits.

A web page of another origin can make a browser send requests. None of them changes or reads anything: no answer permits another
origin, there are no cookies, a browser's ``Origin`` and ``Sec-Fetch-Site`` must be of this one, and changes need the content type of
JSON, which such a page can send only after a question that is never answered. Some clients of RabbitMQ send no content type; they are
accepted without one, as they send nothing that a browser always does. Where there are no users the header ``Host`` must name this
machine, so that no foreign name that leads here helps.

Knows ASGI and logins; knows no route.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from .errors import RequestError
from .login import ABORT, CONNECTION
from .urls import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from trio_amqp10.container.management import Management
    from trio_amqp10.sasl import Identity

    from .login import ConnectionLogin

MANAGEMENT: Final = "management"
"""The name of the management, on behalf of the client, in the state of a request."""
IDENTITY: Final = "identity"
"""The name of the client's identity in the state of a request."""

_SAFE: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer that does not have its own."""
_WITH_BODY: Final = {"POST", "PUT"}
_BROWSERS: Final = {"origin", "sec-fetch-site", "sec-fetch-mode"}
"""Headers of which a browser sends one with each change of a page."""
_JSON: Final = "application/json"
_LONGEST_PATH: Final = 4096
MOST_HEAD: Final = 16 * 1024
"""Octets of the request line and the headers at most."""
_LAST: Final = 5.0
"""Seconds to write the end of an answer to a request whose body was not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests.

    Args:
        max_body: octets of a body at most.
        request_timeout: seconds from the end of the headers to the end of the answer.
    """

    max_body: int
    request_timeout: float


class Gate:
    """An application of ASGI that lets requests through to another.

    Args:
        app: the application behind the gate. It finds the path as it was sent, still percent-encoded; and in the state of the
            request ``MANAGEMENT`` and ``IDENTITY``.
        management: returns the management on behalf of an identity at a host.
        limits: limits on requests.
        hosts: the names that the header Host may have beside those of the loopback; None for any name.
        open_paths: paths that need no login.
        linked_paths: paths of documents to which a page of another origin may have a link. A browser shows such a document
            alone, and the other page cannot read it.
    """

    def __init__(
        self,
        app: ASGIApp,
        management: Callable[[Identity | None, str | None], Management],
        limits: Limits,
        hosts: Collection[str] | None = None,
        open_paths: Collection[str] = (),
        linked_paths: Collection[str] = (),
    ) -> None:
        self._app = app
        self._management = management
        self._limits = limits
        self._hosts = hosts
        self._open_paths = open_paths
        self._linked_paths = linked_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; see ASGI. Cancelled: the request may be done or not."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = _Exchange(scope, receive, send)
        with trio.move_on_after(self._limits.request_timeout) as scope_of_time:
            try:
                await self._enter(scope)
                await self._app(scope, answer.receive, answer.send)
            except RequestError as fault:
                await error_response(fault)(scope, answer.receive, answer.send)
        if scope_of_time.cancelled_caught and not answer.begun:
            late = RequestError(
                503, "timeout", f"the request took more than {self._limits.request_timeout:g} s"
            )
            await error_response(late)(scope, answer.receive, answer.send)
        elif scope_of_time.cancelled_caught:
            scope["state"][ABORT]()

    async def _enter(self, scope: Scope) -> None:
        """Check a request and its client; put the management for it into its state."""
        headers = Headers(scope=scope)
        raw = bytes(scope["raw_path"])
        if len(raw) > _LONGEST_PATH:
            raise RequestError(414, "uri_too_long", f"a path of {len(raw)} octets: at most {_LONGEST_PATH}")
        head = sum(map(len, (raw, scope["query_string"], *chain(*headers.raw))))
        if head > MOST_HEAD:  # RFC 6585, section 5
            raise RequestError(
                431, "headers_too_large", f"path and headers of {head} octets: at most {MOST_HEAD}"
            )
        scope["path"] = raw.decode("ascii", "replace")
        self._check_origin(headers, scope["path"] in self._linked_paths and _is_visit(scope, headers))
        if scope["method"] in _WITH_BODY:
            self._check_body(headers)
        state: dict[str, Any] = scope["state"]
        if scope["path"] in self._open_paths:
            return
        login: ConnectionLogin = state[CONNECTION]
        identity = await login.identify(headers.get("authorization"))
        state[IDENTITY] = identity
        state[MANAGEMENT] = self._management(identity, login.host)

    def _check_origin(self, headers: Headers, is_visit: bool) -> None:
        host = headers.get("host", "")
        if self._hosts is not None:
            try:
                name = urlsplit(f"//{host}").hostname or ""
            except ValueError:
                name = ""
            if not is_loopback(name) and name not in self._hosts:
                raise RequestError(
                    403,
                    "forbidden",
                    f"the header Host={host[:64]!r}: expected a name of this machine, such as 127.0.0.1",
                )
        origin = headers.get("origin")
        foreign = origin is not None and _place_of(origin) != host
        if foreign or (headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_visit):
            raise RequestError(403, "forbidden", "a page of another origin may not use this API")

    def _check_body(self, headers: Headers) -> None:
        length = headers.get("content-length")
        if length is not None and int(length) > self._limits.max_body:
            raise too_large(self._limits.max_body)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not kind and _BROWSERS.isdisjoint(headers):
            return
        if kind != _JSON:
            raise RequestError(
                415, "unsupported_media_type", f"the header Content-Type={kind[:64]!r}: expected {_JSON}"
            )


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether a browser loads a document of its own, as for a link that was clicked."""
    return (
        scope["method"] == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _place_of(origin: str) -> str:
    """Return host and port of an origin; empty if it has none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def too_large(most: int) -> RequestError:
    """Return the error for a body that is too large."""
    return RequestError(413, "body_too_large", f"the body has more than {most} octets")


def error_response(fault: RequestError) -> JSONResponse:
    """Return the answer for an error: an object with ``error`` and ``reason``."""
    return JSONResponse({"error": fault.error, "reason": fault.reason}, fault.status, fault.headers)


def _nothing() -> None:
    """Do nothing: there is no connection to end."""


class _Exchange:
    """A request and its answer: notes which of them has begun and ended.

    It adds the headers for safety.

    An answer before the end of the body closes the connection, and announces that.
    """

    __slots__ = ("_abort", "_ended", "_receive", "_send", "begun")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._abort: Callable[[], object] = scope["state"].get(ABORT, _nothing)
        self._receive = receive
        self._send = send
        self._ended = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        self.begun = False

    async def receive(self) -> Message:
        """Return the next part of the request; see ASGI."""
        message = await self._receive()
        self._ended = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer; see ASGI."""
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in _SAFE.items():
                headers.setdefault(name, value)
            if not self._ended:
                headers["Connection"] = "close"
        if self._ended or message.get("more_body", message["type"] == "http.response.start"):
            await self._send(message)
            return
        with trio.move_on_after(_LAST) as scope:
            await self._send(message)
        if scope.cancelled_caught:
            # The answer is written, but hypercorn waits until the rest of the body has a reader.
            self._abort()
