"""What a client of AMQP/Fast that reads nothing says, for ``test_memory``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.amqp_fast.pairs import block_of, written
from tests.amqp_fast.server.script import Client
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, head_octets
from trio_amqp10.amqp_fast.engine.states import EXPECTED, When
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.core.endpoint_role import EndpointRole

from .memory_scripts import PART, QUEUE, ROOM, MemoryScript

if TYPE_CHECKING:
    from collections.abc import Iterator

    import trio

_NAMES: Final = frozenset(
    kind.plan.name for kind, rule in EXPECTED[EndpointRole.SERVER].items() if rule.when is not When.NEVER
)


async def _open(stream: trio.abc.Stream) -> None:
    client = Client(stream)
    await client.open(client_name="")
    await client.say(spec.ChannelOpen(channel_id=2, restartable=True))
    await client.say(spec.ChannelOpen(channel_id=3, transacted=True))
    await client.handle(QUEUE)
    await client.handle(QUEUE, number=2, channel=2)
    await client.handle(QUEUE, number=3, channel=3)


def _sent(handle: int = 1, name: str = "", tag: int = 0) -> bytes:
    block = block_of(Message(spec.MessageHead(), PART))
    command = spec.HandleSend(handle_id=handle, fragment_size=len(block), dest_name=name, confirm_tag=tag)
    return written(command, fragment=block)


_OPENED: Final = spec.HandleOpen(channel_id=1, handle_id=9, dest_name=QUEUE, consumer=True)
_LOOKER: Final = spec.HandleOpen(channel_id=1, handle_id=9, dest_name=QUEUE, browser=True)
_CLOSED: Final = spec.HandleClose(handle_id=9)

_REPEATED: Final = {
    "connection response": written(spec.ConnectionResponse(mechanism="NONE")),
    "connection tune": written(spec.ConnectionTune()),
    "connection open": written(spec.ConnectionOpen(confirm_tag=1)),
    "connection ping": written(spec.ConnectionPing(respond=True)),
    "connection close": written(spec.ConnectionClose()),
    "channel open": b"".join(written(spec.ChannelOpen(channel_id=n, confirm_tag=1)) for n in range(4, 50)),
    "channel ack": written(spec.ChannelAck(channel_id=1, confirm_tag=1)),
    "channel commit": written(spec.ChannelCommit(channel_id=3, confirm_tag=1)),
    "channel rollback": written(spec.ChannelRollback(channel_id=3, confirm_tag=1)),
    "channel close": written(spec.ChannelOpen(channel_id=9), spec.ChannelClose(channel_id=9)),
    "handle open": written(
        spec.HandleOpen(channel_id=1, handle_id=9, service_type=1, temporary=True, confirm_tag=1), _CLOSED
    ),
    "handle send": _sent(name="none", tag=1),
    "handle consume": written(_OPENED, spec.HandleConsume(handle_id=9, prefetch=100, confirm_tag=1), _CLOSED),
    "handle cancel": written(_OPENED, spec.HandleCancel(handle_id=9, identifier="none"), _CLOSED),
    "handle flow": written(spec.HandleFlow(handle_id=1, flow_pause=True, confirm_tag=1)),
    "handle unget": written(spec.HandleUnget(handle_id=1, message_nbr=1, confirm_tag=1)),
    "handle query": written(_LOOKER, spec.HandleQuery(handle_id=9), _CLOSED),
    "handle browse": written(
        _LOOKER,
        spec.HandleQuery(handle_id=9),
        *(20 * [spec.HandleBrowse(handle_id=9, message_nbr=1)]),
        _CLOSED,
    ),
    "handle prepare": written(
        spec.HandlePrepare(handle_id=2, fragment_size=len(block_of(Message(spec.MessageHead(), b"x")))),
        fragment=block_of(Message(spec.MessageHead(), b"x")),
    )
    + written(
        spec.HandleClose(handle_id=2),
        spec.HandleOpen(channel_id=2, handle_id=2, dest_name=QUEUE, producer=True),
    ),
    "handle ready": written(spec.HandleReady(handle_id=1)),
    "handle close": written(_OPENED, _CLOSED),
}


def _head(size: int, **fields: Any) -> bytes:
    return head_octets(spec.MessageHead(**fields), size, 1 << 16)


_TIMES: Final = (50, 5)
"""Frames that are sent at once: small ones, and large ones."""


def _fragments(part: bytes) -> Iterator[bytes]:
    """A message that never ends."""
    head = _head(100 * 1024 * 1024)
    yield written(spec.HandleSend(handle_id=1, fragment_size=len(head), partial=True), fragment=head)
    while True:
        yield _TIMES[len(part) > 99] * written(
            spec.HandleSend(handle_id=1, fragment_size=len(part), partial=True), fragment=part
        )


def _prepared() -> Iterator[bytes]:
    """Messages that are prepared and never sent, each with a head of its own."""
    number = 0
    while True:
        number += 1
        block = _head(1 << 20, identifier=f"m{number}") + PART
        yield written(spec.HandlePrepare(handle_id=2, fragment_size=len(block)), fragment=block) + written(
            spec.HandleClose(handle_id=2),
            spec.HandleOpen(channel_id=2, handle_id=2, dest_name=QUEUE, producer=True),
        )


def _announced() -> Iterator[bytes]:
    head = _head(2**32 - 1)
    while True:
        yield written(spec.HandleSend(handle_id=1, fragment_size=len(head), partial=True), fragment=head)
        yield written(spec.ChannelClose(channel_id=1), spec.ChannelOpen(channel_id=1))
        yield written(spec.HandleOpen(channel_id=1, handle_id=1, dest_name=QUEUE, producer=True))


MEMORY_FAST: Final = MemoryScript(
    names=_NAMES,
    dialect=lambda container: AmqpFast(container, limits=Limits(write_buffer=ROOM)),
    open=_open,
    repeated=_REPEATED,
    partial={
        "fragments": partial(_fragments, PART),
        "small fragments": partial(_fragments, b"x"),
        "empty fragments": partial(_fragments, b""),
        "prepared": _prepared,
        "announced": _announced,
    },
    refusal=b"INSUFFICIENT",
)
