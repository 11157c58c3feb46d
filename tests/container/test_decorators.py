"""The decorators of a container refuse what cannot handle a message when they are applied."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import trio_amqp10 as amqp


def plain(_: object) -> Any: ...


@pytest.mark.parametrize("kind", ["function", "consumer", "producer"])
def test_decorator_refuses_a_function_that_is_not_async(kind: str) -> None:
    container = amqp.Container("shop")
    with pytest.raises(
        amqp.LocalProtocolError,
        match=rf"container.{kind}\('tea'\) requires an async function: write async def plain",
    ):
        getattr(container, kind)("tea")(plain)
    getattr(container, kind)("tea")(trio.sleep)  # the address is still free


async def test_serve_refuses_a_handler_that_is_not_async() -> None:
    with pytest.raises(amqp.LocalProtocolError, match=r"serve\(\) requires an async function"):
        await amqp.serve(plain, "amqp://127.0.0.1:0")
