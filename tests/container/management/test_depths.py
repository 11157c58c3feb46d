"""The depths of queues, the full queues, and where a message would go."""

from __future__ import annotations

import pytest

from trio_amqp10.container import Container, Rules
from trio_amqp10.container.management import ManagementError
from trio_amqp10.sasl import Identity


def filled() -> Container:
    container = Container(
        "box", authorise=Rules(("ada", "monitor", "a b $management/*"), ("bob", "monitor", "a"))
    )
    for name in ("a", "b", "c"):
        container.add_queue(name, max_length=2)
    container.add_queue("rejects", max_length=1, overflow="reject")
    container.add_topic("t")
    return container


async def test_depths_are_those_of_queues_and_full_are_those_whose_senders_wait() -> None:
    container = filled()
    for name in ("a", "b", "b", "rejects"):
        await container.send(name, b"x")
    found = await container.management.depths()
    assert (found.messages, found.full, found.queues) == ({"a": 1, "b": 2, "c": 0, "rejects": 1}, ("b",), 4)


async def test_most_queues_and_most_full_ones_are_limits() -> None:
    container = filled()
    for name in ("a", "b", "c"):
        await container.send(name, b"x")
        await container.send(name, b"x")
    found = await container.management.depths(most=1, most_full=2)
    assert (found.messages, found.full, found.queues) == ({"a": 2}, ("a", "b"), 4)


async def test_reader_gets_the_depths_of_what_it_may_see() -> None:
    container = filled()
    for name in ("b", "b", "c", "c"):
        await container.send(name, b"x")
    model = container.management.on_behalf_of(Identity("ada", "PLAIN", None))
    found = await model.depths()
    assert (found.messages, found.full) == ({"a": 0, "b": 2}, ("b",))
    with pytest.raises(ManagementError, match="bob"):
        await container.management.on_behalf_of(Identity("bob", "PLAIN", None)).depths()


async def test_route_leads_where_a_message_would_and_hides_what_may_not_be_seen() -> None:
    container = Container(
        "box", authorise=Rules(("ada", "monitor", "/exchanges/amq.topic a"), ("bob", "monitor", "a"))
    )
    broker = container.add_broker()
    model = container.management
    for name in ("a", "b"):
        broker.declare_queue(name)
        await model.bind("amq.topic", name, "x.#")
    assert [each.name for each in await model.route("amq.topic", "x.y")] == ["a", "b"]
    assert await model.route("amq.topic", "y") == []
    ada = model.on_behalf_of(Identity("ada", "PLAIN", None))
    assert [each.name for each in await ada.route("amq.topic", "x.y")] == ["a"]
    bob = model.on_behalf_of(Identity("bob", "PLAIN", None))
    for exchange in ("amq.topic", "nope"):
        with pytest.raises(ManagementError) as caught:
            await bob.route(exchange, "x.y")
        assert caught.value.reason == "forbidden"
    with pytest.raises(ManagementError, match="no exchange 'nope'"):
        await model.route("nope", "")


async def test_route_without_a_broker_finds_no_exchange() -> None:
    with pytest.raises(ManagementError) as caught:
        await Container("box").management.route("amq.topic", "")
    assert caught.value.reason == "not-found"
