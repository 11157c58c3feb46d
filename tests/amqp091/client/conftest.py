"""A broker in memory, and connections to it; see ``broker``."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10 import amqp091
from trio_amqp10.net import dialling_base

from .broker import Broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

URL = "amqp091://guest:secret@broker"


@pytest.fixture
def brokered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractAsyncContextManager[Broker]]:
    """``async with brokered() as broker``: dialling any URL reaches it."""

    @asynccontextmanager
    async def made(**options: Any) -> AsyncIterator[Broker]:
        async with trio.open_nursery() as nursery:
            broker = Broker(nursery, **options)
            monkeypatch.setattr(dialling_base, "connect", broker.dial)
            monkeypatch.setattr(dialling_base, "is_private", lambda _stream: True)
            try:
                yield broker
            finally:
                broker.sever()
                nursery.cancel_scope.cancel()

    return made


@pytest.fixture
def connected(
    brokered: Callable[..., AbstractAsyncContextManager[Broker]],
) -> Callable[..., AbstractAsyncContextManager[tuple[Broker, amqp091.Connection]]]:
    """``async with connected() as (broker, connection)``."""

    @asynccontextmanager
    async def made(**options: Any) -> AsyncIterator[tuple[Broker, amqp091.Connection]]:
        async with brokered() as broker, amqp091.open_connection(URL, **options) as connection:
            yield broker, connection

    return made
