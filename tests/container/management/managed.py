"""A container that is managed, and its questions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio_amqp10 as amqp
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Ask = Callable[..., Awaitable[tuple[int, Any]]]


@asynccontextmanager
async def managed(container: Container | None = None) -> AsyncGenerator[tuple[Container, Ask]]:
    """Yield a container, and a function that requests an operation of it.

    The function returns status and body, or status and description.
    """
    container = container or Container(strict=True)
    container.add_management()
    async with container.connect() as conn, conn.open_requester("$management") as requester:

        async def ask(operation: str | None, body: Any = None, **properties: Any) -> tuple[int, Any]:
            asked = {"operation": operation, **properties}
            reply = await requester.request(amqp.Message(body, application_properties=asked))
            told = reply.application_properties
            assert (reply.body is None) == (told["statusCode"] >= 300)
            if reply.body is not None and "results" in reply.body:
                assert told["count"] == len(reply.body["results"])
            return told["statusCode"], told["statusDescription"] if reply.body is None else reply.body

        yield container, ask
