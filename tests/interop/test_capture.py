"""What we write, as tshark reads it: a second opinion on every frame.

The corpus here is the small one: tshark looks for whole message sections in each transfer, and calls
every part of a message that was split malformed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from .corpus import SMALL
from .ours import receive_from, send_to, serving, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from .peers import Capture, Client
    from .rabbitmq import Broker

COUNT = 300
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, CLOSE = 16, 17, 18, 19, 20, 21, 22, 24


def check(seen: Capture, transfers: int) -> None:
    """Nothing malformed, and every transfer was understood as one."""
    assert seen.read("_ws.malformed") == []
    found = [int(word) for line in seen.read("amqp", "amqp.performative") for word in line.split(",") if word]
    assert found.count(TRANSFER) == transfers
    for performative in (OPEN, BEGIN, ATTACH, CLOSE):
        assert found.count(performative) >= 2, f"performative {performative} is not there twice"
    assert {FLOW, DISPOSITION, DETACH} <= set(found)


def test_tshark_finds_nothing_malformed_when_we_dial_a_peer(
    peer: Client, capture: Callable[[int], Capture]
) -> None:
    with peer.listen() as listener, capture(listener.port) as seen:
        within(send_to, listener.url, "q", COUNT, False, SMALL)
        within(receive_from, listener.url, f"generate-{COUNT}-{SMALL}", COUNT, False)
    check(seen, 2 * COUNT)


def test_tshark_finds_nothing_malformed_when_a_peer_dials_us(
    peer: Client, capture: Callable[[int], Capture]
) -> None:
    async def run() -> Capture:
        async with serving() as node:
            seen = capture(int(node.url.rpartition(":")[2]))
            await trio.to_thread.run_sync(lambda: converse(seen, node.url))
        return seen

    def converse(seen: Capture, url: str) -> None:
        with seen:
            peer.run("send", url, "q", COUNT, seed=SMALL)
            peer.run("receive", url, f"generate-{COUNT}-{SMALL}", COUNT)

    check(within(run), 2 * COUNT)


@pytest.mark.parametrize("presettled", [False, True], ids=["unsettled", "presettled"])
def test_tshark_finds_nothing_malformed_when_a_broker_is_dialled(
    broker: Broker, presettled: bool, capture: Callable[[int], Capture]
) -> None:
    queue = broker.new_queue()
    with capture(broker.port) as seen:
        within(send_to, broker.url, queue, COUNT, presettled, SMALL)
        within(receive_from, broker.url, queue, COUNT, False)
    check(seen, 2 * COUNT)
