"""Consumers of each protocol with the smallest limits that they may have, and a message that is too much for them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

from .loss_scripts import LOSS_SCRIPTS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.container import Container


class Receiving(Protocol):
    """Receives from the queue ``q``."""

    async def next(self) -> bytes:
        """Receive and accept the next message; its body."""
        ...


@dataclass(frozen=True, kw_only=True)
class NarrowConsumer:
    """A consumer of one protocol that is given as little at a time as the protocol has it.

    Attributes:
        serve: makes what serves a container.
        receive: consumes from the queue ``q``.
        get: asks the queue ``q`` for one message; None if the protocol has no such request.
        takes: whether it is given a message with 20 kB of headers all the same: 0-9-1 and 10.3 have no way to split headers.
    """

    serve: Callable[[Container], Any]
    receive: Callable[[], AbstractAsyncContextManager[Receiving]]
    get: Callable[[], Awaitable[bytes | None]] | None
    takes: bool


class _Next:
    def __init__(self, receive: Callable[[], Awaitable[Any]], accept: Callable[[Any], object]) -> None:
        self._receive = receive
        self._accept = accept

    async def next(self) -> bytes:
        delivery = await self._receive()
        self._accept(delivery)
        return bytes(delivery.body)


def _ack(delivery: Any) -> None:
    delivery.ack()


_NARROW_091: Final = amqp091.Limits(frame_max=4096)
_URLS: Final = {"0-9-1": "amqp091://guest:guest@server", "10.3": "amqp103://guest:guest@server"}


@asynccontextmanager
async def _receive_091() -> AsyncGenerator[Receiving]:
    async with (
        amqp091.open_connection(_URLS["0-9-1"], limits=_NARROW_091) as connection,
        connection.open_channel() as channel,
        channel.queue("q").consume() as consumer,
    ):
        yield _Next(consumer.receive, _ack)


async def _get_091() -> bytes | None:
    async with (
        amqp091.open_connection(_URLS["0-9-1"], limits=_NARROW_091) as connection,
        connection.open_channel() as channel,
    ):
        got = await channel.queue("q").get(no_ack=True)
        return None if got is None else got.body


@asynccontextmanager
async def _receive_103() -> AsyncGenerator[Receiving]:
    async with (
        amqp_10_3.open_connection(_URLS["10.3"], limits=_NARROW_091) as connection,
        connection.open_channel() as channel,
        channel.queue("q").consume() as consumer,
    ):
        yield _Next(consumer.receive, _ack)


async def _get_103() -> bytes | None:
    async with (
        amqp_10_3.open_connection(_URLS["10.3"], limits=_NARROW_091) as connection,
        connection.open_channel() as channel,
    ):
        got = await channel.queue("q").get(no_ack=True)
        return None if got is None else got.body


@asynccontextmanager
async def _receive_fast() -> AsyncGenerator[Receiving]:
    limits = amqp_fast.Limits(frame_max=1024)
    async with (
        amqp_fast.open_connection("amqp-fast://server", limits=limits) as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.consume()
        yield _Next(handle.receive, _ack)


@asynccontextmanager
async def _receive_10() -> AsyncGenerator[Receiving]:
    async with (
        amqp.open_connection("amqp://server") as connection,
        connection.open_receiver("q", max_message_size=10_000) as receiver,
    ):

        async def body() -> Any:
            delivery = await receiver.receive()
            delivery.accept()
            return delivery.message

        yield _Next(body, lambda _message: None)


UNTAKEABLE: Final = {
    "1.0": NarrowConsumer(
        serve=LOSS_SCRIPTS["1.0"].serve,
        receive=_receive_10,
        get=None,
        takes=False,
    ),
    "0-9-1": NarrowConsumer(
        serve=LOSS_SCRIPTS["0-9-1"].serve,
        receive=_receive_091,
        get=_get_091,
        takes=True,
    ),
    "10.3": NarrowConsumer(
        serve=LOSS_SCRIPTS["10.3"].serve,
        receive=_receive_103,
        get=_get_103,
        takes=True,
    ),
    "amqp-fast": NarrowConsumer(
        serve=LOSS_SCRIPTS["amqp-fast"].serve,
        receive=_receive_fast,
        get=None,
        takes=False,
    ),
}
"""By the name of the protocol."""
