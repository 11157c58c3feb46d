"""Targets of 10.3: its methods and contents, and both roles of the engine with a channel."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from tests.amqp_10_3 import naive
from tests.amqp_10_3.pairs import OPENING, open_client, open_server, server_engine, written
from tests.engine_pairs import events_of
from trio_amqp10.amqp091.engine.events import OpenRequested, StartAnswered
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import Content, read_header, write_header
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import BODY, HEADER
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, TRACE
from trio_amqp10.amqp_10_3.wire.properties import PROPERTIES
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError

from .feeding import feed
from .mutate import Framing
from .target import FuzzTarget

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.engine import Engine
    from trio_amqp10.amqp091.wire.methods import Method

_LIMITS: Final = Limits(max_message_size=4096, max_partial=8192)
_CODES: Final = frozenset(
    (200, 310, 311, 312, 320, 402, 403, 404, 405, 406, 501, 502, 503, 504, 505, 506, 530, 540)
)
"""Codes of closes with which octets are answered; 541 (internal-error) is none of them."""


def methods(octets: bytes) -> None:
    method = spec.METHODS.read(octets, FIVE)
    with contextlib.suppress(LocalProtocolError):  # what the peer may have sent, and we may not
        again = method.plan.write(method, FIVE)
        read = spec.METHODS.read(again, FIVE)
        assert read.plan.write(read, FIVE) == again


def headers(octets: bytes) -> None:
    expected = PROPERTIES.get(int.from_bytes(octets[:2], "big"))
    if expected is None:
        return
    properties = read_header(octets, FIVE, expected).properties
    with contextlib.suppress(LocalProtocolError):
        again = properties.encode(FIVE)
        assert expected.decode(again, 0, FIVE).encode(FIVE) == again


def served(octets: bytes) -> None:
    """What a client may send on a connection with two channels."""
    _feed(open_server(_LIMITS, channels=2), octets)


def dialled(octets: bytes) -> None:
    """What a server may send to a client with a channel, on which it has asked for this and that."""
    client, channel = open_client(_LIMITS)
    channel.send(spec.QueueDeclare(queue="q"))
    channel.send(spec.BasicConsume(queue="q", consumer_tag="c"))
    channel.send(spec.FileOpen(identifier="f", content_size=10))
    _feed(client, octets)


def stream_accepted(octets: bytes) -> None:
    """All that a stranger may send, from the first octet on."""
    _feed(server_engine(_LIMITS), octets)


def _feed(engine: Engine, octets: bytes) -> None:
    feed(engine, octets, settle=_settle, check=_check, spare=16_384)


def _settle(engine: Engine, output: bytearray) -> None:
    for event in events_of(engine):
        with contextlib.suppress(LocalProtocolError):  # the peer has said more meanwhile
            if isinstance(event, StartAnswered):
                engine.accept_login("ada", 1.0)
            elif isinstance(event, OpenRequested):
                engine.accept_open(1.0)
    for channel in engine.take_touched():
        while (arrival := channel.next_arrival()) is not None:
            with contextlib.suppress(LocalProtocolError):
                _answer(engine, channel, arrival)
    output += engine.data_to_send() or b""


def _answer(engine: Engine, channel: Any, arrival: Any) -> None:
    plan = arrival.method.plan
    if engine.role is EndpointRole.CLIENT:
        if plan.name == "basic.deliver":
            channel.send(spec.BasicAck(delivery_tag=arrival.method.delivery_tag))
        return
    for each in spec.METHODS:
        if type(arrival.method) in each.answers and not each.content:
            channel.send(each.made())
            return


def _check(octets: bytes) -> None:
    """What is written is frames that the second reader takes, and its closes have a code that octets deserve."""
    for kind, _, payload in naive.frames(octets.removeprefix(OPENING[:8])):
        if kind == 1:
            name, arguments = naive.method(payload)
            assert not name.endswith(".close") or arguments[0] in _CODES, (name, arguments)


def _said(*methods: Method, channel: int = 1) -> bytes:
    """Methods, each with a content in two parts where it carries one."""
    octets = b""
    for method in methods:
        octets += written(method, channel)
        if method.plan.content:
            class_id = method.plan.class_id
            content = Content(PROPERTIES[class_id](), b"octets")
            octets += FRAMES.frame(HEADER, channel, write_header(content, FIVE, class_id))
            octets += FRAMES.frame(BODY, channel, b"oct") + FRAMES.frame(TRACE, 0, b"")
            octets += FRAMES.frame(BODY, channel, b"ets")
    return octets


_OPENED: Final = OPENING + _said(spec.ChannelOpen()) + _said(spec.ChannelOpen(), channel=2)

_CLIENT: Final = [
    _said(
        spec.AccessRequest(passive=True, active=True, write=True, read=True),
        spec.ExchangeDeclare(exchange="e", type="topic"),
        spec.QueueDeclare(queue="q", arguments={"x_max_length": 5}),
        spec.QueueBind(queue="q", exchange="e", routing_key="a.#"),
        spec.BasicPublish(routing_key="q", mandatory=True),
        spec.BasicConsume(queue="q", consumer_tag="c", prefetch_count=3),
        spec.BasicGet(queue="q"),
        spec.BasicCancel(consumer_tag="c"),
        spec.QueuePurge(queue="q"),
        spec.QueueDelete(queue="q"),
    ),
    _said(
        spec.FileOpen(identifier="f", content_size=6),
        spec.FileStage(),
        spec.FilePublish(routing_key="q", identifier="f"),
        spec.FileConsume(queue="q", consumer_tag="f"),
        spec.StreamConsume(queue="q", consumer_tag="s", consume_rate=100),
        spec.StreamPublish(routing_key="q"),
        spec.TunnelRequest(meta_data={"a": 1}),
    ),
    _said(spec.TxSelect(), spec.BasicPublish(routing_key="q"), spec.TxCommit(), spec.TxRollback(), channel=2),
    _said(
        spec.TestInteger(integer_1=1, integer_2=2, operation=1),
        spec.TestString(string_1="a", string_2=b"b", operation=1),
        spec.TestTable(table={"a": 1, "b": "c"}, integer_op=1, string_op=1),
        spec.TestContent(),
        spec.ChannelFlow(active=False),
        spec.ChannelClose(reply_code=200),
    )
    + FRAMES.heartbeat
    + _said(spec.ClusterBind(exchange="e", routing_key="a"), spec.ConnectionClose(reply_code=200), channel=0),
]
"""From a client to a server, on a connection with channels 1 and 2."""

_SERVER: Final = [
    _said(
        spec.QueueDeclareOk(queue="q", message_count=1),
        spec.BasicConsumeOk(consumer_tag="c"),
        spec.FileOpenOk(staged_size=3),
        spec.BasicDeliver(consumer_tag="c", delivery_tag=1, routing_key="q"),
        spec.BasicReturn(reply_code=312, reply_text="NO_ROUTE", routing_key="q"),
        spec.ChannelAlert(reply_code=310, reply_text="x"),
        spec.TestInteger(integer_1=1, integer_2=2, operation=1),
        spec.ChannelFlow(active=False),
        spec.ChannelClose(reply_code=404, reply_text="NOT_FOUND"),
    )
    + FRAMES.heartbeat
    + _said(spec.ConnectionClose(reply_code=320), channel=0),
]
"""From a server to the client of ``dialled``."""

_FRAMING: Final = Framing(size_at=4, head=8, tail=b"\xce", counted=9)
_FED: Final[Any] = {"steps": (60_000, 100), "memory": (512 * 1024, 64), "framing": _FRAMING}

TARGETS: Final = {
    "10.3-methods": FuzzTarget(methods, [plan.write(plan.made(), FIVE) for plan in spec.METHODS]),
    "10.3-headers": FuzzTarget(
        headers,
        [write_header(Content(each(), b""), FIVE, class_id) for class_id, each in PROPERTIES.items()],
    ),
    "10.3-served": FuzzTarget(served, _CLIENT, share=5, **_FED),
    "10.3-dialled": FuzzTarget(dialled, _SERVER, share=3, **_FED),
    "10.3-stream-accepted": FuzzTarget(
        stream_accepted, [_OPENED + each for each in _CLIENT], share=3, **_FED
    ),
}
"""By name; names of corpus files begin so."""
