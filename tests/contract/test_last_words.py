"""A client whose peer opens wrongly writes its close before it ends the transport, whichever task runs first.

Where the peer speaks something else there is nothing to say, and nothing to wait for.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from trio_amqp10.core.errors import AmqpError

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from .last_words_scripts import LastWords

ORDERS = 30
DIALLING = {name: each.last_words for name, each in PROTOCOLS.items()}
WITH_WORDS = {name: words for name, words in DIALLING.items() if words.close}
STRANGERS = {
    "which is HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "which is SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "which is TLS": b"\x15\x03\x01\x00\x02\x02\x46" * 2,
    "which is (AMQP 0-10|another version of AMQP)": b"AMQP\x01\x01\x00\x0a",
    "J": b"\x4a\x00\x00\x00\x0a8.0.35\x00" + bytes(64),
}


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


@pytest.mark.parametrize(("named", "octets"), STRANGERS.items(), ids=STRANGERS)
@pytest.mark.parametrize("words", DIALLING.values(), ids=DIALLING)
async def test_peer_that_speaks_something_else_is_given_up_at_once(
    words: LastWords, named: str, octets: bytes, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    _ = autojump_clock
    for order in range(ORDERS):
        monkeypatch.setattr(trio._core._run, "_r", random.Random(order))
        ours, theirs = memory_stream_pair()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(theirs.send_all, octets)
            with pytest.raises(AmqpError, match=named):
                async with words.connect(ours):
                    raise AssertionError("it was opened")
        assert trio.current_time() == began
        await theirs.aclose()


def test_protocol_has_last_words_or_says_none() -> None:
    assert DIALLING.keys() - WITH_WORDS.keys() == {"0-9-1", "10.3"}
