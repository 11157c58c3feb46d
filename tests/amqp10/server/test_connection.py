"""Links to a container, frame by frame (2.6, 2.7.3, 2.7.6).

Links are refused, stolen and recovered, and frames arrive after a detach.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import queue_of
from tests.container.mortal import Disk
from tests.container.wire import on_the_wire
from trio_amqp10.amqp10.spec.messaging import (
    DeleteOnNoLinks,
    ExpiryPolicy,
    Received,
    Source,
    Target,
    TerminusDurability,
)
from trio_amqp10.amqp10.spec.transport import Attach, Detach, Disposition, End, Flow, Role, Transfer
from trio_amqp10.amqp10.wire.values import Described, Symbol

from .kept_links import Life

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.broker.rights.access import Access
    from trio_amqp10.container import Queue
    from trio_amqp10.testing import ScriptedPeer

# -- dynamic nodes (3.5.3, 3.5.4) -----------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.SENDER, Role.RECEIVER])
async def test_dynamic_node_is_refused_when_it_is_named(role: bool) -> None:
    container = amqp.Container()
    async with on_the_wire(container) as peer:
        ends = (
            {"source": Source(dynamic=True, address="mine")}
            if role
            else {"target": Target(dynamic=True, address="mine")}
        )
        attached = await peer.attach("mine", role, **ends)
        assert (attached.source if role else attached.target) is None
        detached = await peer.expect(Detach, handle=attached.handle, closed=True)
        assert detached.error is not None
        assert detached.error.condition == "amqp:invalid-field"
        assert not container.nodes
        await peer.send(Detach(handle=0, closed=True))
        assert isinstance(await peer.attach("q", Role.SENDER, handle=1), Attach)


@pytest.mark.parametrize("role", [Role.SENDER, Role.RECEIVER])
async def test_node_properties_are_left_out_of_the_answer_when_no_dynamic_node_is_asked_for(
    role: bool,
) -> None:
    lifetime = {"lifetime-policy": DeleteOnNoLinks()}
    async with on_the_wire(amqp.Container()) as peer:
        if role:
            ends: dict[str, Any] = {"source": Source(address="q", dynamic_node_properties=lifetime)}
        else:
            ends = {"target": Target(address="q", dynamic_node_properties=lifetime)}
        attached = await peer.attach("q", role, **ends)
        assert (attached.source if role else attached.target).dynamic_node_properties is None


# -- one link at a time (2.6.1) -------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.SENDER, Role.RECEIVER])
async def test_link_is_stolen_when_its_peer_attaches_it_on_another_connection(role: bool) -> None:
    container = amqp.Container()
    async with on_the_wire(container) as first, on_the_wire(container) as second:
        attached = await first.attach("q", role, name="n")
        again = await second.attach("q", role, name="n")
        assert (again.source if role else again.target) is not None
        detached = await first.skip_to(Detach, handle=attached.handle)
        assert detached.error is not None
        assert detached.error.condition == "amqp:link:stolen"
        async with on_the_wire(container) as third:
            await third.attach("q", role, name="n")
            await second.skip_to(Detach, handle=again.handle)


async def test_link_is_left_alone_when_another_container_or_direction_has_its_name() -> None:
    container = amqp.Container()
    async with on_the_wire(container) as first, on_the_wire(container, "other") as second:
        await first.attach("q", Role.RECEIVER, name="n")
        await second.attach("q", Role.RECEIVER, name="n")
        await second.attach("q", Role.SENDER, name="n", handle=1)
        async with on_the_wire(container) as third:
            await third.attach("q", Role.SENDER, name="n")
            await wait_all_tasks_blocked()
            await container.send("q", "x")
            await first.grant(1)
            await first.expect(Transfer)


async def test_link_is_stolen_when_its_queue_has_room_for_one_alone() -> None:
    container = amqp.Container()
    container.add_queue("q", exclusive=True)
    async with on_the_wire(container) as first, on_the_wire(container) as second:
        await first.attach("q", Role.RECEIVER, name="n")
        assert (await second.attach("q", Role.RECEIVER, name="n")).source is not None
        await first.expect(Detach)


async def test_link_that_is_gone_is_not_stolen() -> None:
    container = amqp.Container()
    async with on_the_wire(container) as first:
        attached = await first.attach("q", Role.RECEIVER, name="n")
        await first.send(Detach(handle=0, closed=True))
        await first.expect(Detach, handle=attached.handle, error=None)
        async with on_the_wire(container) as second:
            await second.attach("q", Role.RECEIVER, name="n")
            await first.expect_nothing(0.02)


# -- recovering a link by its name (2.6.3) --------------------------------------------------------


KEPT: dict[str, Any] = {"expiry_policy": ExpiryPolicy.CONNECTION_CLOSE, "timeout": 60}


async def test_target_is_recovered_when_the_attach_names_none() -> None:
    container = amqp.Container()
    container.add_queue("q")
    async with on_the_wire(container) as peer:
        await peer.attach("q", Role.SENDER, name="n", target=Target(address="q", **KEPT))
    async with on_the_wire(container) as peer:
        attached = await peer.attach("q", Role.SENDER, name="n", target=None)
        assert attached.target == Target(address="q", **KEPT)
        assert attached.unsettled == {}
        await peer.skip_to(Flow)
        await peer.send(Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), payload=amqp.Message("tea"))
        await peer.skip_to(Disposition, state=amqp.Accepted())
    assert queue_of(container).available == 1


async def test_source_is_recovered_with_all_that_was_agreed_when_the_attach_names_none() -> None:
    container = amqp.Container()
    container.add_queue("q")
    asked = Source(
        address="q",
        default_outcome=amqp.Modified(delivery_failed=True),
        outcomes=("amqp:accepted:list",),
        filter={"s": Described(Symbol("amqp:properties-filter"), {"subject": "tea"})},
        **KEPT,
    )
    async with on_the_wire(container) as peer:
        told = (await peer.attach("q", Role.RECEIVER, name="n", source=asked)).source
    await container.send("q", amqp.Message("no", subject="coffee"))
    await container.send("q", amqp.Message("yes", subject="tea"))
    async with on_the_wire(container) as peer:
        attached = await peer.attach("q", Role.RECEIVER, name="n", source=None)
        assert attached.source == told
        await peer.grant(2)
        await peer.expect(Transfer)
        assert peer.last is not None
        assert amqp.Message.from_payload(peer.last.payload).body == "yes"
        await peer.send(Disposition(role=Role.RECEIVER, first=0, settled=True, state=amqp.Released()))
        # What the source does not permit counts as its default outcome (3.5.3).
        await peer.expect(Transfer)
        assert peer.last is not None
        assert amqp.Message.from_payload(peer.last.payload).delivery_count == 1


async def test_relay_is_recovered_when_the_attach_names_no_target() -> None:
    container = amqp.Container()
    async with on_the_wire(container) as peer:
        await peer.attach("", Role.SENDER, name="n", target=Target(**KEPT))
    async with on_the_wire(container) as peer:
        assert (await peer.attach("", Role.SENDER, name="n", target=None)).target == Target(**KEPT)


async def test_dynamic_node_is_recovered_with_its_link_while_it_is_there() -> None:
    container = amqp.Container()
    lifetime = {"lifetime-policy": DeleteOnNoLinks()}
    asked = Source(dynamic=True, dynamic_node_properties=lifetime, **KEPT)
    async with on_the_wire(container) as peer, on_the_wire(container, "other") as other:
        told = (await peer.attach("", Role.RECEIVER, name="n", source=asked)).source
        await other.attach(told.address, Role.SENDER)
        await peer.close()
        async with on_the_wire(container) as back:
            attached = await back.attach("", Role.RECEIVER, name="n", source=None)
            assert attached.source.address == told.address
            assert attached.source.dynamic
            await back.close()
        await other.close()
        async with on_the_wire(container) as back:
            assert (await back.attach("", Role.RECEIVER, name="n", source=None)).source is None


@pytest.mark.parametrize("role", [Role.SENDER, Role.RECEIVER])
async def test_link_without_a_terminus_is_refused_when_none_is_kept_for_it(role: bool) -> None:
    container = amqp.Container()
    null = {"source" if role else "target": None}
    kept = {"source": Source(address="q", **KEPT)} if role else {"target": Target(address="q", **KEPT)}
    async with on_the_wire(container, "other") as other:
        await other.attach("q", role, name="n", **kept)
    async with on_the_wire(container) as peer:
        attached = await peer.attach("q", role, name="n", **null)
        assert (attached.source if role else attached.target) is None
        await peer.expect(Detach, closed=True)


async def test_recovered_link_needs_the_permission_of_its_kept_terminus() -> None:
    wishes: list[Any] = []

    def authorise(access: Access) -> bool:
        wishes.append((access.action, access.address))
        return wishes.count(("receive", "q")) < 2

    container = amqp.Container(authorise=authorise)
    async with on_the_wire(container) as peer:
        await peer.attach("q", Role.RECEIVER, name="n", source=Source(address="q", **KEPT))
    async with on_the_wire(container) as peer:
        assert (await peer.attach("q", Role.RECEIVER, name="n", source=None)).source is None
        detached = await peer.expect(Detach, closed=True)
        assert detached.error is not None
        assert detached.error.condition == "amqp:unauthorized-access"
    assert wishes.count(("receive", "q")) == 2


async def test_source_is_recovered_from_the_store_when_the_container_was_killed() -> None:
    disk = Disk()
    kept = {"durable": TerminusDurability.UNSETTLED_STATE, **KEPT}
    asked = Source(
        address="q", filter={"s": Described(Symbol("amqp:properties-filter"), {"subject": "t"})}, **kept
    )
    life = Life(disk)
    life.queue()
    async with on_the_wire(life.container) as peer:
        told = (await peer.attach("q", Role.RECEIVER, name="n", source=asked)).source
        await life.end()
    life = Life(disk)
    async with on_the_wire(life.container) as peer:
        attached = await peer.attach("q", Role.RECEIVER, name="n", source=None)
        assert attached.source == told
        assert attached.source.durable == TerminusDurability.UNSETTLED_STATE
        await peer.send(Detach(handle=0, closed=True))
        await peer.expect(Detach, closed=True)
        await life.end()
    async with on_the_wire(Life(disk).container) as peer:
        assert (await peer.attach("q", Role.RECEIVER, name="n", source=None)).source is None


# -- dispositions after a detach (2.6.4, 2.7.6) ---------------------------------------------------

SETTLED = Disposition(role=Role.RECEIVER, first=0, settled=True, state=amqp.Accepted())


@asynccontextmanager
async def holding_one(
    container: amqp.Container, source: Source
) -> AsyncGenerator[tuple[ScriptedPeer, Queue]]:
    """A peer that has got the one message of a queue, and a queue that has no other."""
    queue = container.add_queue("q")
    await container.send("q", "tea")
    async with on_the_wire(container) as peer:
        await peer.attach("q", Role.RECEIVER, name="n", source=source)
        await peer.grant(1)
        await peer.expect(Transfer)
        yield peer, queue


@pytest.mark.parametrize(
    ("default", "left"),
    [
        (None, (1, 0)),
        (amqp.Accepted(), (0, None)),
        (amqp.Modified(delivery_failed=True), (1, 1)),
    ],
)
@pytest.mark.parametrize("state", [None, Received(section_number=0, section_offset=1)])
async def test_default_outcome_counts_when_a_delivery_is_settled_without_an_outcome(
    state: Any, default: Any, left: tuple[int, int | None]
) -> None:
    source = Source(address="q", default_outcome=default)
    async with holding_one(amqp.Container(), source) as (peer, queue):
        await peer.send(Disposition(role=Role.RECEIVER, first=0, settled=True, state=state))
        await wait_all_tasks_blocked()
        available, count = left
        assert (queue.leased, queue.available) == (0, available)
        if available:
            await peer.grant(1)
            await peer.expect(Transfer)
            assert peer.last is not None
            assert amqp.Message.from_payload(peer.last.payload).delivery_count == count


@pytest.mark.parametrize("kept", [True, False])
async def test_outcome_counts_when_it_comes_after_a_detach(kept: bool) -> None:
    source = Source(address="q", **(KEPT if kept else {}))
    async with holding_one(amqp.Container(), source) as (peer, queue):
        await peer.send(Detach(handle=0), SETTLED)
        await peer.expect(Detach, closed=False)
        await wait_all_tasks_blocked()
        assert len(queue) == 0


@pytest.mark.parametrize("kept", [True, False])
async def test_message_waits_for_its_outcome_after_a_detach_while_the_session_lasts(kept: bool) -> None:
    source = Source(address="q", **(KEPT if kept else {}))
    async with holding_one(amqp.Container(), source) as (peer, queue):
        await peer.send(Detach(handle=0))
        await peer.expect(Detach)
        await wait_all_tasks_blocked()
        assert (queue.leased, queue.available) == (1, 0)
        await peer.send(End())
        await peer.expect(End)
        await wait_all_tasks_blocked()
        assert (queue.leased, queue.available) == ((1, 0) if kept else (0, 1))


@pytest.mark.parametrize(
    ("source", "detach"),
    [
        (Source(address="q"), Detach(handle=0, closed=True)),
        (Source(address="q", **KEPT), Detach(handle=0, closed=True)),
        (Source(address="q"), Detach(handle=0, error=amqp.ErrorInfo(condition="amqp:internal-error"))),
        (Source(address="q", expiry_policy=ExpiryPolicy.LINK_DETACH), Detach(handle=0)),
    ],
    ids=["closed", "kept and closed", "error", "link-detach"],
)
async def test_message_goes_back_at_once_when_its_link_is_over(source: Source, detach: Detach) -> None:
    async with holding_one(amqp.Container(), source) as (peer, queue):
        await peer.send(detach)
        await peer.expect(Detach)
        await wait_all_tasks_blocked()
        assert (queue.leased, queue.available) == (0, 1)
        await peer.send(SETTLED)
        await wait_all_tasks_blocked()
        assert (queue.leased, queue.available) == (0, 1)


async def test_outcome_does_not_count_when_its_link_has_expired(autojump_clock: Any) -> None:
    source = Source(address="q", expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=10)
    async with holding_one(amqp.Container(), source) as (peer, queue):
        await peer.send(Detach(handle=0))
        await peer.expect(Detach)
        await trio.sleep(9)
        assert (queue.leased, queue.available) == (1, 0)
        await trio.sleep(2)
        assert (queue.leased, queue.available) == (0, 1)
        await peer.send(SETTLED)
        await wait_all_tasks_blocked()
        assert (queue.leased, queue.available) == (0, 1)


async def test_outcome_by_the_old_id_does_not_count_when_the_link_was_taken_up() -> None:
    source = Source(address="q", **KEPT)
    async with holding_one(amqp.Container(), source) as (peer, queue):
        assert peer.last is not None
        tag = peer.last.performative.delivery_tag
        await peer.send(Detach(handle=0))
        await peer.expect(Detach)
        again = await peer.attach("q", Role.RECEIVER, name="n", source=source, unsettled={tag: None})
        assert again.unsettled == {tag: None}
        await peer.send(SETTLED)
        await wait_all_tasks_blocked()
        assert queue.leased == 1
        await peer.grant(1)
        await peer.expect(Transfer, delivery_tag=tag, delivery_id=1, resume=True)
        await peer.send(Disposition(role=Role.RECEIVER, first=1, settled=True, state=amqp.Accepted()))
        await wait_all_tasks_blocked()
        assert len(queue) == 0
