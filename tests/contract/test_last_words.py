"""A client whose peer opens wrongly writes its close before it ends the transport, whichever task runs first."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from trio_amqp10.errors import AmqpError

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from .last_words_scripts import LastWords

ORDERS = 30
WITH_WORDS = {name: each.last_words for name, each in PROTOCOLS.items() if each.last_words is not None}


async def read_all(stream: trio.abc.Stream) -> bytes:
    """Everything that comes before the end."""
    found = b""
    try:
        async for data in stream:
            found += data
    except trio.BrokenResourceError:
        pass
    return found


@pytest.mark.parametrize("order", range(ORDERS))
@pytest.mark.parametrize("words", WITH_WORDS.values(), ids=WITH_WORDS)
async def test_close_is_written_before_the_transport_ends(
    words: LastWords, order: int, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    _ = autojump_clock
    monkeypatch.setattr(trio._core._run, "_r", random.Random(order))
    ours, theirs = memory_stream_pair()
    read = b""

    async def serve() -> None:
        nonlocal read
        await theirs.send_all(words.answers)
        read = await read_all(theirs)

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            with pytest.raises(AmqpError):
                async with words.connect(ours):
                    raise AssertionError("it was opened")
    assert words.close in read


def test_protocol_has_last_words_or_says_none() -> None:
    assert {name for name, each in PROTOCOLS.items() if each.last_words is None} == {"0-9-1", "10.3"}
