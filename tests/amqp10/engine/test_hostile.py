"""A sound conversation, spoilt: nothing but the peer's fault comes out of it, and not much of that.

Frames are dropped, doubled, swapped and moved to other channels, fields are given other values,
octets are flipped and the whole is cut. Whatever the engine makes of it, ``receive_data`` raises
``RemoteProtocolError`` or nothing, what is written are sound frames and not many, and in the end
the connection is over, or closing, or still takes a sound conversation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.meter import steps
from tests.naive.codec import Typed, encode
from tests.naive.performatives import empty_frame, frame, next_frame, parse_frames, raw_frame
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .conversations import BOTH, IN, OUT, PEERS, pipelined, transfer
from .helpers import BEGIN, answer, flow, opened

if TYPE_CHECKING:
    from collections.abc import Callable

# What a peer says to an engine that accepts, and to one that dials: much of everything.
TO_ACCEPTING = [
    *(PEERS + OUT + IN + flow(channel=4, handle=2, link_credit=5, next_incoming_id=None),),
    *(frame("begin", channel=n, **BEGIN) for n in (5, 6)),
    transfer(0, channel=4, handle=3) + transfer(1, channel=4, handle=3, more=True),
    frame("transfer", channel=4, handle=3, payload=b"more"),
    frame("disposition", channel=4, role=True, first=0, last=9, settled=True, state=("accepted", {})),
    frame("disposition", channel=4, role=False, first=0, last=1, settled=True),
    flow(channel=4, handle=2, link_credit=0, drain=True, echo=True),
    frame("attach", channel=5, name="z", handle=0, role=False, initial_delivery_count=7),
    frame("detach", channel=4, handle=3, closed=True, error=("error", {"condition": "x:y"})),
    frame("end", channel=5) + empty_frame() + frame("end", channel=4),
    frame("close"),
]
TO_DIALLING = [
    BOTH + transfer(0) + transfer(1, settled=True),
    transfer(2, more=True) + frame("transfer", handle=1, more=True, payload=b"x" * 300),
    frame("transfer", handle=1, aborted=True) + transfer(3, list_code=0xD0),
    frame("disposition", role=True, first=0, settled=False, state=("modified", {"delivery_failed": True})),
    flow(handle=0, delivery_count=0, link_credit=9, echo=True),
    frame("detach", handle=0, closed=False),
    frame("end", error=("error", {"condition": "amqp:internal-error", "description": "why"})),
    frame("close"),
]


def split(octets: bytes) -> list[bytes]:
    """Header and frames, one by one."""
    pieces: list[bytes] = []
    while octets and (found := next_frame(octets)) is not None:
        pieces.append(found[0].raw)
        octets = found[1]
    return pieces


FRAMES = {
    "accepting": split(b"".join(TO_ACCEPTING)),
    "dialling": split(b"".join(TO_DIALLING)),
}


class Victim:
    """An engine and an adapter that does what adapters do."""

    def __init__(self, side: str) -> None:
        self.connection = (
            Connection("engine", limits=Limits(close_timeout=1.0))
            if side == "accepting"
            else pipelined()().connection
        )
        self.read = self.wrote = 0
        self.out = b""
        self.links: list[Any] = []
        self.faults: list[RemoteProtocolError] = []

    def feed(self, octets: bytes) -> None:
        """One read, and all that follows from it."""
        self.read += len(octets)
        try:
            self.connection.receive_data(octets, 0.0)
        except RemoteProtocolError as fault:
            self.faults.append(fault)
        while (event := self.connection.next_event()) is not None:
            with suppress(LocalProtocolError):  # what a user would be told
                answer(self.connection, event)
            link = getattr(event, "link", None)
            if link is not None:
                self.links.append(link)
        self.connection.take_touched()
        for link in self.links:
            with suppress(LocalProtocolError):
                self.work(link)
        self.out += self.connection.data_to_send() or b""

    def work(self, link: Any) -> None:
        if hasattr(link, "queue"):
            while link.queue:
                link.queue.popleft().accept()
            link.set_credit(10)
        elif link.sendable():
            link.send(b"y" * 100)
        elif link.drain:
            link.drained()

    def judge(self) -> None:
        """What the oracle asks for."""
        assert len(self.faults) <= 1
        assert len(self.out) <= 16 * self.read + 16 * 1024
        parse_frames(self.out)
        connection = self.connection
        if connection.state is ConnectionState.OPENED:
            assert not self.faults
        if (
            connection.state is ConnectionState.OPENED and not connection.frame_reader._chunks
        ):  # else in the middle of a frame
            free = next(n for n in range(63) if n not in connection.channels.theirs)
            self.feed(frame("begin", channel=free, **BEGIN))
            assert connection.channels.theirs[free].state is SessionState.MAPPED
            self.feed(frame("end", channel=free) + frame("close"))
            assert connection.state is ConnectionState.END
        for now in (1.0, 10.0, 100.0, 200.0):
            with suppress(RemoteProtocolError):
                connection.handle_timer(now)
        connection.receive_eof(300.0)
        assert connection.state is ConnectionState.END
        connection.data_to_send()
        assert connection.data_to_send() is None
        assert connection.partial_octets == 0
        assert len(connection.names) == 0


VALUES = [
    Typed("null"),
    Typed("uint", 0),
    Typed("uint", 1),
    Typed("uint", 2**31),
    Typed("uint", 2**32 - 1),
    Typed("ushort", 4),
    Typed("boolean", True),
    Typed("boolean", False),
    Typed("string", "x"),
    Typed("symbol", "amqp:accepted:list"),
    Typed("binary", b"0" * 33),
    Typed("list", ()),
    Typed("map", ()),
    Typed("described", (Typed("ulong", 0x24), Typed("list", ()))),
    Typed("described", (Typed("symbol", "x:y"), Typed("list", ()))),
]
sides = st.sampled_from(sorted(FRAMES))


def fields_of(octets: bytes) -> int:
    """How many fields the performative of this frame carries."""
    found = next_frame(octets)
    return 0 if found is None or found[0].body is None else len(found[0].body.value[1].value)


def with_field(octets: bytes, field: int, value: Typed) -> bytes:
    """This frame with another value in one of its fields, or one field more."""
    found = next_frame(octets)
    if found is None or found[0].body is None:
        return octets
    descriptor, inner = found[0].body.value
    fields = list(inner.value)
    if field < len(fields):
        fields[field] = value
    else:
        fields.append(value)
    body = encode(Typed("described", (descriptor, Typed("list", tuple(fields)))))
    return raw_frame(body + found[0].payload, channel=found[0].channel, frame_type=found[0].type)


@st.composite
def spoilt(draw: Callable[..., Any]) -> tuple[str, list[bytes]]:
    """A side, and what its peer says, with up to four things wrong."""
    side = draw(sides)
    frames = list(FRAMES[side])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(1, len(frames) - 1))
        how = draw(st.sampled_from(["drop", "double", "swap", "channel", "field", "octet", "cut"]))
        one = frames[at]
        if how == "drop" and len(frames) > 2:
            del frames[at]
        elif how == "double":
            frames.insert(draw(st.integers(at, len(frames))), one)
        elif how == "swap":
            other = draw(st.integers(1, len(frames) - 1))
            frames[at], frames[other] = frames[other], one
        elif how == "channel" and len(one) >= 8:
            frames[at] = one[:6] + bytes([0, draw(st.integers(0, 7))]) + one[8:]
        elif how == "field" and len(one) >= 8:
            with suppress(ValueError):
                frames[at] = with_field(one, draw(st.integers(0, 11)), draw(st.sampled_from(VALUES)))
        elif how == "octet" and one:
            place = draw(st.integers(0, len(one) - 1))
            frames[at] = one[:place] + bytes([draw(st.integers(0, 255))]) + one[place + 1 :]
        elif how == "cut":
            frames[at] = one[: draw(st.integers(0, len(one)))]
    return side, frames


@given(spoilt(), st.sampled_from([1, 3, 1000]))
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_engine_survives_a_conversation_that_was_spoilt(case: tuple[str, list[bytes]], at_once: int) -> None:
    side, frames = case
    victim = Victim(side)
    for start in range(0, len(frames), at_once):
        victim.feed(b"".join(frames[start : start + at_once]))
    victim.judge()


@pytest.mark.parametrize("side", sorted(FRAMES))
def test_engine_survives_the_loss_of_any_frame_and_any_frame_twice(side: str) -> None:
    frames = FRAMES[side]
    for at in range(1, len(frames)):
        for spoilt_frames in (frames[:at] + frames[at + 1 :], [*frames[:at], frames[at], *frames[at:]]):
            victim = Victim(side)
            for octets in spoilt_frames:
                victim.feed(octets)
            victim.judge()


@pytest.mark.parametrize("side", sorted(FRAMES))
def test_engine_survives_any_value_in_any_field(side: str) -> None:
    frames = FRAMES[side]
    for at in range(1, len(frames)):
        for field in range(fields_of(frames[at]) + 1):
            for value in VALUES:
                victim = Victim(side)
                victim.feed(b"".join([*frames[:at], with_field(frames[at], field, value), *frames[at + 1 :]]))
                victim.judge()


def test_sound_conversations_are_no_fault_of_the_peers() -> None:
    for side, frames in FRAMES.items():
        victim = Victim(side)
        for octets in frames:
            victim.feed(octets)
        assert not victim.faults
        assert victim.connection.state is ConnectionState.END
        assert len(parse_frames(victim.out)) > 5


# -- cost ---------------------------------------------------------------------------------------------

FIELDS: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
FLOODS: dict[str, Callable[[int], bytes]] = {
    "begin and end": lambda n: (frame("begin", channel=1, **FIELDS) + frame("end", channel=1)) * n,
    "attach and detach": lambda n: (
        frame("begin", channel=1, **FIELDS)
        + (frame("attach", channel=1, name="x", handle=0, role=True) + frame("detach", channel=1, handle=0))
        * n
    ),
    "echo": lambda n: frame("begin", channel=1, **FIELDS) + flow(channel=1, echo=True) * n,
    "dispositions of everything": lambda n: (
        frame("begin", channel=1, **FIELDS)
        + frame("disposition", channel=1, role=True, first=0, last=2**31 - 1, settled=True) * n
    ),
    "faults": lambda n: raw_frame(b"\x40", frame_type=9) * n,
    "empty frames": lambda n: empty_frame() * n,
    "undecodable": lambda n: raw_frame(b"\x00\x53\x13\xc0\x02\x01\xff") * n,
    "flows for nobody": lambda n: frame("begin", channel=1, **FIELDS) + flow(channel=1, handle=7) * n,
    "frames of an ended session": lambda n: (
        frame("begin", channel=1, **FIELDS)
        + frame("disposition", channel=1, role=True, first=9, last=1)
        + transfer(0, channel=1) * n
    ),
    "wide maps": lambda n: (
        frame("begin", channel=1, **FIELDS)
        + flow(channel=1, properties={str(i): None for i in range(300)}) * (n // 30)
    ),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "in pieces"])
def test_engine_reads_in_linear_steps_and_answers_in_proportion(
    flood: Callable[[int], bytes], at_once: bool
) -> None:
    limits = Limits(churn=None, heartbeats=None, output_hard=None)

    def work(n: int) -> int:
        octets = flood(n)
        size = len(octets) if at_once else 1000
        connection, _ = opened(limits)
        written = 0

        def read() -> None:
            nonlocal written
            for start in range(0, len(octets), size):
                with suppress(RemoteProtocolError):
                    connection.receive_data(octets[start : start + size], 0.0)
                connection.next_event()
                written += len(connection.data_to_send() or b"")

        counted = steps(read)
        assert written <= 4 * len(octets) + 1024
        return counted

    assert work(1200) < 4.4 * work(300) + 1000
