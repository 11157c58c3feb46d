"""Requests to the HTTP API, made from its own table of routes: ``python -m tests.fuzz.http [REQUESTS] [SEED]``.

Each request is a method and a path of the table with names that exist, do not exist, or are hard to encode; or with a mistake
anywhere: in the path, the query, the headers, the body, the octets themselves. It holds that

- every answer has a status that HTTP knows, and none is 500 or 503;
- an answer of 400 and more is an object with ``error`` and ``reason``, and has changed nothing;
- an answer below 400 is JSON or empty;
- a good client is answered afterwards.

The state that must not change is what management shows of queues, exchanges and bindings.
"""

from __future__ import annotations

import json
import random
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import h11
import trio

from trio_amqp10.container import Container
from trio_amqp10.http.api.routes import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.net.listener import Listener

NAMES: Final = [
    "q",
    "q2",
    "e",
    "e2",
    "none",
    "amq.direct",
    "amq.default",
    "a/b",
    "ü",
    "%",
    "?",
    "#",
    "<script>",
    " ",
    "~",
    "k",
]
HOSTS: Final = ["/", "/", "/", "/", "none", "//", ""]
ODD_PARTS: Final = [
    "%2",
    "%zz",
    "%FF",
    "%C3%28",
    "..",
    "%2e%2e",
    "%00",
    "%ED%A0%80",
    "a" * 300,
    "%25%32%46",
    ";",
    "\\",
]
QUERIES: Final = [
    "",
    "page=1",
    "page=1&page_size=2",
    "page=0",
    "page=99999999999999999999999",
    "page=1&page_size=-1",
    "page=x&page_size=y",
    "page=1&name=q",
    "page=1&name=(&use_regex=true",
    "page=1&name=(a%2B)%2B$&use_regex=true",
    "page=1&name=.*q.*&use_regex=true",
    "sort=name",
    "sort=name&sort_reverse=true",
    "sort=a.b.c.d.e.f.g.h.i.j",
    "columns=name",
    "columns=,,,.,",
    "columns=message_stats.publish,name",
    "if-empty=true&if-unused=true",
    "if-empty=x",
    "%FF=%FF",
    "&&==&",
    "page=1&page=2",
]
VALUES: Final[list[Any]] = [
    None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 1.5, 1e308, "", "x", "true", "5", "ü", "\u0000", "x" * 300,
    [], {}, [1, [2]], {"a": {"b": [None]}}, ["CC"], {"$": ["time", 1]},
]  # fmt: skip
KEYS: Final = [
    "durable", "auto_delete", "internal", "arguments", "type", "routing_key", "properties", "payload", "payload_encoding", "count",
    "ackmode", "encoding", "truncate", "queues", "exchanges", "bindings", "vhosts", "users", "name", "node", "trio-amqp10",
]  # fmt: skip
PROPERTIES: Final = [
    "headers",
    "priority",
    "delivery_mode",
    "timestamp",
    "expiration",
    "user_id",
    "message_id",
    "cluster_id",
    "bogus",
]
ARGUMENTS: Final = [
    "x-max-length", "x-message-ttl", "x-expires", "x-overflow", "x-dead-letter-exchange", "x-dead-letter-routing-key",
    "x-max-priority", "x-queue-type", "x-single-active-consumer", "x-delivery-limit", "alternate-exchange", "other",
]  # fmt: skip
GOOD: Final[dict[str, dict[str, Any]]] = {
    "publish": {"properties": {}, "routing_key": "q", "payload": "x", "payload_encoding": "string"},
    "get": {"count": 3, "ackmode": "ack_requeue_true", "encoding": "auto"},
}
"""Bodies that are fine, by the end of the path."""


class FuzzFaultError(AssertionError):
    """A request whose answer breaks a rule."""


def _part(rng: random.Random, name: str) -> str:
    if rng.random() < 0.05:
        return rng.choice(ODD_PARTS)
    if name == "vhost":
        text = rng.choice(HOSTS)
    elif name == "kind":
        text = rng.choice("qqeex")
    elif name == "port":
        text = rng.choice(["1", "x", "99999", "5672"])
    elif name in ("connection", "channel"):
        text = rng.choice(["none", "x #1", "x #99", "memory -> box #1 (1)"])
    else:
        text = rng.choice(NAMES)
    return quote(text, safe="")


def _body(rng: random.Random, path: str) -> bytes | None:
    kind = rng.random()
    if kind < 0.05:
        return None
    if kind < 0.15:
        return rng.choice(
            [
                b"",
                b"{",
                b"[]",
                b"null",
                b"\xff",
                b'{"a": NaN}',
                b"[" * 5000,
                b'{"a": 1e999}',
                b'{"a": "\\ud800"}',
            ]
        )
    body = dict(GOOD.get(path.rpartition("/")[2], {}))
    for _ in range(rng.randrange(4)):
        body[rng.choice(KEYS)] = rng.choice(VALUES)
    if rng.random() < 0.3:
        body["arguments"] = {rng.choice(ARGUMENTS): rng.choice([5, "drop-head", "", "classic", *VALUES])}
    if rng.random() < 0.3 and isinstance(body.get("properties"), dict):
        body["properties"] = {rng.choice(PROPERTIES): rng.choice(VALUES)}
    if rng.random() < 0.1:
        body["queues"] = [{"name": rng.choice(NAMES), rng.choice(KEYS): rng.choice(VALUES)}]
    return json.dumps(body).encode()


def make(rng: random.Random) -> tuple[str, str, list[tuple[str, str]], bytes | None]:
    """A method, a target, headers and a body."""
    method, path, _ = rng.choice(OPERATIONS)
    if rng.random() < 0.05:
        method = rng.choice(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "X"])
    parts = [_part(rng, part[1:-1]) if part.startswith("{") else part for part in path.split("/")]
    if rng.random() < 0.03:
        parts.insert(rng.randrange(len(parts) + 1), rng.choice(ODD_PARTS))
    query = rng.choice(QUERIES) if rng.random() < 0.4 else ""
    target = "/api/" + "/".join(parts) + (f"?{query}" if query else "")
    headers = [("Host", "localhost" if rng.random() < 0.98 else rng.choice(["evil.example", "[::1", "::"]))]
    body = _body(rng, path) if method in ("PUT", "POST") or rng.random() < 0.03 else None
    if body is not None:
        if rng.random() < 0.97:
            headers.append(("Content-Type", "application/json" if rng.random() < 0.97 else "text/plain"))
        headers.append(("Content-Length", str(len(body))))
    if rng.random() < 0.03:
        headers.append(
            rng.choice(
                [
                    ("Origin", "http://evil.example"),
                    ("Sec-Fetch-Site", "cross-site"),
                    ("Authorization", "Basic !"),
                    ("X-Reason", "x"),
                    ("Accept", "text/html"),
                ]
            )
        )
    return method, target, headers, body


class _Peer:
    """A connection for requests, which is made again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stream: trio.abc.Stream | None = None
        self._engine = h11.Connection(h11.CLIENT)

    async def ask(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> tuple[int, bytes]:
        if self._stream is None:
            self._stream = await trio.open_tcp_stream("127.0.0.1", self._port)
            self._engine = h11.Connection(h11.CLIENT)
        engine = self._engine
        request = h11.Request(method=method, target=target, headers=headers)
        octets = engine.send(request) or b""
        if body:
            octets += engine.send(h11.Data(data=body)) or b""
        octets += engine.send(h11.EndOfMessage()) or b""
        await self._stream.send_all(octets)
        status, answer = 0, b""
        while True:
            event = engine.next_event()
            if event is h11.NEED_DATA:
                engine.receive_data(bytes(await self._stream.receive_some()))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                answer += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
        if engine.our_state is h11.DONE and engine.their_state is h11.DONE:
            engine.start_next_cycle()
        else:
            await trio.aclose_forcefully(self._stream)
            self._stream = None
        return status, answer

    async def close(self) -> None:
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)


def _state(container: Container) -> Any:
    broker = container.broker
    assert broker is not None
    queues = {
        name: (len(queue), tuple(map(repr, queue.arguments.items()))) for name, queue in broker.queues.items()
    }
    return queues, sorted(broker.exchanges), len(list(broker.bindings))


def _furnish(container: Container) -> None:
    broker = container.add_broker() if container.broker is None else container.broker
    for name in list(broker.queues):
        if name not in ("q", "q2"):
            broker.delete_queue(name)
    for name in list(broker.exchanges):
        if name and not name.startswith("amq.") and name not in ("e", "e2"):
            broker.delete_exchange(name)
    for name in ("q", "q2"):
        if name not in broker.queues:
            broker.declare_queue(name)
    for name in ("e", "e2"):
        if name not in broker.exchanges:
            broker.declare_exchange(name, "topic")


async def fuzz(count: int, seed: int, tell: Callable[[str], object] = str) -> dict[int, int]:
    """Send so many requests; return how many answers had each status.

    Raises:
        FuzzFaultError: an answer breaks a rule; with the request, and its number.
    """
    rng = random.Random(seed)
    container = Container("box", strict=True)
    _furnish(container)
    seen: dict[int, int] = {}
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve_http, "http://127.0.0.1:0", max_body=100_000)
        listeners: list[Listener] = await nursery.start(serve)
        peer = _Peer(listeners[0].port)
        try:
            for number in range(count):
                if number % 50 == 0:
                    _furnish(container)
                    status, _ = await peer.ask("GET", "/api/whoami", [("Host", "localhost")], None)
                    if status != 200:
                        raise FuzzFaultError(
                            f"a good client is answered {status} after request {number}, seed {seed}"
                        )
                if number % 10_000 == 0:
                    tell(f"{number} requests: {dict(sorted(seen.items()))}")
                method, target, headers, body = make(rng)
                before = _state(container)
                with trio.move_on_after(60) as scope:
                    status, answer = await peer.ask(method, target, headers, body)
                where = f"request {number}, seed {seed}: {method} {target} {headers} {body!r:.300}"
                if scope.cancelled_caught:
                    raise FuzzFaultError(f"no answer: {where}")
                seen[status] = seen.get(status, 0) + 1
                _judge(method, status, answer, where)
                if status >= 400 and _state(container) != before:
                    raise FuzzFaultError(f"{status} has changed something: {where}")
        finally:
            with trio.CancelScope(shield=True):
                await peer.close()
        nursery.cancel_scope.cancel()
    return dict(sorted(seen.items()))


def _judge(method: str, status: int, answer: bytes, where: str) -> None:
    if status >= 500 and not (status == 503 and (method == "HEAD" or b'"failed"' in answer)):
        raise FuzzFaultError(f"status {status} {answer[:200]!r}: {where}")
    if method == "HEAD" or (status < 400 and not answer):
        return
    try:
        found = json.loads(answer)
    except ValueError:
        raise FuzzFaultError(f"status {status}, no JSON {answer[:200]!r}: {where}") from None
    if 400 <= status < 500 and set(found) != {"error", "reason"}:
        raise FuzzFaultError(f"status {status}, {answer[:200]!r}: {where}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1_000_000)
    began = time.monotonic()
    seen = trio.run(fuzz, count, seed, partial(print, flush=True))
    print(f"{count} requests with seed {seed} in {time.monotonic() - began:.0f} s; answers by status: {seen}")


if __name__ == "__main__":
    main()
