"""Addresses and their nodes: added nodes, first use, dynamic sources and targets."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.amqp10.peer.errors import LinkDetachedError, LinkRefusedError, LinkStolenError
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.container import Container, Queue
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing import open_container

from .helpers import bodies, fill, two

DYNAMIC = Source(dynamic=True)


async def refusal(opening: Any) -> str | None:
    with pytest.raises(LinkRefusedError) as refused:
        async with opening:
            pass
    return refused.value.condition


async def test_container_makes_a_queue_on_first_use_and_forgets_it_when_it_is_empty_and_unused() -> None:
    async with open_container() as container, container.connect() as conn:
        async with conn.open_sender("new") as sender:
            assert isinstance(container.nodes["new"], Queue)
            await sender.send("x")
        await wait_all_tasks_blocked()
        assert "new" in container.nodes
        async with conn.open_receiver("new") as receiver:
            assert await bodies(receiver, 1) == ["x"]
        await wait_all_tasks_blocked()
        assert not container.nodes
        await fill(conn, "new", "y")
        async with conn.open_receiver("new") as receiver:
            assert await bodies(receiver, 1) == ["y"]


async def test_container_keeps_a_queue_that_was_added() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_receiver("q"):
            pass
        await wait_all_tasks_blocked()
        assert list(container.nodes) == ["q"]


async def test_container_refuses_unknown_addresses_when_strict() -> None:
    async with open_container(["q"], strict=True) as container, container.connect() as conn:
        assert await refusal(conn.open_sender("r")) == "amqp:not-found"
        assert await refusal(conn.open_receiver("r")) == "amqp:not-found"
        async with conn.open_sender("q") as sender:
            await sender.send("x")


async def test_container_refuses_what_it_cannot_serve() -> None:
    async with open_container() as container, container.connect() as conn:
        odd = Source(address="q", distribution_mode="half")
        assert await refusal(conn.open_receiver("q", source=odd)) == "amqp:not-implemented"
        assert await refusal(conn.open_receiver(None)) == "amqp:invalid-field"
        assert await refusal(conn.open_sender("temporary/no")) == "amqp:not-found"
        assert await refusal(conn.open_receiver("")) == "amqp:not-found"
        assert not container.nodes


async def test_container_refuses_an_attach_without_a_terminus() -> None:
    async with open_container() as container, container.connect() as conn:
        session = conn.session_for(None, own=False)
        links = session.engine.sender("none"), session.engine.receiver("none")
        for link in links:
            link.attach()
        await wait_all_tasks_blocked()
        # A source that is not told is one that was kept: here none is.
        assert [str(link.error and link.error.condition) for link in links] == [
            "amqp:invalid-field",
            "amqp:not-found",
        ]
        assert not container.nodes


async def test_container_tells_the_capabilities_of_a_node_to_those_who_ask() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        assert "ANONYMOUS-RELAY" in conn.remote.offered_capabilities
        source = Source(address="q", capabilities=("queue", "topic"))
        async with conn.open_receiver("q", source=source) as receiver:
            assert list(receiver.remote.source.capabilities) == ["queue"]


def test_container_refuses_an_address_that_is_taken_or_empty() -> None:
    container = Container("c")
    queue = container.add_queue("q")
    assert "q" in repr(queue)
    assert "'c'" in repr(container)
    for name in ("q", ""):
        with pytest.raises(LocalProtocolError):
            container.add_queue(name)


async def test_link_attached_again_under_its_name_takes_the_place_of_the_first() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "x", "y")
        async with conn.open_session() as one, conn.open_session() as other:
            first = await one.open_receiver("q", name="n", credit=1).__aenter__()
            assert await bodies(first, 1, accept=False) == ["x"]
            conn.engine.names.release(first._link)
            async with other.open_receiver("q", name="n", credit=0) as second:
                with pytest.raises(LinkStolenError):
                    await first.receive()
                second.grant(2)
                assert await bodies(second, 2) == ["x", "y"]


async def test_container_takes_no_notice_of_a_link_that_went_before_it_was_admitted() -> None:
    async with open_container() as container, container.connect() as conn:
        session = conn.session_for(None, own=False)
        await wait_all_tasks_blocked()
        link = session.engine.receiver("brief")
        link.attach(source=Source(address="q"), target=Target())
        link.detach()
        await wait_all_tasks_blocked()
        assert not container.nodes
        await fill(conn, "q", "alive")


async def test_dynamic_source_is_a_queue_for_any_connection_until_its_link_goes() -> None:
    async with open_container() as container, two(container) as (one, other):
        async with one.open_receiver(None, source=DYNAMIC) as receiver:
            address = receiver.address
            assert address is not None
            assert receiver.remote.source.dynamic
            await fill(other, address, "hello")
            assert await bodies(receiver, 1) == ["hello"]
            late = await other.open_sender(address).__aenter__()
        await wait_all_tasks_blocked()
        assert not container.nodes
        with pytest.raises(LinkDetachedError) as detached:
            await late.send("x")
        assert detached.value.condition == "amqp:resource-deleted"
        assert await refusal(other.open_sender(address)) == "amqp:not-found"


async def test_dynamic_sources_have_addresses_of_their_own_and_go_with_the_connection() -> None:
    async with open_container() as container:
        async with container.connect() as conn:
            first = await conn.open_receiver(None, source=DYNAMIC).__aenter__()
            second = await conn.open_receiver(None, source=DYNAMIC).__aenter__()
            assert first.address != second.address
            assert len(container.nodes) == 2
            conn.pump.cancel()
        await wait_all_tasks_blocked()
        assert not container.nodes


async def test_dynamic_target_is_a_queue_too() -> None:
    async with open_container() as container, container.connect() as conn:
        async with conn.open_sender(None, target=Target(dynamic=True)) as sender:
            assert sender.address is not None
            await sender.send("x")
            async with conn.open_receiver(sender.address) as receiver:
                assert await bodies(receiver, 1) == ["x"]
        await wait_all_tasks_blocked()
        assert not container.nodes
