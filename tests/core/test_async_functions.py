"""A function that is not async is refused where it is given; whatever may return an awaitable is taken."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from trio_amqp10.core.async_functions import require_async
from trio_amqp10.core.errors import LocalProtocolError


async def good(_: object) -> None: ...


def bad(_: object) -> None: ...


async def generator(_: object) -> Any:
    yield 1


@functools.wraps(good)
def wrapper(*args: Any) -> Any:
    return good(*args)


class Callable:
    async def __call__(self, _: object) -> None: ...


@pytest.mark.parametrize("function", [good, wrapper, functools.partial(good), Callable(), lambda x: good(x)])
def test_function_that_may_return_an_awaitable_is_taken(function: Any) -> None:
    require_async(function, "it")


@pytest.mark.parametrize("function", [bad, generator])
def test_function_that_is_not_async_is_refused_with_the_way_out(function: Any) -> None:
    with pytest.raises(
        LocalProtocolError, match=rf"^it requires an async function: write async def {function.__name__}"
    ):
        require_async(function, "it")


def test_value_that_is_not_callable_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="it requires an async function, not 3"):
        require_async(3, "it")  # type: ignore[arg-type]
