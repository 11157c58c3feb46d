"""Messages that expire, and messages that are urgent, on their way through a queue."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from tests.meter import steps
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.container import Container
from trio_amqp10.testing import open_container


async def test_queue_gives_a_message_on_with_what_is_left_of_its_ttl(autojump_clock: MockClock) -> None:
    message = amqp.Message("x", ttl=5000, priority=7, message_id="id", annotations={"x-note": 1})
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", message)
        await trio.sleep(1.5)
        async with conn.open_receiver("q", credit=0) as receiver:
            first = await receiver.receive()
            assert first.message.ttl == 3500
            first.release()
            await trio.sleep(2)
            again = (await receiver.receive()).message
            assert again.ttl == 1500
            assert (again.body, again.priority, again.message_id) == ("x", 7, "id")
            assert again.annotations == {"x-note": 1}


async def test_queue_hands_on_at_once_the_octets_that_came_with_a_ttl(autojump_clock: MockClock) -> None:
    message = amqp.Message("x", ttl=0)
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_receiver("q", credit=2) as receiver,
    ):
        await wait_all_tasks_blocked()
        await fill(conn, "q", message, amqp.Message("y", ttl=10))
        assert (await receiver.receive()).payload == message.to_payload()
        assert (await receiver.receive()).message.ttl == 10


async def test_queue_drops_an_expired_message_when_it_comes_back(autojump_clock: MockClock) -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_receiver("q", credit=0) as receiver,
    ):
        await fill(conn, "q", amqp.Message("a", ttl=1000), amqp.Message("b", ttl=1000))
        receiver.grant(2)
        first, second = await receiver.receive(), await receiver.receive()
        await trio.sleep(2)
        assert len(queue_of(container)) == 2
        first.release()
        second.accept()
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) == queue_of(container).available == 0


async def test_queue_has_room_again_when_messages_expire(autojump_clock: MockClock) -> None:
    container = Container()
    queue = container.add_queue("q", max_length=2)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        for body in "ab":
            await sender.send(amqp.Message(body, ttl=1000))
        await trio.sleep(2)
        await sender.send("c")
        assert len(queue) == 1


async def test_queue_forgets_the_deadlines_of_messages_that_are_gone(autojump_clock: MockClock) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q") as sender, conn.open_receiver("q", credit=0) as receiver:
            for number in range(200):
                await sender.send(amqp.Message(number, ttl=3_600_000))
                receiver.grant(1)
                await bodies(receiver, 1)
        assert len(queue_of(container).held.deadlines) == 0


async def test_queue_shows_no_expired_message_and_ages_the_copies(autojump_clock: MockClock) -> None:
    copy = Source(address="q", distribution_mode="copy")
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", amqp.Message("a", ttl=1000), amqp.Message("b", ttl=9000))
        await trio.sleep(2)
        async with conn.open_receiver("q", source=copy) as browser:
            message = (await browser.receive()).message
            assert (message.body, message.ttl) == ("b", 7000)


async def test_temporary_queue_goes_when_its_last_message_expires(autojump_clock: MockClock) -> None:
    async with open_container() as container, container.connect() as conn:
        await fill(conn, "brief", amqp.Message("a", ttl=1000))
        await trio.sleep(2)
        async with conn.open_receiver("brief", credit=1):
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        assert not container.nodes


async def test_queue_gives_urgent_messages_first_and_keeps_order_among_equals() -> None:
    priorities = [4, 9, 0, 255, None, 5, 9, 0]
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *[amqp.Message(n, priority=each) for n, each in enumerate(priorities)])
        copy = Source(address="q", distribution_mode="copy")
        async with other.open_receiver("q", source=copy) as browser:
            assert await bodies(browser, 8) == [1, 3, 6, 5, 0, 4, 2, 7]
            await fill(one, "q", amqp.Message("now", priority=6))
            assert await bodies(browser, 1) == ["now"]
        async with other.open_receiver("q", credit=0) as receiver:
            (await receiver.receive()).release()
            await wait_all_tasks_blocked()
            receiver.grant(9)
            deliveries = [await receiver.receive() for _ in range(9)]
            assert [each.message.body for each in deliveries] == [1, 3, 6, "now", 5, 0, 4, 2, 7]
            assert deliveries[1].message.priority == 255


async def test_queue_tells_ten_priorities_apart_and_takes_those_above_as_the_highest() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        above = [amqp.Message(n, priority=n) for n in (12, 9, 255, 10)]
        await fill(conn, "q", *[amqp.Message(n, priority=n) for n in range(9)], *above)
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 13) == [12, 9, 255, 10, 8, 7, 6, 5, 4, 3, 2, 1, 0]


async def test_queue_keeps_groups_and_their_sequence_as_they_were_sent() -> None:
    sent = [amqp.Message(n, group_id="g", group_sequence=(2**32 - 1 + n) % 2**32) for n in range(3)]
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", *sent)
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(3)
            for delivery in [await receiver.receive() for _ in range(3)]:
                delivery.modify(delivery_failed=True)
            receiver.grant(3)
            again = [(await receiver.receive()).message for _ in range(3)]
            assert [(each.group_id, each.group_sequence) for each in again] == [
                ("g", 2**32 - 1),
                ("g", 0),
                ("g", 1),
            ]


async def test_queue_passes_on_other_message_formats_untouched() -> None:
    octets = amqp.Message("x", priority=9, ttl=1, delivery_annotations={"a": 1}).to_payload()
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "first", amqp.Message.from_payload(octets, 0x80013700))
        async with conn.open_receiver("q", credit=0) as receiver:
            assert await bodies(receiver, 1) == ["first"]
            for _ in range(2):
                delivery = await receiver.receive()
                assert (delivery.payload, delivery.message_format) == (octets, 0x80013700)
                delivery.modify(delivery_failed=True, annotations={"x-a": 1})
                await wait_all_tasks_blocked()


async def test_message_that_went_straight_to_a_consumer_expires_when_it_came_back(
    autojump_clock: MockClock,
) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_receiver("q", credit=1) as receiver:
            await wait_all_tasks_blocked()
            await fill(conn, "q", amqp.Message("x", ttl=5000))
            (await receiver.receive()).release()
        await wait_all_tasks_blocked()
        assert queue_of(container).available == 1
        await trio.sleep(10)  # nobody uses the queue, and its timer finds the message
        assert (len(queue_of(container)), queue_of(container).figures["expired"]) == (0, 1)


async def test_figures_without_a_connection_do_not_count_what_has_expired(
    autojump_clock: MockClock,
) -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="dead")
    dead = container.add_queue("dead")
    topic = container.add_topic("news")
    async with container.connect() as connection, connection.open_receiver("news", credit=0):
        async with connection.open_sender("news") as sender:
            await sender.send(amqp.Message("brief", ttl=1000))
        for message in (amqp.Message("brief", ttl=1000), amqp.Message("lasting")):
            await container.send("q", message)
    # Now no connection is open, whose tasks would run timers.
    assert queue.statistics()["available"] == 2
    await trio.sleep(2)
    figures = queue.statistics()
    assert (figures["messages"], figures["available"], figures["expired"]) == (1, 1, 1)
    assert dead.statistics()["available"] == 1
    assert topic.statistics()["messages"] == 0


def test_message_that_expired_long_ago_costs_no_more_when_a_peer_connects() -> None:
    """Nobody was connected meanwhile, so that no timer could run."""

    def steps_after(idle: float) -> int:
        clock = MockClock()

        async def run() -> int:
            async with open_container(["q"]) as container:
                async with container.connect() as conn:
                    await fill(conn, "q", amqp.Message("x", ttl=1000))
                await wait_all_tasks_blocked()
                clock.jump(idle)
                return steps(container._timers._run_due)

        return trio.run(run, clock=clock)

    assert steps_after(100) == steps_after(2)
