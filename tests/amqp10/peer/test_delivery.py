"""Deliveries that come in: read, settled once, watched."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame, sections

from .helpers import Node, served
from .test_receiver import receiving, transfer

OUTCOMES: list[tuple[str, dict[str, Any], Any]] = [
    ("accept", {}, ("accepted", {})),
    ("release", {}, ("released", {})),
    ("reject", {}, ("rejected", {"error": ("error", {"condition": "amqp:internal-error"})})),
    (
        "reject",
        {"condition": "x:y", "description": "z"},
        ("rejected", {"error": ("error", {"condition": "x:y", "description": "z"})}),
    ),
    ("modify", {"delivery_failed": True}, ("modified", {"delivery_failed": True})),
    (
        "modify",
        {"undeliverable_here": True, "annotations": {"x-a": 1}},
        ("modified", {"undeliverable_here": True, "message_annotations": {"x-a": 1}}),
    ),
]


@pytest.mark.parametrize(("settle", "arguments", "state"), OUTCOMES)
async def test_delivery_is_settled_once_with_its_outcome(
    settle: str, arguments: dict[str, Any], state: Any, autojump_clock: MockClock
) -> None:
    async with receiving() as (receiver, peer):
        await peer.expect("flow")
        await peer.send(transfer(0))
        delivery = await receiver.receive()
        assert not delivery.settled
        assert delivery.state is None
        getattr(delivery, settle)(**arguments)
        assert delivery.settled
        assert delivery.state is not None
        await peer.expect("disposition", role=True, first=0, settled=True, state=state)
        await delivery.wait_settled()
        for again in (delivery.accept, delivery.reject, delivery.release, delivery.modify):
            with pytest.raises(amqp.LocalProtocolError, match="already given the outcome"):
                again()
        await peer.expect_nothing(1)


async def test_delivery_of_exactly_once_is_settled_by_the_sender_first(autojump_clock: MockClock) -> None:
    async with receiving() as (receiver, peer):
        receiver._link.rcv_settle_mode = amqp.ReceiverSettleMode.SECOND
        await peer.expect("flow")
        await peer.send(transfer(0))
        delivery = await receiver.receive()
        delivery.accept()
        assert not delivery.settled
        await peer.expect("disposition", first=0, settled=None, state=("accepted", {}))
        with trio.move_on_after(1) as scope:
            await delivery.wait_settled()
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(delivery.wait_settled)
            nursery.start_soon(delivery.wait_settled)
            await wait_all_tasks_blocked()
            await peer.send(frame("disposition", role=False, first=0, settled=True))
        assert delivery.settled


async def test_delivery_sent_settled_takes_an_outcome_and_tells_nobody(autojump_clock: MockClock) -> None:
    async with receiving(credit=5) as (receiver, peer):
        await peer.expect("flow")
        await peer.send(transfer(0, settled=True))
        delivery = await receiver.receive()
        assert delivery.settled
        await delivery.wait_settled()
        delivery.accept()
        assert isinstance(delivery.state, amqp.Accepted)
        await peer.expect_nothing(1)


async def test_dispositions_of_one_pass_are_one_frame(autojump_clock: MockClock) -> None:
    async with receiving(credit=100) as (receiver, peer):
        await peer.expect("flow")
        await peer.send(*(transfer(n) for n in range(40)))
        for delivery in await receiver.receive_many(40):
            delivery.accept()
        await peer.expect("disposition", first=0, last=39)
        await peer.expect_nothing(1)


async def test_message_is_read_when_it_is_asked_for(autojump_clock: MockClock) -> None:
    async with receiving() as (receiver, peer):
        payload = sections(("properties", {"subject": "s"}), ("data", b"one"), ("data", b"two"))
        await peer.send(
            frame("transfer", handle=0, delivery_id=0, delivery_tag=b"tag", payload=payload),
            frame("transfer", handle=0, delivery_id=1, delivery_tag=b"bad", payload=b"\x00\x53"),
        )
        delivery = await receiver.receive()
        assert delivery.tag == b"tag"
        assert delivery.payload == payload
        assert delivery.message_format == 0
        assert delivery.message.subject == "s"
        assert delivery.message.body == b"onetwo"
        assert delivery.message is delivery.message
        assert repr(delivery).startswith("<Delivery 746167")
        bad = await receiver.receive()
        with pytest.raises(amqp.RemoteProtocolError):
            _ = bad.message.body
        bad.reject("amqp:decode-error")
        assert not receiver.closed


async def test_unknown_kind_of_wait_is_ended_with_the_link() -> None:
    node = Node(bodies=("x",))
    async with served(node.handle) as conn, conn.open_receiver("q") as receiver:
        delivery = await receiver.receive()
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await delivery.wait_settled()

            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            await receiver.aclose()
