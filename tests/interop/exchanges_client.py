"""A client of 0-9-1 for exchanges that two servers are compared by: it writes any octets, and records each answer.

Knows the second codec of the tests (``tests.amqp091.naive``), and nothing of the product.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from typing import Any, Final

from tests.amqp091 import naive

HEADER: Final = b"AMQP\x00\x00\x09\x01"
_CAPABILITIES: Final = [
    (name, ("t", True))
    for name in (
        "publisher_confirms",
        "consumer_cancel_notify",
        "basic.nack",
        "connection.blocked",
        "authentication_failure_close",
    )
]
_UNASKED: Final = frozenset(
    {"basic.deliver", "basic.return", "basic.ack", "basic.nack", "basic.cancel", "connection.blocked"}
)
"""Methods that answer no request."""
_CONTENTS: Final = frozenset({"basic.deliver", "basic.get-ok", "basic.return"})
_GENERATED: Final = re.compile(r"amq\.(gen|ctag|rabbitmq\.reply-to\.)[-.\w=/+]*")
_REASON: Final = re.compile(
    r"((?:invalid arg '\S+' for queue '.*' in vhost '/'|invalid expiration '.*?')(?=:)).*"
)
"""A text with a reason behind it, which is a term of Erlang at RabbitMQ."""
_PATIENCE: Final = 5.0
"""Seconds for an answer that must come; a server that does not answer is a difference."""


class Scene:
    """One case: its connections, and the record of all that the server answered.

    Args:
        name: the name of the case, which begins the names of its queues and exchanges.
        host, port: the server.
        run: begins them too, so that a server may be asked again; it is not in the record.

    Attributes:
        record: the answers, in the order in which the case waited for them.
    """

    def __init__(self, name: str, host: str, port: int, run: str = "") -> None:
        self._name = run + name
        self._run = run
        self._place = host, port
        self._parties: list[Party] = []
        self.record: list[Any] = []

    def dial(self, *, opened: bool = True, **options: Any) -> Party:
        """Connect; unless ``opened`` is False, do the handshake and open channel 1."""
        party = Party(self, socket.create_connection(self._place, _PATIENCE), len(self._parties))
        self._parties.append(party)
        if opened:
            party.open(**options)
        return party

    def named(self, name: str) -> str:
        """Return a name that no other case uses."""
        return f"{self._name}-{name}"

    def note(self, party: int, what: Any) -> None:
        """Add to the record; generated names and the case's own are made equal."""
        self.record.append(_plain((party, what) if party else what, self._run))

    def close(self) -> None:
        """Close all connections."""
        for party in self._parties:
            party.drop()


class Party:
    """One connection of a case."""

    def __init__(self, scene: Scene, stream: socket.socket, number: int) -> None:
        self._scene = scene
        self._stream = stream
        self._number = number
        self._buffer = b""
        self.over = self.closed = False
        self.heard: list[tuple[str, dict[str, Any]]] = []

    # -- the connection ------------------------------------------------------------------

    def open(
        self, *, frame_max: int = 131_072, heartbeat: int = 0, channel_max: int = 2047, vhost: str = "/"
    ) -> None:
        """Do the handshake, open channel 1 and declare the queue ``mark``; nothing of it is recorded."""
        self.write(HEADER)
        assert self._next(_PATIENCE)[0] == "connection.start"
        self.say(
            "connection.start-ok",
            mechanism="PLAIN",
            response="\0guest\0guest",
            locale="en_US",
            client_properties=[("capabilities", ("F", _CAPABILITIES))],
        )
        assert self._next(_PATIENCE)[0] == "connection.tune"
        self.say("connection.tune-ok", channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
        self.say("connection.open", virtual_host=vhost)
        if vhost != "/":
            return
        assert self._next(_PATIENCE)[0] == "connection.open-ok"
        self.open_channel(1)

    def open_channel(self, channel: int) -> None:
        """Open a channel, and declare its queue for ``settle``."""
        self.say("channel.open", channel)
        assert self._next(_PATIENCE)[0] == "channel.open-ok"
        if channel == 1:
            self.say("queue.declare", queue=self._mark, exclusive=True)
            assert self._next(_PATIENCE)[0] == "queue.declare-ok"

    @property
    def _mark(self) -> str:
        return self._scene.named(f"mark{self._number}")

    def drop(self) -> None:
        """Close the socket."""
        self._stream.close()

    # -- to the server -------------------------------------------------------------------

    def write(self, octets: bytes) -> None:
        """Write octets; a server that has closed the socket is found by the next read."""
        try:
            self._stream.sendall(octets)
        except OSError:
            self.over = True

    def say(self, name: str, channel: int = 1, **arguments: Any) -> None:
        """Write a method, and wait for nothing."""
        self.write(naive.say(name, channel, **arguments))

    def ask(self, name: str, channel: int = 1, **arguments: Any) -> dict[str, Any]:
        """Write a method, record what comes up to its answer, and return the answer."""
        self.say(name, channel, **arguments)
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Record what comes, up to the answer to a request or the end."""
        while True:
            name, found = self.hear()
            if name not in _UNASKED:
                return found

    def hear(self, seconds: float = _PATIENCE) -> tuple[str, dict[str, Any]]:
        """Record the next method, or ``silence`` or ``eof``."""
        if self.closed:
            return "eof", {}
        name, found = self._next(seconds)
        channel = found.pop("channel", 0)
        shown = {key: each for key, each in found.items() if not key.startswith("reserved")}
        if name == "connection.close":
            del shown["reply_text"]  # programs match on the texts of channels only
        self._scene.note(self._number, (name, channel, shown) if channel != 1 else (name, shown))
        if name == "channel.close":
            self.say("channel.close-ok", channel)
            self._reopen(channel)
        elif name == "connection.close":
            self.say("connection.close-ok")
        if name.startswith("connection.close"):
            self.closed = self.over = True  # which end closes the socket is left to the servers
        return name, found

    def listen(self, count: int, seconds: float = _PATIENCE) -> list[dict[str, Any]]:
        """Record this many methods."""
        return [self.hear(seconds)[1] for _ in range(count)]

    def quiet(self, seconds: float = 0.15) -> None:
        """Record all that comes in this time; usually nothing."""
        end = time.monotonic() + seconds
        while not self.over and (left := end - time.monotonic()) > 0:
            name, _ = self._peek(left)
            if name == "silence":
                return
            self.hear()
            if name == "eof":
                return

    def settle(self, channel: int = 1) -> None:
        """Have all done that was written; record what comes meanwhile, but not the mark's own answer."""
        self.say("queue.declare", channel, queue=self._mark, passive=True)
        while True:
            name, found = self._peek(_PATIENCE)
            if name == "queue.declare-ok" and found["queue"] == self._mark.encode():
                self.heard.pop(0)
                return
            self.hear()
            if name in ("channel.close", "connection.close", "eof", "silence"):
                return

    # -- shorter words -------------------------------------------------------------------

    def queue(self, name: str = "q", **options: Any) -> dict[str, Any]:
        """Declare a queue; ``arguments`` by name, with letters."""
        arguments = list(options.pop("arguments", {}).items())
        if any(key == "x-queue-type" and each[1] == b"quorum" for key, each in arguments):
            options.setdefault("durable", True)
        return self.ask("queue.declare", queue=self._scene.named(name), arguments=arguments, **options)

    def exchange(self, name: str = "x", kind: str = "direct", **options: Any) -> dict[str, Any]:
        """Declare an exchange."""
        arguments = list(options.pop("arguments", {}).items())
        return self.ask(
            "exchange.declare", exchange=self._scene.named(name), type=kind, arguments=arguments, **options
        )

    def bind(self, queue: str = "q", exchange: str = "x", key: str = "", **arguments: Any) -> dict[str, Any]:
        """Bind a queue."""
        return self.ask(
            "queue.bind",
            queue=self._scene.named(queue),
            exchange=self._scene.named(exchange),
            routing_key=key,
            arguments=list(arguments.items()),
        )

    def publish(
        self,
        key: str,
        body: bytes = b"x",
        *,
        exchange: str | None = None,
        raw: str | None = None,
        channel: int = 1,
        mandatory: bool = False,
        immediate: bool = False,
        **properties: Any,
    ) -> None:
        """Write a message: to a queue of this case, or by ``key`` to an exchange of this case, or to ``raw``."""
        routing_key = self._scene.named(key) if exchange is None and raw is None else key
        to = raw if raw is not None else "" if exchange is None else self._scene.named(exchange)
        places = {_PLACES[name]: each for name, each in properties.items()}
        self.write(
            naive.carry(
                "basic.publish",
                body,
                places,
                channel,
                exchange=to,
                routing_key=routing_key,
                mandatory=mandatory,
                immediate=immediate,
            )
        )

    def consume(self, queue: str = "q", tag: str = "c", **options: Any) -> dict[str, Any]:
        """Start a consumer."""
        arguments = list(options.pop("arguments", {}).items())
        return self.ask(
            "basic.consume",
            queue=self._scene.named(queue),
            consumer_tag=tag,
            arguments=arguments,
            **options,
        )

    def get(self, queue: str = "q", **options: Any) -> dict[str, Any]:
        """Get one message."""
        return self.ask("basic.get", queue=self._scene.named(queue), **options)

    def count(self, queue: str = "q", least: int | None = None) -> dict[str, Any]:
        """Record what a passive declaration answers; wait until it has ``least`` messages."""
        end = time.monotonic() + _PATIENCE
        while least is not None and time.monotonic() < end:
            self.say("queue.declare", queue=self._scene.named(queue), passive=True)
            name, found = self._next(_PATIENCE)
            if name != "queue.declare-ok" or found["message_count"] >= least:
                break
            time.sleep(0.02)
        return self.ask("queue.declare", queue=self._scene.named(queue), passive=True)

    # -- from the server -----------------------------------------------------------------

    def _reopen(self, channel: int) -> None:
        self.say("channel.open", channel)
        while self._next(_PATIENCE)[0] not in ("channel.open-ok", "eof", "silence"):
            pass

    def _peek(self, seconds: float) -> tuple[str, dict[str, Any]]:
        found = self._next(seconds)
        self.heard.insert(0, found)
        return found

    def _next(self, seconds: float) -> tuple[str, dict[str, Any]]:
        """Return the next method with its content and channel; a heartbeat is skipped."""
        if self.heard:
            return self.heard.pop(0)
        end = time.monotonic() + seconds
        frame = self._frame(end)
        while isinstance(frame, tuple) and frame[0] == 8:
            frame = self._frame(end)
        if not isinstance(frame, tuple):
            return frame, {}
        kind, channel, payload = frame
        if kind != 1:
            return f"frame {kind}", {"channel": channel}
        name, found = naive.method(payload)
        if name in _CONTENTS:
            found |= self._content(end)
        return name, found | {"channel": channel}

    def _content(self, end: float) -> dict[str, Any]:
        header = self._frame(end)
        assert isinstance(header, tuple), header
        assert header[0] == 2, header
        size, body = int.from_bytes(header[2][4:12], "big"), b""
        while len(body) < size:
            part = self._frame(end)
            assert isinstance(part, tuple), part
            body += part[2]
        properties = dict(zip(_NAMES, naive.properties(header[2][12:]), strict=True))
        return {
            "properties": {key: each for key, each in properties.items() if each is not None},
            "body": body,
        }

    def _frame(self, end: float) -> tuple[int, int, bytes] | str:
        while True:
            if self._buffer[:4] == b"AMQP" and len(self._buffer) >= 8:
                header, self._buffer = self._buffer[:8], self._buffer[8:]
                return header.hex()
            if len(self._buffer) >= 7 and self._buffer[:4] != b"AMQP":
                kind, channel, size = struct.unpack(">BHI", self._buffer[:7])
                if len(self._buffer) >= size + 8:
                    payload, self._buffer = self._buffer[7 : 7 + size], self._buffer[8 + size :]
                    return kind, channel, payload
            self._stream.settimeout(max(0.001, end - time.monotonic()))
            try:
                data = self._stream.recv(65_536)
            except TimeoutError:
                return "silence"
            except OSError:
                data = b""
            if not data:
                self.over = True
                return "eof"
            self._buffer += data


_NAMES: Final = (
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
_PLACES: Final = {name: place for place, name in enumerate(_NAMES)}


def _plain(value: Any, run: str) -> Any:
    """Return a value with texts, without times, generated names and the name of the run."""
    match value:
        case bytes():
            found = _GENERATED.sub("(generated)", value.decode(errors="backslashreplace"))
            return _REASON.sub(r"\1", found).replace(run, "")
        case ("T", int(seconds)) if seconds > 1_700_000_000:
            return "T", "(time)"
        case dict():
            return {key: _plain(each, run) for key, each in value.items()}
        case list() | tuple():
            found = type(value)(_plain(each, run) for each in value)
            return sorted(found, key=repr) if _is_table(found) else found
        case _:
            return value


def _is_table(value: Any) -> bool:
    """Whether it is a list of names and typed values, whose order has no meaning."""
    return isinstance(value, list) and all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], tuple) for each in value
    )
