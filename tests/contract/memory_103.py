"""What a client of 10.3 that reads nothing says, for ``test_memory``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.amqp_10_3.pairs import written
from tests.amqp_10_3.server.script import ALL, Client
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import Content, write_header
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import BODY, HEADER
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_10_3.wire.frames import FRAMES

from .memory_scripts import PART, QUEUE, ROOM, MemoryScript, plain, sent_by_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

    import trio


def content(method: Any, body: bytes = b"", *, size: int | None = None) -> bytes:
    """A method with its header, which announces ``size`` octets, and one body frame."""
    number = method.plan.class_id
    head = write_header(Content(V10_3.properties[number](), body), FIVE, number)
    if size is not None:
        head = head[:4] + size.to_bytes(8, "big") + head[12:]
    octets = written(method, 1) + FRAMES.frame(HEADER, 1, head)
    return octets + (FRAMES.frame(BODY, 1, body) if body else b"")


async def _open(stream: trio.abc.Stream) -> None:
    await Client(stream).open()


_STAGED: Final = written(spec.FileOpen(identifier="f", content_size=len(PART)), 1) + content(
    spec.FileStage(), PART
)
_REOPEN: Final = written(spec.ChannelClose(), 1) + written(spec.ChannelOpen(), 1)
_PLAIN: Final = (
    *(
        name
        for name in sorted(sent_by_clients(spec.METHODS))
        if name.startswith(("connection.", "cluster.", "dtx.", "tx.", "test.integer", "test.table"))
    ),
    "channel.flow-ok",
    "channel.close-ok",
    "test.string-ok",
    "file.open-ok",
)
_REPEATED: Final = {
    **{name: plain(spec.METHODS, written, name) for name in _PLAIN},
    "channel.open": b"".join(written(spec.ChannelOpen(), number) for number in range(2, 50)),
    "channel.close": written(spec.ChannelClose(), 7) + written(spec.ChannelOpen(), 7),
    "channel.flow": written(spec.ChannelFlow(active=True), 1),
    "access.request": written(ALL, 1),
    "exchange.declare": written(spec.ExchangeDeclare(exchange="e", type="direct"), 1),
    "exchange.delete": written(spec.ExchangeDelete(exchange="none"), 1),
    "queue.declare": written(spec.QueueDeclare(queue=QUEUE, passive=True), 1),
    "queue.bind": written(spec.QueueBind(queue=QUEUE, exchange="amq.fanout"), 1),
    "queue.purge": written(spec.QueueDeclare(queue="own"), 1) + written(spec.QueuePurge(queue="own"), 1),
    "queue.delete": written(spec.QueueDelete(queue="none"), 1),
    "basic.consume": written(spec.BasicConsume(queue=QUEUE, consumer_tag="c"), 1) + _REOPEN,
    "basic.cancel": written(spec.BasicCancel(consumer_tag="none"), 1),
    "basic.publish": content(spec.BasicPublish(routing_key="none", mandatory=True), PART),
    "basic.get": written(spec.BasicGet(queue=QUEUE), 1) + _REOPEN,
    "basic.ack": written(spec.BasicGet(queue="empty"), 1) + written(spec.BasicAck(multiple=True), 1),
    "basic.reject": written(spec.BasicGet(queue=QUEUE), 1) + written(spec.BasicReject(requeue=True), 1),
    "file.consume": written(spec.FileConsume(queue=QUEUE, consumer_tag="f"), 1) + _REOPEN,
    "file.cancel": written(spec.FileCancel(consumer_tag="none"), 1),
    "file.open": written(spec.FileOpen(identifier="f", content_size=10), 1),
    "file.stage": _STAGED,
    "file.publish": _STAGED
    + written(spec.FilePublish(routing_key="none", mandatory=True, identifier="f"), 1),
    "file.ack": written(spec.FileAck(multiple=True), 1),
    "file.reject": written(spec.FileReject(delivery_tag=1), 1),
    "stream.consume": written(spec.StreamConsume(queue=QUEUE, consumer_tag="s", prefetch_size=1 << 31), 1)
    + _REOPEN,
    "stream.cancel": written(spec.StreamCancel(consumer_tag="none"), 1),
    "stream.publish": content(spec.StreamPublish(routing_key="none", mandatory=True), PART),
    "tunnel.request": content(spec.TunnelRequest(), PART),
    "test.string": written(spec.TestString(string_1="a", string_2=b"b" * 1000), 1),
    "test.content": content(spec.TestContent(), PART),
    "test.content-ok": content(spec.TestContentOk(), PART),
}


_TIMES: Final = (50, 5)
"""Frames that are sent at once: small ones, and large ones."""


def _bodies(payload: bytes) -> Iterator[bytes]:
    yield content(spec.BasicPublish(routing_key=QUEUE), size=100 * 1024 * 1024)
    while True:
        yield _TIMES[len(payload) > 99] * FRAMES.frame(BODY, 1, payload)


def _files() -> Iterator[bytes]:
    """Files that are staged whole and never published, of one name after another."""
    number = 0
    while True:
        number += 1
        yield written(spec.FileOpen(identifier=f"f{number}", content_size=len(PART)), 1) + content(
            spec.FileStage(), PART
        )


def _files_in_part() -> Iterator[bytes]:
    """Files that break off, on one channel after another."""
    head = write_header(Content(V10_3.properties[70](), b""), FIVE, 70)
    head = head[:4] + (1 << 20).to_bytes(8, "big") + head[12:]
    for number in range(2, 1000):
        yield b"".join(
            (
                written(spec.ChannelOpen(), number),
                written(spec.FileOpen(identifier=f"f{number}", content_size=1 << 20), number),
                written(spec.FileStage(), number),
                FRAMES.frame(HEADER, number, head),
                10 * FRAMES.frame(BODY, number, PART),
                written(spec.ChannelClose(), number),
            )
        )


def _announced() -> Iterator[bytes]:
    while True:
        yield content(spec.BasicPublish(routing_key=QUEUE), size=2**60)
        yield written(spec.ChannelCloseOk(), 1) + written(spec.ChannelOpen(), 1)


MEMORY_103: Final = MemoryScript(
    names=sent_by_clients(spec.METHODS),
    dialect=lambda container: Amqp103(container, tickets=False, limits=Limits(write_buffer=ROOM)),
    open=_open,
    repeated=_REPEATED,
    partial={
        "bodies": partial(_bodies, PART),
        "small bodies": partial(_bodies, b"x"),
        "whole files": _files,
        "files in part": _files_in_part,
        "announced": _announced,
    },
    refusal=b"RESOURCE_ERROR",
)
