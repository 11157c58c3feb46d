"""What a frame costs does not grow with what is unsettled, attached and begun; counted in steps, not in time."""

from __future__ import annotations

from functools import cache
from math import log2
from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from trio_amqp10.amqp10.engine.codec_shortcut import transfer_head, write_transfer
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import LinkAttached, SessionBegun
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.link import FAR
from trio_amqp10.amqp10.engine.states import LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode
from trio_amqp10.core.protocol_headers import AMQP_HEADER

from .helpers import begun, flow
from .links import ACCEPTED, Owner, attach, disposition, transfer
from .steps import steps
from .test_resume_cost import resume, terminus_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.sender import SenderLink

SIZES = (10, 1_000, 100_000)
LINKS, SESSIONS = 1_000, 1_000
ALL = 2**31 - 1
RECEIVED: Any = ("received", {"section_number": 0, "section_offset": 0})
FURTHER: Any = ("received", {"section_number": 0, "section_offset": 1})
REJECTED: Any = ("rejected", {})
UNKNOWN: Any = ("error", {"condition": "x"})


class State:
    """One connection with ``size`` unsettled deliveries each way, and many links, waiting senders and sessions.

    The peer's handles: 0 is our sender ``out``, 1 our receiver ``in``, from 2 on senders with one unsettled
    delivery each. Ours are the same. Channel 0 is the session of all these.
    """

    def __init__(self, size: int) -> None:
        none: dict[str, Any] = dict.fromkeys(("max_links", "churn", "output_hard", "partial_octets"))
        window: dict[str, Any] = {"incoming_window": FAR, "handle_max": 10_000, "channel_max": 10_000}
        self.engine = Connection("engine", limits=Limits(output_soft=2**40, **window, **none))
        self.engine.open()
        self.read(AMQP_HEADER + frame("open", container_id="peer", channel_max=10_000))
        self.session = self.engine.session()
        self.session.begin()
        self.read(
            frame("begin", remote_channel=0, next_outgoing_id=0, incoming_window=FAR, outgoing_window=FAR)
        )
        self.out = self.session.sender("out")
        self.out.attach(
            source=Source(), target=Target(address="q"), rcv_settle_mode=ReceiverSettleMode.SECOND
        )
        self.out.confirms = True  # so that an outcome leaves the delivery unsettled
        self.read(attach("out", 0, role=True, rcv_settle_mode=1))
        self.into = self.session.receiver("in")
        self.into.attach(source=Source(address="q"), target=Target())
        self.into.set_credit(FAR)
        self.read(attach("in", 1, role=False))
        self.handles = 2
        for _each in range(min(size, LINKS)):
            self.add_sender()
        for channel in range(1, min(size, SESSIONS)):
            self.read(
                frame("begin", channel=channel, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
            )
        self.read(flow(handle=0, delivery_count=0, link_credit=FAR, incoming_window=FAR))
        for _each in range(size):
            assert self.out.send(b"x") is not None
        head = transfer_head(0, 1)
        self.read(b"".join(write_transfer(head, 33, i, i, settled=False) + b"y" for i in range(size)))
        self.next_id = size
        self.fill()

    def add_sender(self) -> SenderLink:
        """One more link, with one unsettled delivery, that waits to send more."""
        link = self.session.sender(f"link {self.handles}")
        link.attach(source=Source(), target=Target(address="q"))
        self.read(attach(link.name, self.handles, role=True))
        self.read(flow(handle=self.handles, delivery_count=0, link_credit=1, incoming_window=FAR))
        assert link.send(b"z") is not None
        link.owner = Owner()
        self.handles += 1
        return link

    def fill(self) -> None:
        """Let the first link with unsettled deliveries go, and senders wait for a window that is closed."""
        self.read(frame("detach", handle=2, closed=True))
        self.read(disposition(True, 0, ALL, settled=False, state=RECEIVED))
        self.read(flow(incoming_window=0, next_incoming_id=0))
        for link in self.session.links:
            if link.name.startswith("link"):
                link.await_sendable()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]

    def read(self, octets: bytes) -> None:
        """Have it read, acted on as an adapter does, and what there is to say written."""
        engine = self.engine
        engine.receive_data(octets, 0.0)
        while (event := engine.next_event()) is not None:
            if isinstance(event, SessionBegun) and event.session.state is SessionState.BEGIN_RCVD:
                event.session.begin()
            elif isinstance(event, LinkAttached) and event.link.state is LinkState.ATTACH_RCVD:
                event.link.attach(source=Source(address="q"), target=Target(address="q"))
        engine.take_touched()
        engine.data_to_send()

    def begin_and_end(self) -> bytes:
        free = min(set(range(SESSIONS + 2)) - set(self.engine.channels.theirs))
        begin = frame("begin", channel=free, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
        return begin + frame("end", channel=free)

    def attach_and_detach(self) -> bytes:
        name = f"churn {self.handles}"
        return attach(name, 9_999, role=True) + frame("detach", handle=9_999, closed=True)

    def detach(self) -> bytes:
        return frame("detach", handle=self.last_handle(), closed=True)

    def last_handle(self) -> int:
        return max(self.session.by_remote_handle)

    def transfer(self) -> bytes:
        self.next_id += 1
        return transfer(1, self.next_id - 1, b"more")

    def aborted(self) -> bytes:
        begun = transfer(1, self.next_id, b"more", more=True)
        self.next_id += 1
        return begun + transfer(1, aborted=True)


@cache
def state(size: int) -> State:
    return State(size)


def wide(role: bool, word: Any = None, **fields: Any) -> bytes:
    return disposition(role, 0, ALL, **{"settled": False, "state": word, **fields})


FRAMES: dict[str, Callable[[State], bytes]] = {
    "begin, end": State.begin_and_end,
    "attach, detach": State.attach_and_detach,
    "detach": State.detach,
    "transfer": State.transfer,
    "transfer, aborted": State.aborted,
    "flow": lambda _: flow(incoming_window=0, next_incoming_id=0),
    "flow, echo": lambda _: flow(incoming_window=0, next_incoming_id=0, echo=True),
    "flow, link": lambda _: flow(handle=0, delivery_count=0, link_credit=5, incoming_window=0, echo=True),
    "flow, drain": lambda _: flow(handle=0, delivery_count=0, link_credit=9, incoming_window=0, drain=True),
    "disposition, none": lambda _: wide(True),
    "disposition, received": lambda _: wide(True, RECEIVED),
    "disposition, received by turns": lambda _: wide(True, RECEIVED) + wide(True, FURTHER),
    "disposition, received in part": lambda s: disposition(
        True, 3, s.next_id - 4, settled=False, state=FURTHER
    ),
    "disposition, received one": lambda _: disposition(True, 5, settled=False, state=FURTHER),
    "disposition, of the sender": lambda _: wide(False, RECEIVED) + wide(False, FURTHER),
    "disposition, of the sender with an outcome": lambda _: wide(False, ACCEPTED) + wide(False, REJECTED),
    "disposition, outcome": lambda _: wide(True, ACCEPTED),
    "disposition, outcomes by turns": lambda _: wide(True, ACCEPTED) + wide(True, REJECTED),
    "disposition, of nothing": lambda s: disposition(True, s.next_id + 5_000, s.next_id + 200_000),
    "disposition, settled": lambda s: disposition(True, 1, min(8, s.next_id)),
    "disposition, settled by the sender": lambda _: disposition(False, 1, 8),
}
"""Those that come last change the state for good."""


@pytest.mark.parametrize("kind", FRAMES)
def test_frame_costs_no_more_where_there_is_more(kind: str) -> None:
    make = FRAMES[kind]
    counts = {}
    for size in SIZES:
        here = state(size)
        here.read(make(here))  # what changes deliveries is paid for by them, once
        octets = make(here)
        counts[size] = steps(lambda here=here, octets=octets: here.read(octets))  # type: ignore[misc]
    few = counts[SIZES[0]]
    assert all(count <= 1.2 * few + 50 * log2(size / SIZES[0]) for size, count in counts.items()), counts


@pytest.mark.parametrize("kind", ["disposition", "detach"])
def test_all_frames_together_cost_no_more_than_the_deliveries(kind: str) -> None:
    counts = {}
    for size in (100, 1_000):
        here = State(size)
        links = [link for link in here.session.links if link.name.startswith("link")]
        octets = b"".join(
            frame("detach", handle=link.remote_handle, closed=True)
            if kind == "detach"
            else disposition(True, 0, i, settled=i % 2 == 0)
            for i, link in enumerate(links)
        )
        counts[size] = steps(lambda here=here, octets=octets: here.read(octets))  # type: ignore[misc]
    assert counts[1_000] <= 12 * counts[100]


def test_open_and_close_cost_what_they_have_to_end() -> None:
    def whole(size: int) -> int:
        here = State(size)
        return steps(lambda: here.read(frame("close")))

    assert whole(1_000) <= 12 * whole(100)
    one = Connection("engine")
    one.open()
    one.receive_data(AMQP_HEADER, 0.0)
    octets = frame("open", container_id="peer")
    assert steps(lambda: one.receive_data(octets, 0.0)) < 5_000


def test_resumption_of_a_hundred_thousand_deliveries_ends_with_both_maps_whole() -> None:
    _session, script = begun()
    terminus = terminus_of(100_000)
    times = 0
    while terminus.unsettled:
        for tag in resume(script, terminus):
            terminus.forget(tag)  # the sender has resumed it, or settled
        times += 1
    assert times > 10
