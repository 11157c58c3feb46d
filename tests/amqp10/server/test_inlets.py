"""The memory for a peer that sends and never settles is limited (2.6.12)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp10.engine.steps import steps
from tests.container.helpers import bodies, queue_of
from tests.container.wire import on_the_wire
from trio_amqp10.amqp10.engine.settlement import REMEMBERED
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, Target
from trio_amqp10.amqp10.spec.transport import (
    Attach,
    Detach,
    Disposition,
    Flow,
    ReceiverSettleMode,
    Role,
    Transfer,
)
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.broker.nodes.node import SubscriptionTerms
from trio_amqp10.broker.nodes.topic import Subscription

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.testing import ScriptedPeer

SECOND = {"rcv_settle_mode": ReceiverSettleMode.SECOND}


def receiving_end(container: amqp.Container) -> ReceiverLink:
    (conversation,) = container.conversations
    (link,) = conversation.connection.links
    return link._link  # type: ignore[no-any-return]  # pyright: ignore[reportPrivateUsage]


async def send(peer: ScriptedPeer, first: int, count: int, size: int) -> None:
    for number in range(first, first + count):
        message = amqp.Message(bytes(size)).to_payload()
        tag = number.to_bytes(4, "big")
        await peer.send(Transfer(handle=0, delivery_id=number, delivery_tag=tag), payload=message)


async def test_payload_is_dropped_when_the_queue_has_the_message_and_its_sender_does_not_settle() -> None:
    container = amqp.Container()
    async with on_the_wire(container) as peer:
        await peer.attach("q", Role.SENDER, **SECOND)
        await send(peer, 0, 3, 1000)
        await peer.skip_to(Disposition, first=0)
        await wait_all_tasks_blocked()
        kept = receiving_end(container).tags.values()
        assert [each.payload for each in kept] == [b"", b"", b""]
        assert [each.memo for each in kept] == [None] * 3
        queue = queue_of(container)
        assert len(queue) == 3
        async with container.connect() as conn, conn.open_receiver("q") as reader:
            assert await bodies(reader, 3) == [bytes(1000)] * 3


async def test_payload_stays_where_a_handler_has_the_delivery_and_counts() -> None:
    container = amqp.Container()
    seen: list[amqp.Delivery] = []

    @container.consumer("q")
    async def take(delivery: amqp.Delivery) -> None:
        seen.append(delivery)

    async with on_the_wire(container) as peer:
        await peer.attach("q", Role.SENDER, **SECOND)
        await send(peer, 0, 1, 1000)
        await peer.skip_to(Disposition, first=0)
        assert seen[0].message.body == bytes(1000)
        (conversation,) = container.conversations
        assert conversation.connection.engine.awaiting_settlement_octets == len(seen[0].payload) + REMEMBERED


async def test_sender_gets_no_credit_until_it_settles() -> None:
    container = amqp.Container(max_unsettled_octets=400 * REMEMBERED)
    async with on_the_wire(container) as peer:
        await peer.attach("q", Role.SENDER, **SECOND)
        await peer.skip_to(Flow, link_credit=1000)
        await send(peer, 0, 1000, 1)
        await wait_all_tasks_blocked()
        link = receiving_end(container)
        assert link.credit == 0
        assert len(link.tags) == 1000
        await peer.send(Disposition(role=Role.SENDER, first=0, last=599, settled=True))
        await wait_all_tasks_blocked()
        assert link.credit == 0
        await peer.send(Disposition(role=Role.SENDER, first=600, last=600, settled=True))
        await wait_all_tasks_blocked()
        assert link.credit == 1000
        assert len(queue_of(container)) == 1000


async def test_other_links_get_no_credit_either_until_the_link_is_closed() -> None:
    container = amqp.Container(max_unsettled_octets=3 * REMEMBERED)
    async with on_the_wire(container) as peer:
        attached = await peer.attach("q", Role.SENDER, **SECOND)
        await send(peer, 0, 3, 1)
        await wait_all_tasks_blocked()
        ends: dict[str, Any] = {
            "source": Source(),
            "target": Target(address="r"),
            "initial_delivery_count": 0,
        }
        await peer.send(Attach(name="other", handle=1, role=Role.SENDER, **ends))
        other = await peer.skip_to(Attach, name="other")
        await wait_all_tasks_blocked()
        (conversation,) = container.conversations
        links = {each.name: each for each in conversation.connection.links}
        assert links["other"].credit == 0
        await peer.send(Detach(handle=0, closed=True))
        await peer.skip_to(Detach, handle=attached.handle)
        await peer.skip_to(Flow, handle=other.handle, link_credit=1000)
        assert conversation.connection.engine.awaiting_settlement_octets == 0
        assert not conversation.withheld


async def test_what_a_kept_link_remembers_counts_as_memory_of_the_container() -> None:
    container = amqp.Container()
    target = Target(address="q", expiry_policy=ExpiryPolicy.SESSION_END, timeout=60)
    async with on_the_wire(container) as peer:
        attached = await peer.attach("q", Role.SENDER, target=target, **SECOND)
        await send(peer, 0, 3, 1)
        await wait_all_tasks_blocked()
        before = container.watermark.octets
        await peer.send(Detach(handle=0))
        await peer.skip_to(Detach, handle=attached.handle)
        await wait_all_tasks_blocked()
        assert container.watermark.octets - before == 3 * REMEMBERED


async def test_link_that_detaches_and_comes_back_again_and_again_leaves_nothing_behind() -> None:
    container = amqp.Container()
    target = Target(address="q", expiry_policy=ExpiryPolicy.CONNECTION_CLOSE, timeout=60)
    async with on_the_wire(container) as peer:
        for _ in range(10):
            attached = await peer.attach("q", Role.SENDER, name="n", target=target)
            await peer.send(Detach(handle=0))
            await peer.skip_to(Detach, handle=attached.handle)
        (conversation,) = container.conversations
        (session,) = conversation.connection.sessions
        assert len(conversation._claimed) == 1  # pyright: ignore[reportPrivateUsage]
        assert len(session.on_end or ()) == 1
        attached = await peer.attach("q", Role.SENDER, name="n", target=target)
        await peer.send(Detach(handle=0, closed=True))
        await peer.skip_to(Detach, handle=attached.handle)
        assert not conversation._claimed  # pyright: ignore[reportPrivateUsage]
        assert not session.on_end


async def test_links_of_other_names_leave_nothing_behind_when_their_termini_have_expired(
    autojump_clock: MockClock,
) -> None:
    container = amqp.Container()
    target = Target(address="q", expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=1)
    async with on_the_wire(container) as peer:
        for number in range(200):
            attached = await peer.attach("q", Role.SENDER, name=f"n{number}", target=target)
            await peer.send(Detach(handle=0))
            await peer.skip_to(Detach, handle=attached.handle)
            await trio.sleep(0.1)
        (conversation,) = container.conversations
        (session,) = conversation.connection.sessions
        assert len(conversation._claimed) <= 64  # pyright: ignore[reportPrivateUsage]
        assert len(session.on_end or ()) <= 64


async def test_attach_without_a_source_costs_no_more_where_there_are_more_queues_and_subscriptions() -> None:
    counts = []
    for size in (1, 500):
        container = amqp.Container()
        topic = container.add_topic("t")
        for number in range(size):
            container.add_queue(f"q{number}")
            subscription_terms = SubscriptionTerms(name=f"s{number}", lasting=math.inf)
            topic.subscriptions[subscription_terms.key] = Subscription(
                topic, subscription_terms, None, Clock(), lambda: None, None
            )
        assert list(container.retaining_nodes) == ["t"]
        counts.append(steps(lambda topic=topic: topic.recall(None, "nothing")))  # type: ignore[misc]
        found = topic.recall(None, "s0")
        assert found is not None
        assert found.name == "s0"
        container.remove_node("t")
        assert not container.retaining_nodes
    assert counts[0] == counts[1]
