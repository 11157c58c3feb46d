"""A stranger that says nothing has the time that the listener gives it, whatever protocol it began with, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.container.served import accepted
from trio_amqp10.container.dialects import DIALECTS, dialects_of

if TYPE_CHECKING:
    from trio.testing import MockClock

SECONDS: Final = 10.0
SLACK: Final = 1.5
"""What the pump waits for the peer to read our last words."""
HEADS: Final = {
    "0-9-1": b"AMQP\x00\x00\x09\x01",
    "10.3": b"AMQP\x01\x01\x0a\x03",
    "amqp-fast": b"\x80\x01",
}


@pytest.mark.parametrize("name", HEADS)
async def test_silent_stranger_is_sent_away_at_the_deadline_of_the_listener(
    name: str, autojump_clock: MockClock
) -> None:
    _ = autojump_clock
    (dialect,) = dialects_of(amqp.Container("hub"), [name])
    ours, theirs = memory_stream_pair()
    await theirs.send_all(HEADS[name])
    await trio.sleep(1)
    with trio.fail_after(60):
        began = trio.current_time()
        stranger = accepted(ours)
        await dialect.serve(replace(stranger, deadline=began + SECONDS))
        assert trio.current_time() - began <= SECONDS + SLACK


def test_every_protocol_of_methods_is_tried() -> None:
    assert HEADS.keys() == DIALECTS.keys() - {"1.0-draft-2010"}  # which has the handshake of 1.0
