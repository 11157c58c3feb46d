"""Outcomes between a container and its peers: defaults (3.5.3), counts (3.4.3)."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies
from trio_amqp10.amqp10.peer.delivery import raise_unless_accepted
from trio_amqp10.amqp10.peer.errors import DeliveryReleasedError, LinkDetachedError
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Released, Source
from trio_amqp10.container import Container

ACCEPTED_ONLY = Source(outcomes=("amqp:accepted:list",), default_outcome=Accepted())


def info_of(failure: LinkDetachedError) -> Any:
    assert failure.error is not None
    return failure.error.info


async def test_full_queue_detaches_a_sender_whose_source_has_no_rejected() -> None:
    container = Container()
    container.add_queue("q", max_length=1, overflow="reject")
    async with container.connect() as conn:
        async with conn.open_sender("q", source=ACCEPTED_ONLY) as sender:
            await sender.send("x")
            with pytest.raises(LinkDetachedError) as detached:
                await sender.send("y", tag=b"the tag")
        assert detached.value.condition == "amqp:resource-limit-exceeded"
        assert info_of(detached.value) == {"delivery-tag": b"the tag"}
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["x"]


@pytest.mark.parametrize("settled", [False, True])
async def test_anonymous_terminus_detaches_with_the_tag_where_no_outcome_can_say_that_an_address_is_unknown(
    settled: bool,
) -> None:
    container = Container(strict=True)
    container.add_queue("q")
    async with container.connect() as conn:
        options: Any = {"guarantee": "at-most-once"} if settled else {"source": ACCEPTED_ONLY}
        async with conn.open_sender(None, **options) as sender:
            await sender.send(amqp.Message("x", to="q"))
            with pytest.raises(LinkDetachedError) as detached:
                await sender.send(amqp.Message("x", to="unknown"), tag=b"the tag")
                await wait_all_tasks_blocked()
                await sender.send(amqp.Message("x", to="q"))
        assert detached.value.condition == "amqp:not-found"
        assert info_of(detached.value) == {"delivery-tag": b"the tag"}


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (("amqp:accepted:list", "amqp:released:list"), Released()),
        (("amqp:accepted:list", "amqp:modified:list", "amqp:released:list"), Modified(delivery_failed=True)),
    ],
)
async def test_consumer_that_gives_a_message_back_says_it_with_an_outcome_that_the_source_has(
    outcomes: tuple[str, ...], expected: Any
) -> None:
    container = Container()

    @container.consumer("c")
    async def consume(delivery: amqp.Delivery) -> None:
        delivery.modify(delivery_failed=True)

    async with container.connect() as conn, conn.open_sender("c", source=Source(outcomes=outcomes)) as sender:
        assert await (await sender.transmit("x")).outcome() == expected


async def test_consumer_that_releases_detaches_a_sender_whose_source_has_nothing_but_accepted() -> None:
    container = Container()

    @container.consumer("c")
    async def consume(delivery: amqp.Delivery) -> None:
        delivery.release()

    async with container.connect() as conn, conn.open_sender("c", source=ACCEPTED_ONLY) as sender:
        with pytest.raises(LinkDetachedError) as detached:
            await sender.send("x")
        assert detached.value.condition == "amqp:precondition-failed"


async def test_transaction_fails_where_a_message_is_refused_and_its_source_has_no_rejected() -> None:
    container = Container(strict=True)
    container.add_queue("q")
    async with container.connect() as conn, conn.open_sender(None, source=ACCEPTED_ONLY) as sender:
        with pytest.raises(amqp.TransactionRolledBackError):
            async with conn.open_transaction() as txn:
                await sender.send(amqp.Message("x", to="q"), transaction=txn)
                await sender.transmit(amqp.Message("y", to="unknown"), transaction=txn)
        assert not len(container.nodes["q"])  # type: ignore[arg-type]


async def test_queued_messages_of_a_link_that_ends_are_released_only_where_the_source_has_that() -> None:
    container = Container()
    container.add_queue("q", max_length=1)
    async with container.connect() as conn:
        for source, expected in ((Source(), DeliveryReleasedError), (ACCEPTED_ONLY, LinkDetachedError)):
            async with conn.open_sender("q", source=source) as sender:
                await sender.transmit("x")
                waiting = await sender.transmit("y")
                await wait_all_tasks_blocked()
                container.remove_node("q")
                container.add_queue("q", max_length=1)
                with pytest.raises(expected):
                    raise_unless_accepted(await waiting.outcome(), waiting)


def lossy(kind: str) -> Container:
    container = Container(refuse_durable=True)
    if kind == "topic":
        container.add_topic("n")
    else:
        container.add_queue("n")
    return container


@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_node_without_a_store_rejects_durable_messages_when_it_is_to_refuse_them(kind: str) -> None:
    async with lossy(kind).connect() as conn, conn.open_sender("n") as sender:
        await sender.send("not durable")
        with pytest.raises(amqp.DeliveryRejectedError, match="'n' stores no messages") as caught:
            await sender.send(amqp.Message("durable", durable=True))
        assert caught.value.condition == "amqp:precondition-failed"
        await sender.send("not durable")


@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_node_without_a_store_detaches_for_durable_messages_when_no_outcome_can_say_so(
    kind: str,
) -> None:
    async with lossy(kind).connect() as conn, conn.open_sender("n", source=ACCEPTED_ONLY) as sender:
        with pytest.raises(LinkDetachedError, match="precondition-failed"):
            await sender.send(amqp.Message("durable", durable=True))


@pytest.mark.parametrize("kind", ["queue", "topic"])
async def test_node_without_a_store_detaches_for_durable_messages_when_they_come_settled(kind: str) -> None:
    async with lossy(kind).connect() as conn, conn.open_sender("n", guarantee="at-most-once") as sender:
        await sender.send(amqp.Message("durable", durable=True))
        await wait_all_tasks_blocked()
        with pytest.raises(LinkDetachedError, match="precondition-failed"):
            await sender.send("next")


@pytest.mark.parametrize("container", [Container(), Container(refuse_durable=True, store=amqp.MemoryStore())])
async def test_queue_takes_durable_messages_when_it_keeps_them_or_is_not_to_refuse_them(
    container: Container,
) -> None:
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send(amqp.Message("durable", durable=True))
