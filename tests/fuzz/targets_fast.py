"""Targets of AMQP/Fast: its commands and messages, and both roles of the engine with a channel and a handle."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from tests.amqp_fast import naive
from tests.amqp_fast.pairs import (
    QUEUE,
    block_of,
    client_with,
    notifying,
    octets_of,
    sending,
    server_with,
    written,
)
from tests.engine_pairs import arrivals_of, events_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.events import Initiated, OpenRequested, Responded
from trio_amqp10.amqp_fast.engine.headers_selector import HeadersSelector
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, read_head
from trio_amqp10.amqp_fast.wire.frames import INITIATION
from trio_amqp10.amqp_fast.wire.message_number_list import read_list, write_list
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .feeding import feed
from .mutate import Framing
from .target import FuzzTarget

_LIMITS: Final = Limits(frame_max=1024, channel_max=5, handle_max=5, max_message_size=4096, max_partial=8192)
_CODES: Final = frozenset(ReplyCodeRfc011) - {ReplyCodeRfc011.INTERNAL_ERROR}
"""Codes of replies and closes with which octets are answered."""


def commands(octets: bytes) -> None:
    if not octets:
        return  # a frame is never empty
    command = spec.COMMANDS.read(octets)
    with contextlib.suppress(LocalProtocolError):  # what the peer may have sent, and we may not
        again = command.encode()
        assert spec.COMMANDS.read(again).encode() == again


def messages(octets: bytes) -> None:
    """A message's first fragment, whose head may say anything."""
    head, end = read_head(octets)
    assert 0 < end <= len(octets)
    with contextlib.suppress(LocalProtocolError):
        block = block_of(Message(head, octets[end:]))
        assert block_of(Message(*_read(block))) == block


def _read(block: bytes) -> tuple[spec.MessageHead, bytes]:
    head, end = read_head(block)
    return head, block[end:]


def selectors(octets: bytes) -> None:
    """What a message's headers are asked for (3.5.4)."""
    HeadersSelector(octets).matches({"a": "1", "b": "2"})


def lists(octets: bytes) -> None:
    """The numbers of messages (3.5.12)."""
    ranges = read_list(octets)
    if sum(map(len, ranges)) <= 1000:
        numbers = sorted({number for each in ranges for number in each})
        again, highest = write_list(numbers)
        assert not highest
        assert [number for each in read_list(again) for number in each] == numbers


def served(octets: bytes) -> None:
    """What a client may send on a connection with a channel and a handle."""
    transacted = len(octets) % 2 == 1
    engine, _ = server_with(limits=_LIMITS, transacted=transacted, restartable=not transacted)
    _feed(engine, octets)


def dialled(octets: bytes) -> None:
    """What a server may send to a client that has asked for this and that."""
    engine, channel, handle = client_with(restartable=True, temporary=True, dest_name="")
    handle.write(spec.HandleConsume(confirm_tag=1, prefetch=3))
    handle.write(spec.HandleQuery())
    handle.write(spec.HandleBrowse(confirm_tag=2, message_nbr=1))
    handle.send(Message(spec.MessageHead(identifier="1"), b"z" * 9000), "", 3)
    channel.write(spec.ChannelAck(confirm_tag=4, message_nbr=1))
    _feed(engine, octets)


def stream_accepted(octets: bytes) -> None:
    """All that a stranger may send, from the first octet on."""
    _feed(Engine(EndpointRole.SERVER, 0.0, _LIMITS), octets)


def _feed(engine: Engine, octets: bytes) -> None:
    # The client's own message waits for the server's leave to be written at all.
    feed(engine, octets, settle=_settle, check=_check, spare=32_768)


def _settle(engine: Engine, output: bytearray) -> None:
    for event in events_of(engine):
        with contextlib.suppress(LocalProtocolError):  # the peer has said more meanwhile
            if isinstance(event, Initiated):
                engine.challenge("NONE PLAIN", {}, 1.0)
            elif isinstance(event, Responded):
                engine.accept_login(1.0)
            elif isinstance(event, OpenRequested):
                engine.owner = event.open.client_name
                engine.accept_open(1.0)
    for channel in engine.take_touched():
        for arrival in arrivals_of(channel):
            with contextlib.suppress(LocalProtocolError):
                _answer(engine, channel, arrival)
    output += octets_of(engine)


def _answer(engine: Engine, channel: Any, arrival: Any) -> None:
    command, handle = arrival.command, arrival.handle
    if engine.role is EndpointRole.CLIENT:
        if isinstance(command, spec.HandleNotify):
            channel.write(spec.ChannelAck(message_nbr=command.message_nbr))
        return
    tag = getattr(command, "confirm_tag", 0)
    if isinstance(command, spec.HandleConsume):
        handle.notify(Message(spec.MessageHead(identifier="n"), b"x" * 20), "q")
    if tag and handle is not None:
        handle.write(spec.HandleReply(handle_id=handle.id, confirm_tag=tag))
    elif tag:
        channel.write(spec.ChannelReply(channel_id=channel.id, confirm_tag=tag))


def _check(octets: bytes) -> None:
    """What is written is commands that the second reader takes, and their codes are those that octets deserve."""
    for number, values, _ in naive.read(octets.removeprefix(INITIATION)):
        assert number in naive.COMMANDS, number
        if number in _CODE_AT:
            assert values[_CODE_AT[number]] in _CODES, (number, values)


_CODE_AT: Final = {
    plan.id: names.index("reply_code")
    for plan in spec.COMMANDS
    if "reply_code" in (names := [name for name, _ in plan.fields])
}

_CLIENT: Final = [
    written(
        spec.ChannelOpen(channel_id=2, transacted=True, confirm_tag=1),
        spec.HandleOpen(channel_id=2, handle_id=2, confirm_tag=2, **QUEUE),
        spec.HandleConsume(handle_id=2, confirm_tag=3, prefetch=2, selector=b"a=1"),
        spec.HandleFlow(handle_id=2, flow_pause=True),
        spec.HandleQuery(handle_id=2, selector=b"a=1"),
        spec.HandleBrowse(handle_id=2, confirm_tag=4, message_nbr=1),
        spec.HandleUnget(handle_id=2, message_nbr=1),
        spec.ChannelAck(channel_id=2, message_nbr=1),
        spec.ChannelCommit(channel_id=2, confirm_tag=5),
        spec.ChannelRollback(channel_id=2, confirm_tag=6),
        spec.HandleCancel(handle_id=2, confirm_tag=7),
        spec.HandleClose(handle_id=2),
        spec.ChannelClose(channel_id=2),
    ),
    written(spec.HandleConsume(handle_id=1, prefetch=5), spec.ChannelAck(channel_id=1, message_nbr=1))
    + sending(confirm_tag=1)
    + sending(dest_name="other"),
    written(
        spec.HandlePrepare(handle_id=1, fragment_size=len(block_of(Message(spec.MessageHead(), b"part"))))
    )
    + block_of(Message(spec.MessageHead(), b"part"))
    + sending(confirm_tag=2),
    written(spec.ConnectionPing(respond=True), spec.HandleFlow(handle_id=1), spec.ConnectionClose()),
]
"""From a client to a server, on a connection with channel 1 and handle 1."""

_SERVER: Final = [
    written(
        spec.HandleReply(handle_id=1, confirm_tag=1),
        spec.HandleIndex(handle_id=1, message_nbr=2, message_list=b"1-2"),
        spec.HandleReady(handle_id=1, message_size=0),
        spec.HandleCreated(handle_id=1, dest_name="made"),
        spec.ChannelReply(channel_id=1, confirm_tag=4),
        spec.HandleReply(handle_id=1, confirm_tag=2, reply_code=404, reply_text="NOT_FOUND"),
    )
    + notifying(message_nbr=1, delivered=True)
    + notifying(message_nbr=2, delivered=True, redelivered=True),
    written(
        spec.ConnectionPing(respond=True),
        spec.HandleClose(handle_id=1, reply_code=404, reply_text="NOT_FOUND"),
        spec.ChannelClose(channel_id=1, reply_code=506),
        spec.ConnectionClose(reply_code=310),
    ),
]
"""From a server to the client of ``dialled``."""

_OPENED: Final = INITIATION + written(
    spec.ConnectionResponse(mechanism="NONE"),
    spec.ConnectionTune(options={"FRAME_MAX": 1024}),
    spec.ConnectionOpen(client_name="ada", confirm_tag=1),
    spec.ChannelOpen(channel_id=1, restartable=True),
    spec.HandleOpen(channel_id=1, handle_id=1, **QUEUE),
)
_FRAMING: Final = Framing(size_at=0, width=2, head=2, tail=b"\xce", counted=2)
_FED: Final[Any] = {"steps": (60_000, 100), "memory": (512 * 1024, 64), "framing": _FRAMING}

TARGETS: Final = {
    "fast-commands": FuzzTarget(commands, [plan.made().encode() for plan in spec.COMMANDS]),
    "fast-messages": FuzzTarget(
        messages,
        [
            block_of(Message(spec.MessageHead(identifier="1", headers={"a": "1"}), b"x" * size))
            for size in (0, 9)
        ],
    ),
    "fast-selectors": FuzzTarget(selectors, [b"a=1", b"a=1 b=2 c"]),
    "fast-lists": FuzzTarget(lists, [b"1-2", b"1 3-7 9 40-4000"]),
    "fast-served": FuzzTarget(served, _CLIENT, share=5, **_FED),
    "fast-dialled": FuzzTarget(dialled, _SERVER, share=3, **_FED),
    "fast-stream-accepted": FuzzTarget(
        stream_accepted, [_OPENED + each for each in _CLIENT], share=3, **_FED
    ),
}
"""By name; names of corpus files begin so."""
