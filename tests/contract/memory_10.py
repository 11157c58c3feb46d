"""What a peer of AMQP 1.0, or of its draft of 2010, that reads nothing says, for ``test_memory``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.draft_2010.registries import write as write_draft
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import Source as DraftSource
from trio_amqp10.amqp10.draft_2010.spec.messaging import Target as DraftTarget
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.listen import Acceptor, Amqp10Dialect
from trio_amqp10.amqp10.server.draft_2010_dialect import Draft2010
from trio_amqp10.amqp10.spec import transport
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import encode_frame
from trio_amqp10.core.protocol_headers import AMQP_HEADER
from trio_amqp10.sasl import Server

from .memory_scripts import PART, QUEUE, ROOM, MemoryScript

if TYPE_CHECKING:
    from collections.abc import Iterator

    import trio


_LIMITS: Final = Limits(output_soft=ROOM, output_hard=16 * ROOM)


def _names(module: Any) -> frozenset[str]:
    bodies = ("Open", "Begin", "Attach", "Flow", "Transfer", "Disposition", "Detach", "End", "Close")
    return frozenset(name.lower() for name in bodies if hasattr(module, name))


# -- AMQP 1.0 -------------------------------------------------------------------------------


def _frame(performative: Any, payload: bytes = b"", channel: int = 0) -> bytes:
    return encode_frame(channel, encode(performative) + payload)


def _attach(name: str, handle: int, *, receives: bool) -> transport.Attach:
    return transport.Attach(
        name=name,
        handle=handle,
        role=receives,
        source=Source(address=QUEUE),
        target=Target(address=QUEUE),
        initial_delivery_count=None if receives else 0,
    )


_FLOW: Final[dict[str, Any]] = {
    "next_incoming_id": 0,
    "incoming_window": 1 << 20,
    "next_outgoing_id": 0,
    "outgoing_window": 1 << 20,
}


def attach(name: str, handle: int, receives: bool) -> bytes:
    """The attach of a link of the peer's, as a frame."""
    return _frame(_attach(name, handle, receives=receives))


async def _open(stream: trio.abc.Stream) -> None:
    await stream.send_all(
        AMQP_HEADER
        + _frame(transport.Open(container_id="peer", max_frame_size=1 << 20))
        + _frame(transport.Begin(next_outgoing_id=0, incoming_window=1 << 20, outgoing_window=1 << 20))
        + _frame(_attach("in", 0, receives=True))
        + _frame(_attach("out", 1, receives=False))
    )


def _flow(**fields: Any) -> bytes:
    return _frame(transport.Flow(**{**_FLOW, **fields}))


_MESSAGE: Final = Message(PART).to_payload()
_REPEATED: Final = {
    "open": _frame(transport.Open(container_id="peer")),
    "begin": b"".join(
        _frame(transport.Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), channel=number)
        + _frame(transport.End(), channel=number)
        for number in range(1, 20)
    ),
    "attach": _frame(_attach("more", 7, receives=True)) + _frame(transport.Detach(handle=7, closed=True)),
    "flow": 50 * _flow(echo=True, handle=1, delivery_count=0, link_credit=0),
    "transfer": _frame(
        transport.Transfer(handle=1, delivery_id=0, delivery_tag=b"t", message_format=0), _MESSAGE
    ),
    "disposition": _flow(handle=0, delivery_count=0, link_credit=100)
    + _frame(transport.Disposition(role=True, first=0, last=100, settled=True)),
    "detach": _frame(transport.Detach(handle=0)) + _frame(_attach("in", 0, receives=True)),
    "end": _frame(transport.End())
    + _frame(transport.Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)),
    "close": _frame(transport.Close()),
}


_TIMES: Final = (50, 5)
"""Frames that are sent at once: small ones, and large ones."""


def _transfers(part: bytes) -> Iterator[bytes]:
    first = transport.Transfer(handle=1, delivery_id=0, delivery_tag=b"t", message_format=0, more=True)
    yield _frame(first, part)
    while True:
        yield _TIMES[len(part) > 99] * _frame(transport.Transfer(handle=1, more=True), part)


MEMORY_10: Final = MemoryScript(
    names=_names(transport),
    dialect=lambda container: Amqp10Dialect(
        Acceptor(container_id="c", sasl=Server(), limits=_LIMITS), container.handle
    ),
    open=_open,
    repeated=_REPEATED,
    partial={
        "transfers": partial(_transfers, PART),
        "small transfers": partial(_transfers, b"x"),
        "empty transfers": partial(_transfers, b""),
    },
    refusal=b"resource-limit-exceeded",
)


# -- the draft ------------------------------------------------------------------------------


def _draft(body: Any, channel: int = 0) -> bytes:
    return encode_frame(channel, write_draft(body))


def _draft_attach(name: str, handle: int, *, receives: bool) -> draft.Attach:
    state = draft.FlowState(session_credit=100, transfer_count=None if receives else 0, link_credit=0)
    both = draft.Linkage(source=DraftSource(address=QUEUE), target=DraftTarget(address=QUEUE))
    return draft.Attach(name=name, handle=handle, role=receives, local=both, flow_state=state)


def draft_attach(name: str, handle: int, receives: bool) -> bytes:
    """The same in the draft."""
    return _draft(_draft_attach(name, handle, receives=receives))


async def _open_draft(stream: trio.abc.Stream) -> None:
    await stream.send_all(
        AMQP_HEADER
        + _draft(draft.Open(container_id="peer", channel_max=30))
        + _draft(draft.Begin())
        + _draft(_draft_attach("in", 0, receives=True))
        + _draft(_draft_attach("out", 1, receives=False))
    )


def _draft_transfer(number: int, payload: bytes, *, first: bool, last: bool, offset: int) -> bytes:
    fragment = draft.Fragment(first=first, last=last, format_code=3, fragment_offset=offset, payload=payload)
    return _draft(
        draft.Transfer(
            handle=1,
            flow_state=draft.FlowState(session_credit=0, transfer_count=number + 1),
            delivery_tag=b"t%d" % number,
            transfer_id=number,
            fragments=(fragment,),
            more=not last,
        )
    )


_DRAFT_FLOW: Final = draft.FlowState(session_credit=100, link_credit=10)
_DRAFT_REPEATED: Final = {
    "open": _draft(draft.Open(container_id="peer", channel_max=30)),
    "begin": b"".join(_draft(draft.Begin(), number) + _draft(draft.End(), number) for number in range(1, 20)),
    "attach": _draft(_draft_attach("more", 7, receives=True)) + _draft(draft.Detach(handle=7)),
    "flow": 50 * _draft(draft.Flow(handle=0, flow_state=_DRAFT_FLOW)),
    "transfer": _draft_transfer(0, PART, first=True, last=True, offset=0),
    "disposition": _draft(draft.Flow(handle=0, flow_state=_DRAFT_FLOW))
    + _draft(
        draft.Disposition(role=True, extents=(draft.Extent(first=0, last=100, handle=0, settled=True),))
    ),
    "detach": _draft(draft.Detach(handle=0)) + _draft(_draft_attach("in", 0, receives=True)),
    "end": _draft(draft.End()) + _draft(draft.Begin()),
    "close": _draft(draft.Close()),
}


def _draft_transfers(part: bytes) -> Iterator[bytes]:
    offset = 0
    yield _draft_transfer(0, part, first=True, last=False, offset=0)
    while True:
        offset += len(part)
        yield _draft_transfer(0, part, first=False, last=False, offset=offset)


def _draft_sections() -> Iterator[bytes]:
    """A message of empty sections."""
    yield _draft_transfer(0, b"x", first=True, last=False, offset=0)
    while True:
        fragments = (
            draft.Fragment(first=False, last=True, format_code=3, fragment_offset=1, payload=b""),
            draft.Fragment(first=True, last=False, format_code=3, fragment_offset=1, payload=b""),
        )
        yield _draft(
            draft.Transfer(
                handle=1,
                flow_state=draft.FlowState(session_credit=0, transfer_count=1),
                delivery_tag=b"t0",
                transfer_id=0,
                fragments=20 * fragments,
                more=True,
            )
        )


MEMORY_DRAFT: Final = MemoryScript(
    names=_names(draft),
    dialect=lambda container: Draft2010(container, limits=_LIMITS),
    open=_open_draft,
    repeated=_DRAFT_REPEATED,
    partial={
        "transfers": partial(_draft_transfers, PART),
        "small transfers": partial(_draft_transfers, b"x"),
        "sections": _draft_sections,
    },
    refusal=b"resource-limit-exceeded",
)
