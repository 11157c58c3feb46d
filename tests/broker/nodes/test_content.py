"""Content of a form that is not AMQP 1.0's goes through every node, and comes out as AMQP 1.0 has it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, queue_of
from tests.container.lines import NUMBER, Ends, Lines, lines, registered
from trio_amqp10 import Container, MemoryStore, Message
from trio_amqp10.amqp10.server.selection import Filters
from trio_amqp10.amqp10.spec.messaging import DistributionMode, Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.broker.nodes import form_registry
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.broker.nodes.content import Content
from trio_amqp10.broker.nodes.message_store import MESSAGES, MessageStore
from trio_amqp10.broker.nodes.node import SubscriptionTerms
from trio_amqp10.broker.nodes.relay import post
from trio_amqp10.broker.nodes.stored_subscriptions import StoredSubscriptions

if TYPE_CHECKING:
    from collections.abc import Iterator

PEER: Any = SimpleNamespace(container_id="lines", identity=None)


@pytest.fixture(autouse=True)
def _form() -> Iterator[None]:
    yield from registered()


def selecting(expression: str) -> Source:
    return Source(
        address="q", filter={Symbol("f"): Described(Symbol("apache.org:selector-filter:string"), expression)}
    )


async def put(container: Container, address: str, *contents: Content) -> None:
    for content in contents:
        await post(container.find(address), content, PEER)


# -- nodes ---------------------------------------------------------------------------------------


async def test_queue_gives_content_of_another_form_to_a_receiver_as_a_message_translated_once() -> None:
    container = Container()
    container.add_queue("q")
    looks = Source(address="q", distribution_mode=DistributionMode.COPY)
    await put(container, "q", lines("tea", sugar="two", durable="yes"))
    async with (
        container.connect() as conn,
        conn.open_receiver("q", source=looks) as browser,
        conn.open_receiver("q", source=looks) as another,
        conn.open_receiver("q") as receiver,
    ):
        for each in (browser, another, receiver):
            delivery = await each.receive()
            assert (delivery.message.body, delivery.message.durable) == ("tea", True)
            assert delivery.message.application_properties == {"sugar": "two"}
            assert delivery.message_format == 0
    assert Lines.translations == 1


async def test_queue_goes_by_the_terms_of_any_form(autojump_clock: Any) -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead")
    await put(container, "q", lines("low", priority=1), lines("high", priority=9), lines("brief", ttl=10_000))
    await trio.sleep(4)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        receiver.grant(2)
        assert await bodies(receiver, 1) == ["high"]
        delivery = await receiver.receive()
        assert delivery.message.application_properties == {"ttl": "6000"}
        delivery.release()
        await trio.sleep(7)
        receiver.grant(1)
        assert await bodies(receiver, 1) == ["low"]
        async with conn.open_receiver("dead") as dead:
            message = (await dead.receive()).message
            assert message.application_properties == {"from": "q", "dead": "expired"}


async def test_filters_see_content_of_another_form_as_a_message() -> None:
    container = Container()
    container.add_queue("q")
    await put(container, "q", lines("tea", kind="green"), lines("coffee", kind="black"))
    async with (
        container.connect() as conn,
        conn.open_receiver("q", source=selecting("kind = 'black'")) as receiver,
    ):
        assert await bodies(receiver, 1) == ["coffee"]


async def test_ended_lease_leaves_its_notes_in_the_way_of_the_form() -> None:
    container = Container()
    container.add_queue("q")
    await put(container, "q", lines("tea"))
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        (await receiver.receive()).modify(delivery_failed=True, annotations={"x-why": "cold"})
        delivery = await receiver.receive()
        assert delivery.message.application_properties == {"note-x-why": "cold", "attempts": "1"}
        delivery.release()
        assert (await receiver.receive()).payload == delivery.payload


async def test_rejected_content_says_why_it_is_a_dead_letter_in_the_way_of_its_form() -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead")
    await put(container, "q", lines("tea", ttl=60_000))
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        (await receiver.receive()).reject("shop:cold", "too cold")
        await wait_all_tasks_blocked()
        async with conn.open_receiver("dead") as dead:
            said = (await dead.receive()).message.application_properties
    assert said == {"attempts": "1", "from": "q", "dead": "rejected", "why": "shop:cold", "said": "too cold"}


async def test_topic_hands_content_of_another_form_to_all_translated_once() -> None:
    container = Container()
    container.add_topic("news")
    async with (
        container.connect() as conn,
        conn.open_receiver("news") as one,
        conn.open_receiver("news") as other,
    ):
        await put(container, "news", lines("rain"))
        assert await bodies(one, 1) == await bodies(other, 1) == ["rain"]
    assert Lines.translations == 1


async def test_relay_routes_content_of_another_form_by_the_address_that_it_names() -> None:
    container = Container()
    container.add_queue("q")
    await post(container.relay, lines("tea", to="q"), PEER)
    assert len(queue_of(container)) == 1
    with pytest.raises(amqp.RefusedError):
        await post(container.relay, lines("tea"), PEER)


async def test_function_and_consumer_see_content_of_another_form_as_a_message() -> None:
    container = Container()
    seen: list[Any] = []

    @container.function("ask")
    async def ask(message: Message) -> None:
        seen.append((message.body, message.application_properties))

    @container.consumer("tell")
    async def tell(arrival: amqp.Delivery) -> None:
        seen.append(arrival.message.body)

    async with trio.open_nursery() as nursery:
        peer: Any = SimpleNamespace(container_id="lines", identity=None, start_soon=nursery.start_soon)
        await post(container.find("ask"), lines("tea", sugar="two"), peer)
        await post(container.find("tell"), lines("milk"), peer)
    assert seen == [("tea", {"sugar": "two"}), "milk"]


async def test_figures_of_a_queue_count_octets_in_the_form_in_which_they_came() -> None:
    container = Container()
    container.add_queue("q")
    content = lines("tea", sugar="two")
    await put(container, "q", content)
    figures = queue_of(container).statistics()
    assert (figures["messages"], figures["octets"]) == (1, len(content.octets)) == (1, content.size)


# -- stores --------------------------------------------------------------------------------------


async def test_content_of_another_form_is_there_again_after_a_restart() -> None:
    store = MemoryStore()
    container = Container(store=store)
    container.add_queue("q")
    await put(container, "q", lines("kept", durable="yes"), lines("gone"))
    await wait_all_tasks_blocked()
    (row,) = store.rows(MESSAGES)
    assert (row[3], row[4]) == (NUMBER, lines("kept", durable="yes").octets)
    container = Container(store=store)
    container.add_queue("q")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        assert await bodies(receiver, 1) == ["kept"]
        await wait_all_tasks_blocked()
    assert not list(store.rows(MESSAGES))


@pytest.mark.logs_errors
async def test_content_of_a_form_that_is_not_known_is_held_as_it_is_and_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    container = Container(store=store)
    container.add_queue("q")
    kept = [lines("kept", durable="yes", priority=7), lines("too", durable="yes")]
    await put(container, "q", *kept)
    await wait_all_tasks_blocked()
    form_registry.forget(NUMBER)
    container = Container(store=store)
    container.add_queue("q")
    with caplog.at_level(logging.ERROR, "trio_amqp10.container"):
        async with container.connect() as conn, conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert (delivery.message.body, delivery.message_format) == (kept[0].octets, 0)
            delivery.modify(delivery_failed=True)
            await wait_all_tasks_blocked()
    assert caplog.text.count(str(NUMBER)) == 1
    assert {row[3:5] for row in store.rows(MESSAGES)} == {(NUMBER, each.octets) for each in kept}
    form_registry.register(NUMBER, form_registry.Form(Lines))
    container = Container(store=store)
    container.add_queue("q")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        assert await bodies(receiver, 2) == ["kept", "too"]


@pytest.mark.parametrize(
    "selection",
    [
        None,
        Filters({}),
        Filters({Symbol("no-local"): Described(Symbol("apache.org:no-local-filter:list"), [])}),
        Ends("x"),
    ],
)
async def test_selection_of_a_durable_subscription_is_read_again_by_the_form_that_wrote_it(
    selection: Any,
) -> None:
    store = MemoryStore()
    message_store = MessageStore(store, Clock())
    subscription_terms = SubscriptionTerms(
        name="mine", owner=("ada", None), lasting=60.0, durable=True, selection=selection
    )
    StoredSubscriptions(message_store, "news").enter(subscription_terms)
    await wait_all_tasks_blocked()
    again = [each for each, _, _ in StoredSubscriptions(MessageStore(store, Clock()), "news").recover()]
    assert again == [subscription_terms]


@pytest.mark.logs_errors
async def test_selection_that_nothing_reads_any_more_loses_its_subscription_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    subscription_terms = SubscriptionTerms(
        name="mine", owner=("ada", None), lasting=60.0, durable=True, selection=Ends("x")
    )
    StoredSubscriptions(MessageStore(store, Clock()), "news").enter(subscription_terms)
    await wait_all_tasks_blocked()
    form_registry.forget(NUMBER)
    assert list(StoredSubscriptions(MessageStore(store, Clock()), "news").recover()) == []
    assert str(NUMBER) in caplog.text


# -- the forms of AMQP 1.0 -----------------------------------------------------------------------


def test_content_has_no_translation_unless_its_form_brings_one() -> None:
    with pytest.raises(NotImplementedError):
        Content(-1, b"").as_message()


# -- nodes of one's own --------------------------------------------------------------------------


class Echo(amqp.Node):
    """Gives what it takes: ``message`` or ``content``."""

    accepts_senders = accepts_receivers = True

    def __init__(self, address: str, what: str) -> None:
        super().__init__(address)
        self.what = what

    def on_arrivals(self, inlet: amqp.Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            arrival.accept()
            for outlet in self.outlets:
                outlet.give(getattr(arrival, self.what), None)

    def on_demand(self, outlet: amqp.Outlet) -> None:
        outlet.rest(0)


@pytest.mark.parametrize("what", ["message", "content"])
async def test_node_of_ones_own_gives_messages_or_content(what: str) -> None:
    container = Container()
    container.add_node(Echo("echo", what))
    async with (
        container.connect() as conn,
        conn.open_receiver("echo") as receiver,
        conn.open_sender("echo") as sender,
    ):
        await sender.send(Message("tea", subject="hot"))
        message = (await receiver.receive()).message
        assert (message.body, message.subject) == ("tea", "hot")
        await put(container, "echo", lines("milk"))
        assert await bodies(receiver, 1) == ["milk"]
