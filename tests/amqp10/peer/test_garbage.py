"""Nothing is left to the garbage collector of a connection that ended before it had links: what peers cause again and again."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header, raw_frame

from .helpers import acceptor, stream_pair

if TYPE_CHECKING:
    from trio.testing import MockClock

OPEN = header("amqp") + frame("open", container_id="x")
BEGIN = OPEN + frame("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)
GUESS = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ann\0wrong")

CONVERSATIONS = {
    "nothing": b"",
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "half a header": header("amqp")[:4],
    "a wrong password": header("sasl") + GUESS,
    "SASL in the wrong order": header("sasl") + frame("sasl-outcome", code=0),
    "half an open": OPEN[:-3],
    "an open that is not UTF-8": header("amqp") + raw_frame(b"\x00\x53\x10\xc0\x04\x01\xa1\x01\xff"),
    "an open": OPEN,
    "an open and a close": OPEN + frame("close"),
    "a session": BEGIN,
    "a session and a close": BEGIN + frame("close"),
    "half a frame on a session": BEGIN + frame("end")[:-1],
    "a session that was ended, and a close": BEGIN + frame("end") + frame("close"),
    "a frame that cannot be read": BEGIN + raw_frame(b"\x00\x53\x14" + bytes(range(200))),
}
CONTAINER = amqp.Container("container")
USERS = amqp.sasl.Server(users={"ann": "s3cret"})
ACCEPTORS = {
    asks: acceptor(sasl=sasl, vet=CONTAINER.vet)
    for asks, sasl in ((True, USERS), (False, amqp.sasl.Server()))
}


async def converse(octets: bytes, *, goes: bool) -> None:
    """A peer that says this, and goes at once, or reads what there is to read and then goes."""
    ours, theirs = await stream_pair("unix")  # in memory they would be a cycle themselves
    async with trio.open_nursery() as nursery:
        accepting = ACCEPTORS[octets.startswith(header("sasl"))]
        nursery.start_soon(accepting.run, theirs, CONTAINER.handle)
        await ours.send_all(octets)
        await wait_all_tasks_blocked()
        if not goes:
            with trio.move_on_after(20):
                while await ours.receive_some():
                    pass
        await ours.aclose()


@pytest.mark.parametrize("goes", [False, True])
@pytest.mark.parametrize("said", CONVERSATIONS)
async def test_connection_that_is_over_leaves_no_cycle(
    said: str, goes: bool, autojump_clock: MockClock, no_collector: None
) -> None:
    await converse(CONVERSATIONS[said], goes=goes)  # what is made once is made
    gc.collect()
    gc.freeze()
    for _ in range(3):
        await converse(CONVERSATIONS[said], goes=goes)
    assert gc.collect() == 0
