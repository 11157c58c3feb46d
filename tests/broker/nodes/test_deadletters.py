"""Dead letters: where messages go that a queue can do no more for, and what is told of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.spec.messaging import Accepted
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.container import Container, Queue, QueuePolicy


async def told(conn: amqp.Connection, address: str = "dead") -> amqp.Message:
    """The next letter."""
    async with conn.open_receiver(address, credit=0) as receiver:
        delivery = await receiver.receive()
        delivery.accept()
        return delivery.message


async def test_rejected_message_goes_to_the_dead_letters_with_what_its_consumer_said() -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="dead")
    sent = amqp.Message("x", subject="s", message_id=1, durable=True, annotations={"x-a": 1})
    async with two(container) as (one, other):
        await fill(one, "q", sent)
        async with one.open_receiver("q") as receiver:
            (await receiver.receive()).reject("app:bad", "smells")
            letter = await told(other)
        assert letter.annotations == {
            "x-a": 1,
            "x-opt-deadletter-source": "q",
            "x-opt-deadletter-reason": "rejected",
            "x-opt-deadletter-condition": "app:bad",
            "x-opt-deadletter-description": "smells",
        }
        assert (letter.body, letter.subject, letter.message_id, letter.durable) == ("x", "s", 1, True)
    assert (len(queue), queue.octets, queue.figures["rejected"]) == (0, 0, 1)
    assert "dead" not in container.nodes, "made when first used, and forgotten when empty"


async def test_expired_message_goes_to_the_dead_letters_and_expires_no_more(
    autojump_clock: MockClock,
) -> None:
    container = Container(wall_clock=lambda: 1000 + trio.current_time())
    container.add_queue("dead")
    container.add_queue("q", dead_letter="dead")
    expiry = int((1000 + trio.current_time()) * 1000)
    async with two(container) as (one, other):
        await fill(
            one,
            "q",
            amqp.Message("ttl", ttl=1000),
            amqp.Message("late", absolute_expiry_time=expiry - 5),
            amqp.Message("soon", absolute_expiry_time=expiry + 500),
        )
        await trio.sleep(2)
        async with one.open_receiver("q"):
            await wait_all_tasks_blocked()
        await trio.sleep(10)
        letters = [await told(other) for _ in range(3)]
    assert [each.body for each in letters] == ["late", "soon", "ttl"]
    assert {each.annotations["x-opt-deadletter-reason"] for each in letters} == {"expired"}
    assert letters[2].ttl is None
    assert letters[1].absolute_expiry_time == expiry + 500


async def test_message_that_expired_while_somebody_had_it_dies_when_it_comes_back(
    autojump_clock: MockClock,
) -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    async with two(container) as (one, other), one.open_receiver("q") as receiver:
        await fill(other, "q", amqp.Message("x", ttl=1000))
        held = await receiver.receive()
        await trio.sleep(2)
        held.release()
        assert (await told(other)).annotations["x-opt-deadletter-reason"] == "expired"


async def test_message_dies_of_too_many_failed_attempts_and_of_no_number_of_releases() -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="dead", delivery_limit=3)
    async with two(container) as (one, other), one.open_receiver("q", credit=1) as receiver:
        await fill(other, "q", amqp.Message("x", delivery_count=7))
        for _ in range(5):
            (await receiver.receive()).release()
        (await receiver.receive()).modify(undeliverable_here=False)
        (await receiver.receive()).modify(delivery_failed=True)
        (await receiver.receive()).modify(delivery_failed=True)
        third = await receiver.receive()
        assert third.message.delivery_count == 9
        third.modify(delivery_failed=True)
        letter = await told(other)
        assert letter.annotations["x-opt-deadletter-reason"] == "delivery-limit"
        assert letter.delivery_count == 10
    assert queue.figures["failed"] == 1


async def test_message_dies_of_the_loss_of_its_consumers() -> None:
    container = Container()
    queue = container.add_queue("q", delivery_limit=2)
    async with two(container) as (one, other):
        await fill(other, "q", "x")
        for _ in range(2):
            async with one.open_receiver("q") as receiver:
                await receiver.receive()
    assert (len(queue), queue.figures["failed"]) == (0, 1)


async def test_message_that_has_to_make_room_goes_to_the_dead_letters() -> None:
    container = Container()
    container.add_queue("dead")
    container.add_queue("q", dead_letter="dead", max_length=2, overflow="drop-oldest")
    async with container.connect() as conn:
        await fill(conn, "q", *range(4))
        letters = [await told(conn) for _ in range(2)]
        assert [each.body for each in letters] == [0, 1]
        assert letters[0].annotations["x-opt-deadletter-reason"] == "overflow"


@pytest.mark.parametrize("limit", [{"max_length": 3}, {"max_octets": 360}])
@pytest.mark.parametrize("bound", ["held", "ready"])
@pytest.mark.parametrize("letters", [{}, {"dead_letter": "dead"}])
async def test_messages_that_come_faster_than_the_store_writes_make_room_for_each_other(
    limit: dict[str, Any], bound: Any, letters: dict[str, Any]
) -> None:
    container = Container(store=amqp.MemoryStore())
    dead = container.add_queue("dead")
    queue = container.add_queue("q", overflow="drop-oldest", bound=bound, **limit, **letters)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        sent = [
            await sender.transmit(amqp.Message(bytes([number]) * 120, durable=True)) for number in range(9)
        ]
        for each in sent:
            await each.wait_settled()
        assert {type(each.state) for each in sent} == {Accepted}
        await wait_all_tasks_blocked()
        assert (queue.figures["dropped"], len(dead), queue.held.bound_for_death) == (
            6,
            6 if letters else 0,
            0,
        )
        async with conn.open_receiver("q") as receiver:
            assert [body[0] for body in await bodies(receiver, 3)] == [6, 7, 8]


@pytest.mark.parametrize("address", ["topic", "/exchanges/amq.fanout"])
async def test_letter_that_waits_for_room_elsewhere_lets_its_queue_drop_no_more(address: str) -> None:
    container = Container()
    container.add_topic("topic", max_backlog=1, overflow="wait")
    container.add_queue("bound", max_length=1, overflow="wait")
    container.add_broker().bind("amq.fanout", "queue", "bound")
    queue = container.add_queue("q", dead_letter=address, max_length=1, overflow="drop-oldest")
    letters = "topic" if address == "topic" else "bound"
    async with container.connect() as conn, conn.open_receiver(letters, credit=0) as receiver:
        await fill(conn, "q", 1, 2)
        for _ in range(2):
            with pytest.raises(amqp.DeliveryRejectedError):
                await fill(conn, "q", 3)
        receiver.grant(2)
        assert await bodies(receiver, 2) == [1, 2]
        await fill(conn, "q", 4)
        assert (len(queue), queue.figures["dropped"]) == (1, 2)


async def test_message_that_a_full_queue_rejects_goes_to_the_dead_letters_too() -> None:
    container = Container()
    container.add_queue("dead")
    queue = container.add_queue("q", dead_letter="dead", max_length=1, overflow="reject-dead-letter")
    async with container.connect() as conn:
        await fill(conn, "q", "kept")
        with pytest.raises(amqp.DeliveryRejectedError) as rejected:
            await fill(conn, "q", "rejected")
        assert rejected.value.condition == "amqp:resource-limit-exceeded"
        letter = await told(conn)
        assert letter.body == "rejected"
        assert letter.annotations["x-opt-deadletter-reason"] == "overflow"
    assert (len(queue), queue.figures["refused"], queue.figures["dropped"]) == (1, 1, 0)


@pytest.mark.parametrize(("overflow", "dead_letter"), [("reject", "dead"), ("reject-dead-letter", None)])
async def test_message_that_a_full_queue_rejects_goes_nowhere_unless_it_is_to(
    overflow: Any, dead_letter: str | None
) -> None:
    container = Container()
    letters = container.add_queue("dead")
    container.add_queue("q", dead_letter=dead_letter, max_length=1, overflow=overflow)
    async with container.connect() as conn:
        await fill(conn, "q", "kept")
        with pytest.raises(amqp.DeliveryRejectedError):
            await fill(conn, "q", "rejected")
    assert len(letters) == 0


async def test_queue_that_is_emptied_lets_all_that_is_not_leased_die_and_counts_it() -> None:
    container = Container()
    letters = container.add_queue("dead")
    queue = container.add_queue("q", dead_letter="dead", redelivery_delay=100)
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        await fill(conn, "q", *range(5))
        for _ in range(2):
            (await receiver.receive()).modify(delivery_failed=True)
        await receiver.receive()
        await wait_all_tasks_blocked()
        assert queue.end_available() == 4
        await wait_all_tasks_blocked()
        assert (len(queue), queue.leased, len(letters)) == (1, 1, 4)


async def test_message_dies_for_good_when_there_is_no_dead_letter_address_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "trio_amqp10.container")
    container = Container()
    letters = container.add_queue("dead")
    queue = container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", 1, 2)
        (await receiver.receive()).reject("a:b", "first")
        await wait_all_tasks_blocked()
        queue.update(QueuePolicy())
        (await receiver.receive()).reject("a:b", "second")
        await wait_all_tasks_blocked()
    assert (len(queue), len(letters)) == (0, 1)
    told = [each.getMessage() for each in caplog.records if "died" in each.getMessage()]
    assert told == [f"{queue!r}: a message died: rejected, a:b: second"]


async def test_queue_that_is_deleted_counts_nothing_when_its_dead_letters_find_room() -> None:
    container = Container()
    letters = container.add_queue("dead", max_length=1)
    queue = container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "dead", "full")
        await fill(conn, "q", "x")
        (await receiver.receive()).reject()
        await wait_all_tasks_blocked()
        assert (len(queue), queue.leased) == (1, 0)
        container.remove_node("q")
        letters.purge()
        await wait_all_tasks_blocked()
        assert (len(queue), queue.octets, queue.leased) == (0, 0, 0)


async def test_dead_letter_waits_in_its_queue_for_room_where_it_goes() -> None:
    container = Container()
    dead = container.add_queue("dead", max_length=1)
    queue = container.add_queue("q", dead_letter="dead", max_length=3, overflow="drop-oldest")
    async with container.connect() as conn:
        async with conn.open_receiver("q") as receiver:
            await fill(conn, "q", 1, 2, 3)
            for _ in range(3):
                (await receiver.receive()).reject()
            await wait_all_tasks_blocked()
            assert (len(dead), len(queue), queue.available, queue.leased) == (1, 2, 0, 0)
        await fill(conn, "q", 4)
        with pytest.raises(amqp.DeliveryRejectedError):  # dropping 4 would make no room
            await fill(conn, "q", 5)
        async with conn.open_receiver("dead") as receiver:
            assert await bodies(receiver, 3) == [1, 2, 3]
        assert len(queue) == 1
        assert not dead.inlets


async def test_dead_letters_go_to_handlers_as_they_do_to_queues() -> None:
    container = Container()
    container.add_queue("q", dead_letter="mourner")
    seen: list[object] = []

    @container.consumer("mourner")
    async def mourn(delivery: amqp.Delivery) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(delivery.message.body)
        delivery.accept()

    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", 1, 2, 3)
        for _ in range(3):
            (await receiver.receive()).reject()
        await wait_all_tasks_blocked()
    assert seen == [1, 2, 3]


async def test_dead_letter_is_handled_when_somebody_is_connected() -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="mourner", max_length=1, overflow="drop-oldest")
    seen: list[object] = []

    @container.consumer("mourner")
    async def mourn(delivery: amqp.Delivery) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(delivery.message.body)

    await container.send("q", 1)
    with pytest.raises(amqp.AmqpError):  # the first is on its way, and only a connection can take it further
        await container.send("q", 2)
    assert not seen
    async with container.connect():
        await wait_all_tasks_blocked()
        assert seen == [1]
    await container.send("q", 3)
    assert len(queue) == 1


@pytest.mark.parametrize("address", ["nowhere", "q", "prices"])
async def test_dead_letter_that_nobody_takes_is_gone_and_logged(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    container = Container(strict=True)

    @container.producer("prices")
    async def prices(link: amqp.Sender) -> None: ...

    queue = container.add_queue("q", dead_letter=address)
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", "x")
        with caplog.at_level(logging.WARNING, "trio_amqp10.container"):
            (await receiver.receive()).reject()
            await wait_all_tasks_blocked()
    assert "a dead letter is lost" in caplog.text
    assert len(queue) == 0


@pytest.mark.parametrize("answer", ["release", "modify", "reject"])
async def test_dead_letter_that_its_handler_does_not_want_is_gone(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="mourner")

    @container.consumer("mourner")
    async def mourn(delivery: amqp.Delivery) -> None:
        getattr(delivery, answer)()
        with pytest.raises(amqp.LocalProtocolError, match="already"):
            delivery.accept()

    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", "x")
        (await receiver.receive()).reject()
        await wait_all_tasks_blocked()
    assert "a dead letter is lost" in caplog.text
    assert len(queue) == 0


async def test_dead_letters_that_wait_are_gone_with_the_node_that_they_wait_for() -> None:
    container = Container()
    container.add_queue("dead", max_length=1)
    queue = container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", 1, 2, 3)
        for _ in range(2):
            (await receiver.receive()).reject()
        await wait_all_tasks_blocked()
        assert len(queue) == 2
        container.remove_node("dead")
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        (await receiver.receive()).reject()
        assert (await told(conn)).body == 3


async def test_dead_letters_that_wait_are_gone_with_their_queue() -> None:
    container = Container()
    dead = container.add_queue("dead", max_length=1)
    container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn:
        async with conn.open_receiver("q") as receiver:
            await fill(conn, "q", 1, 2)
            for _ in range(2):
                (await receiver.receive()).reject()
            await wait_all_tasks_blocked()
            container.remove_node("q")
        assert not dead.inlets
        assert (await told(conn)).body == 1
        assert len(dead) == 0


async def test_queue_sends_letters_to_a_new_address_and_those_that_wait_to_the_old() -> None:
    container = Container()
    container.add_queue("dead", max_length=1)
    queue = container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        await fill(conn, "q", 1, 2, 3)
        deliveries = [await receiver.receive() for _ in range(3)]
        deliveries[0].reject()
        deliveries[1].reject()
        await wait_all_tasks_blocked()
        queue.update(QueuePolicy(dead_letter="elsewhere"))
        deliveries[2].reject()
        assert (await told(conn, "elsewhere")).body == 3
        assert [(await told(conn)).body for _ in range(2)] == [1, 2]
    assert len(queue) == 0


async def test_dead_letter_tells_the_story_of_its_last_death_only() -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead", dead_letter="deader", delivery_limit=1)
    async with container.connect() as conn:
        await fill(conn, "q", "x")
        async with conn.open_receiver("q") as receiver:
            (await receiver.receive()).reject("app:bad", "smells")
        async with conn.open_receiver("dead") as receiver:
            (await receiver.receive()).modify(delivery_failed=True)
            letter = await told(conn, "deader")
    assert letter.annotations == {
        "x-opt-deadletter-source": "dead",
        "x-opt-deadletter-reason": "delivery-limit",
    }


@pytest.mark.parametrize("octets", [b"no sections at all", b"\x00\x53\x72\xc1\x01\x05" + b"\x00\x53\x77\x40"])
async def test_dead_letter_goes_without_annotations_where_they_cannot_be_made(octets: bytes) -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn:
        for message_format in (0, 42):
            async with conn.open_sender("q") as sender:
                await sender.send(amqp.Message.from_payload(octets, message_format))
            async with conn.open_receiver("q") as receiver:
                (await receiver.receive()).reject()
                async with conn.open_receiver("dead") as letters:
                    delivery = await letters.receive()
                    assert delivery.payload.endswith(
                        octets
                    )  # behind a header that counts, if it was readable
                    assert delivery.message_format == message_format
                    delivery.accept()


def test_queue_in_no_container_has_no_dead_letters(caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue("q", policy=QueuePolicy(dead_letter="dead", max_length=1, overflow="drop-oldest"))
    for number in range(2):
        queue.put(content_of_message(amqp.Message(number)), None)
    assert queue._make_room(1)
    assert "in no container" in caplog.text
    assert len(queue) == 0


STRANGE = [
    pytest.param({1.5: "float", Symbol("x-a"): 1}, id="float"),
    pytest.param(PairMap([(["list"], "list"), (Symbol("x-a"), 1)]), id="list"),
    pytest.param(PairMap([("x-a", 2), (Symbol("x-a"), 1)]), id="alike"),
]


def strange(annotations: Any) -> amqp.Message:
    """A message with annotations whose keys are not all symbols, as a peer may send it all the same (3.2.10)."""
    return amqp.Message("x", annotations=PairMap(annotations), ttl=3_600_000)


@pytest.mark.parametrize("annotations", STRANGE)
async def test_letter_has_annotations_whose_keys_are_no_symbols_and_says_why_it_died(
    annotations: Any,
) -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    async with two(container) as (one, other):
        await fill(one, "q", strange(annotations))
        async with one.open_receiver("q") as receiver:
            (await receiver.receive()).reject("app:bad", "smells")
            letter = await told(other)
    assert letter.body == "x"
    assert letter.ttl is None
    for key, value in annotations.items():
        assert (key, value) in list(letter.annotations.items())
    assert letter.annotations["x-opt-deadletter-reason"] == "rejected"
    assert letter.annotations["x-opt-deadletter-condition"] == "app:bad"


@pytest.mark.parametrize("annotations", STRANGE)
async def test_message_comes_again_with_annotations_whose_keys_are_no_symbols_and_those_of_its_consumer(
    annotations: Any,
) -> None:
    container = Container()
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", strange(annotations))
        async with other.open_receiver("q", credit=0) as receiver:
            (await receiver.receive()).modify(delivery_failed=True, annotations={"x-more": 3, "x-a": 4})
            again = await receiver.receive()
            again.accept()
    assert again.message.delivery_count == 1
    assert again.message.annotations[Symbol("x-more")] == 3
    assert again.message.annotations[Symbol("x-a")] == 4
    assert len(again.message.annotations) == len(annotations) + 1


@pytest.mark.parametrize("group", [None, "g"])
async def test_what_is_ready_or_delayed_becomes_dead_letters_before_its_queue_is_deleted(
    group: str | None, autojump_clock: MockClock
) -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="dead", redelivery_delay=100, grouped=True)
    container.add_queue("dead")
    async with two(container) as (one, other):
        await fill(one, "q", amqp.Message("1", group_id=group), amqp.Message("2", group_id=group))
        async with one.open_receiver("q", credit=0) as receiver:
            (await receiver.receive()).modify(delivery_failed=True)
            await wait_all_tasks_blocked()
        assert queue.end_available() == queue.figures["deleted"] == 2
        container.remove_node("q")
        letters = [await told(other) for _ in range(2)]
        assert sorted(str(letter.body) for letter in letters) == ["1", "2"]
        assert {letter.annotations["x-opt-deadletter-reason"] for letter in letters} == {"deleted"}
