"""A block in a thread raises what entering, leaving and running raise."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.testing.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def test_in_thread_raises_what_entering_and_leaving_raise() -> None:
    class Manager:
        def __init__(self, *, entering: bool) -> None:
            self.entering = entering

        async def __aenter__(self) -> str:
            if self.entering:
                raise KeyError("entering")
            return threading.current_thread().name

        async def __aexit__(self, *args: object) -> None:
            raise KeyError("leaving")

    with pytest.raises(KeyError, match="entering"), in_thread(Manager(entering=True), "one"):  # type: ignore[arg-type]
        pass
    with (
        pytest.raises(KeyError, match="leaving"),
        in_thread(Manager(entering=False), "one") as name,  # type: ignore[arg-type]
    ):
        assert name == "one"
    assert "one" not in [thread.name for thread in threading.enumerate()]


def test_in_thread_raises_what_failed_while_the_block_ran() -> None:
    from contextlib import asynccontextmanager

    failed = threading.Event()

    @asynccontextmanager
    async def failing() -> AsyncIterator[None]:
        async def fail() -> None:
            failed.set()
            raise OSError("broken")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            yield

    with pytest.raises(ExceptionGroup) as raised, in_thread(failing(), "two"):
        assert failed.wait(5)
        while any(thread.name == "two" for thread in threading.enumerate()):
            pass
    assert isinstance(raised.value.exceptions[0], OSError)
