"""What a client of 0-9-1 that reads nothing says, for ``test_memory``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.amqp091.pairs import written
from tests.amqp091.server.script import Client
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, frame

from .memory_scripts import PART, QUEUE, ROOM, MemoryScript, plain, sent_by_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    import trio


def content(method: Any, body: bytes = b"", *, properties: Any = None, size: int | None = None) -> bytes:
    """A method with its header, which announces ``size`` octets, and one body frame."""
    head = write_header(Content(properties or BasicProperties(), body), USUAL, method.plan.class_id)
    if size is not None:
        head = head[:4] + size.to_bytes(8, "big") + head[12:]
    octets = written(method, 1) + frame(HEADER, 1, head)
    return octets + (frame(BODY, 1, body) if body else b"")


async def _open(stream: trio.abc.Stream) -> None:
    await Client(stream).open()


_PLAIN: Final = (
    *(name for name in sorted(sent_by_clients(spec.METHODS)) if name.startswith("connection.")),
    "channel.flow-ok",
    "channel.close-ok",
    "access.request",
    "basic.cancel-ok",
    "tx.rollback",
    "tx.commit",
    "confirm.select",
)
_RECOVER: Final = written(spec.BasicRecover(requeue=True), 1)
_REPEATED: Final = {
    **{name: plain(spec.METHODS, written, name) for name in _PLAIN},
    "channel.open": b"".join(written(spec.ChannelOpen(), number) for number in range(2, 50)),
    "channel.close": written(spec.ChannelClose(), 7) + written(spec.ChannelOpen(), 7),
    "channel.flow": written(spec.ChannelFlow(active=True), 1),
    "exchange.declare": written(spec.ExchangeDeclare(exchange="e"), 1),
    "exchange.delete": written(spec.ExchangeDelete(exchange="e"), 1),
    "exchange.bind": written(spec.ExchangeBind(destination="amq.fanout", source="amq.direct"), 1),
    "exchange.unbind": written(spec.ExchangeUnbind(destination="amq.fanout", source="amq.direct"), 1),
    "queue.declare": written(spec.QueueDeclare(queue=QUEUE, passive=True), 1),
    "queue.bind": written(spec.QueueBind(queue=QUEUE, exchange="amq.fanout"), 1),
    "queue.unbind": written(spec.QueueUnbind(queue=QUEUE, exchange="amq.fanout"), 1),
    "queue.purge": written(spec.QueueDeclare(queue="own"), 1) + written(spec.QueuePurge(queue="own"), 1),
    "queue.delete": written(spec.QueueDelete(queue="none"), 1),
    "basic.qos": written(spec.BasicQos(prefetch_count=1), 1),
    "basic.consume": written(spec.BasicConsume(queue=QUEUE, consumer_tag="c"), 1)
    + _RECOVER
    + written(spec.BasicCancel(consumer_tag="c"), 1),
    "basic.cancel": written(spec.BasicCancel(consumer_tag="none"), 1),
    "basic.publish": content(spec.BasicPublish(routing_key="none", mandatory=True), PART),
    "basic.get": written(spec.BasicGet(queue=QUEUE), 1) + _RECOVER,
    "basic.ack": written(spec.BasicGet(queue="empty"), 1) + written(spec.BasicAck(multiple=True), 1),
    "basic.nack": written(spec.BasicGet(queue=QUEUE), 1) + written(spec.BasicNack(multiple=True), 1),
    "basic.reject": written(spec.BasicGet(queue=QUEUE), 1) + written(spec.BasicNack(multiple=True), 1),
    "basic.recover": written(spec.BasicConsume(queue=QUEUE, consumer_tag="c", no_wait=True), 1)
    + 20 * _RECOVER
    + written(spec.BasicCancel(consumer_tag="c", no_wait=True), 1),
    "basic.recover-async": written(spec.BasicGet(queue=QUEUE), 1)
    + written(spec.BasicRecoverAsync(requeue=True), 1),
    "tx.select": written(spec.TxSelect(), 1)
    + content(spec.BasicPublish(routing_key="none", mandatory=True), PART)
    + written(spec.TxCommit(), 1),
}


_TIMES: Final = (50, 5)
"""Frames that are sent at once: small ones, and large ones."""


def _bodies(payload: bytes) -> Iterator[bytes]:
    """An incomplete content on a channel of its own, and body frames of this payload."""
    yield content(spec.BasicPublish(routing_key=QUEUE), size=100 * 1024 * 1024)
    while True:
        yield _TIMES[len(payload) > 99] * frame(BODY, 1, payload)


_TABLE: Final = write_header(
    Content(BasicProperties(headers={f"{number:04}": True for number in range(4_000)}), b""), USUAL
)


def _headers() -> Iterator[bytes]:
    """Headers of large properties on one channel after another."""
    head = _TABLE[:4] + (100).to_bytes(8, "big") + _TABLE[12:]
    for number in range(2, 2047):
        opened = written(spec.ChannelOpen(), number)
        yield opened + written(spec.BasicPublish(routing_key=QUEUE), number) + frame(HEADER, number, head)


def _announced() -> Iterator[bytes]:
    """Nothing but announcements: of contents that are larger than a message may be."""
    while True:
        yield content(spec.BasicPublish(routing_key=QUEUE), size=2**60)
        yield written(spec.ChannelCloseOk(), 1) + written(spec.ChannelOpen(), 1)


MEMORY_091: Final = MemoryScript(
    names=sent_by_clients(spec.METHODS),
    dialect=lambda container: Amqp091(container, limits=Limits(write_buffer=ROOM)),
    open=_open,
    repeated=_REPEATED,
    partial={
        "bodies": partial(_bodies, PART),
        "small bodies": partial(_bodies, b"x"),
        "empty bodies": partial(_bodies, b""),
        "headers": _headers,
        "announced": _announced,
    },
    refusal=b"RESOURCE_ERROR",
)
