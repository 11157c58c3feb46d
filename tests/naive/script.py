"""Two-way transcripts against a sans-IO engine: octets in, frames out, nothing in between.

``script << frame("attach", ...) >> expected("attach", handle=0)`` reads as it happens on the wire. Knows of
an engine only the eight calls that every engine offers its pump, so it drives a toy as well as the product.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, cast

from tests.engine_pairs import octets_of

from .performatives import HEADER_IDS, Frame, frame, header, next_frame


class Engine(Protocol):
    """The nine calls between an engine and what pumps it."""

    def receive_data(self, data: bytes, now: float, /) -> object: ...
    def receive_eof(self, now: float, /) -> object: ...
    def transport_lost(self) -> object: ...
    def next_event(self) -> Any: ...
    def has_output(self) -> bool: ...
    def data_to_send(self) -> bytes | None: ...
    def next_deadline(self) -> float | None: ...
    def handle_timer(self, now: float, /) -> object: ...
    def take_touched(self) -> Any: ...


@dataclass(frozen=True)
class Expected:
    """What the next frame must be; fields that are not named may be anything, ``x=None`` means absent.

    A composite inside, ``("source", {"address": "q"})``, is compared the same way: only what it names.
    """

    name: str
    channel: int | None
    fields: dict[str, Any]
    payload: bytes | None = None


def expected(
    name: str, /, *, channel: int | None = None, payload: bytes | None = None, **fields: Any
) -> Expected:
    return Expected(name, channel, fields, payload)


def header_expected(name: str = "amqp") -> Expected:
    """A protocol header of 1.0.0: ``amqp``, ``tls`` or ``sasl``."""
    return Expected("protocol-header", None, {"id": HEADER_IDS[name], "version": (1, 0, 0)})


def mismatches(want: Expected, got: Frame) -> list[str]:
    """One line for each thing that is not as expected; empty when all is."""
    if got.name != want.name:
        return [f"expected {want.name}, got {got.name}"]
    lines: list[str] = []
    if want.channel is not None and got.channel != want.channel:
        lines.append(f"channel: expected {want.channel}, got {got.channel}")
    for name, value in want.fields.items():
        if not _matches(value, got[name]):
            lines.append(f"{name}: expected {value!r}, got {got[name]!r}")
    if want.payload is not None and got.payload != want.payload:
        lines.append(f"payload: expected {want.payload!r}, got {got.payload!r}")
    return lines


def _matches(want: Any, got: Any) -> bool:
    a, b = _described(want), _described(got)
    if a and b:
        return a[0] == b[0] and all(_matches(v, b[1].get(k)) for k, v in a[1].items())
    return isinstance(want, bool) is isinstance(got, bool) and bool(want == got)


def _described(value: Any) -> tuple[Any, dict[str, Any]] | None:
    if not isinstance(value, tuple):
        return None
    pair: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    if len(pair) != 2 or not isinstance(pair[1], dict):
        return None
    return pair[0], cast("dict[str, Any]", pair[1])


def filled(name: str, usual: dict[str, Any], fields: dict[str, Any], *, channel: int = 0) -> bytes:
    """A frame with the usual fields, where the test does not say otherwise."""
    both: dict[str, Any] = {**usual, **fields}
    return frame(name, channel=channel, **both)


class Inbox:
    """Octets that were written to us, as the frames that they hold; keeps the transcript for messages."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        self.transcript: list[str] = []
        self._partial = b""

    def feed(self, data: bytes) -> None:
        self._partial += data
        while (found := next_frame(self._partial)) is not None:
            got, self._partial = found
            self.frames.append(got)

    @property
    def idle(self) -> bool:
        return not self.frames and not self._partial

    def note(self, line: str) -> None:
        self.transcript.append(line)

    def take(self, want: Expected) -> Frame:
        """Pop the next frame and check it.

        Raises:
            AssertionError: with the differences, the frame, and the transcript so far.
        """
        if not self.frames:
            partial = f" ({len(self._partial)} octets of an unfinished frame)" if self._partial else ""
            raise AssertionError(
                self._story([f"expected {want.name}, but nothing more was written{partial}"])
            )
        got = self.frames.popleft()
        lines = mismatches(want, got)
        if lines:
            raise AssertionError(self._story([*lines, f"in {describe(got)}"]))
        self.note(f"<- {describe(got)}")
        return got

    def check_idle(self) -> None:
        if not self.idle:
            rest = [describe(f) for f in self.frames] or [
                f"{len(self._partial)} octets of an unfinished frame"
            ]
            raise AssertionError(self._story(["expected nothing more, got", *rest]))

    def _story(self, lines: list[str]) -> str:
        return "\n".join([*lines, "after:", *(self.transcript[-12:] or ["(nothing)"])])


def describe(got: Frame) -> str:
    """A frame on one line."""
    fields = " ".join(f"{k}={v!r}" for k, v in got.fields.items())
    payload = f" +{len(got.payload)} octets" if got.payload else ""
    return f"{got.name}[{got.channel}] {fields}{payload}".strip()


class Script:
    """One conversation with one engine; ``now`` is the engine's clock and moves only by ``advance``."""

    def __init__(self, engine: Engine, *, now: float = 0.0, chunk: int | None = None) -> None:
        self.engine = engine
        self.now = now
        self.chunk = chunk
        self.events: list[Any] = []
        self.touched: list[Any] = []
        self.inbox = Inbox()
        self.last: Frame | None = None
        self.over = False  # the engine will never write again
        self.collect()

    # --- what we do to the engine ---

    def send(self, *octets: bytes, chunk: int | None = None, cuts: tuple[int, ...] = ()) -> Script:
        """Feed octets: as one read, or in pieces of ``chunk``, or cut at these offsets."""
        data = b"".join(octets)
        chunk = chunk or self.chunk
        if chunk:
            cuts = tuple(range(chunk, len(data), chunk))
        self._note_sent(data)
        for start, stop in pairwise([0, *cuts, len(data)]):
            self.engine.receive_data(data[start:stop], self.now)
            self.collect()
        return self

    def __lshift__(self, octets: bytes) -> Script:
        return self.send(octets)

    def eof(self) -> Script:
        """The peer will write nothing more."""
        self.engine.receive_eof(self.now)
        return self.collect()

    def lose(self) -> Script:
        """The transport is gone, both ways."""
        self.engine.transport_lost()
        return self.collect()

    def advance(self, seconds: float) -> Script:
        """Let time pass, stopping at each deadline on the way as a pump would."""
        until = self.now + seconds
        for _ in range(10_000):
            deadline = self.engine.next_deadline()
            if deadline is None or deadline > until:
                self.now = until
                return self
            self.now = max(self.now, deadline)
            self.engine.handle_timer(self.now)
            self.collect()
        raise AssertionError(
            f"the deadline stays at {self.engine.next_deadline()}, however often it is handled"
        )

    def collect(self) -> Script:
        """Take what the engine has for us: octets, events, touched links. Call it after a command of your own."""
        while (event := self.engine.next_event()) is not None:
            self.events.append(event)
        self.touched.extend(self.engine.take_touched())
        octets = octets_of(self.engine)
        self.over = octets is None
        self.inbox.feed(octets or b"")
        return self

    # --- what the engine must have done ---

    def expect(
        self, name: str, /, *, channel: int | None = None, payload: bytes | None = None, **fields: Any
    ) -> Frame:
        """The next frame that the engine wrote; see ``Expected``."""
        return self.take(Expected(name, channel, fields, payload))

    def expect_header(self, name: str = "amqp") -> Frame:
        return self.take(header_expected(name))

    def expect_nothing(self) -> Script:
        self.collect().inbox.check_idle()
        return self

    def expect_event(self, kind: type[Any], **attributes: Any) -> Any:
        """Pop the next event, which must be of this class with these attributes."""
        assert self.events, f"expected the event {kind.__name__}, but there is none"
        event = self.events.pop(0)
        assert isinstance(event, kind), f"expected the event {kind.__name__}, got {event!r}"
        for name, value in attributes.items():
            assert getattr(event, name) == value, f"{name}: expected {value!r} in {event!r}"
        return event

    def take(self, want: Expected) -> Frame:
        self.last = self.collect().inbox.take(want)
        return self.last

    def __rshift__(self, want: Expected) -> Script:
        self.take(want)
        return self

    # --- the usual beginnings ---

    def exchange_open(self, **fields: Any) -> Frame:
        """Headers and opens, whoever is first to write; returns the engine's open (2.4.1)."""
        self.send(header("amqp"), filled("open", {"container_id": "peer"}, fields))
        self.expect_header("amqp")
        return self.expect("open")

    def _note_sent(self, data: bytes) -> None:
        try:
            sent = Inbox()
            sent.feed(data)
            for got in sent.frames:
                self.inbox.note(f"-> {describe(got)}")
            if not sent.idle and not sent.frames:
                self.inbox.note(f"-> {data.hex(' ')}")
        except (ValueError, TypeError, AttributeError):  # a test may send what is no frame at all
            self.inbox.note(f"-> {data.hex(' ')}")
