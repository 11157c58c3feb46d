"""Dead letters of the stand-in for RabbitMQ: their exchanges, their routing keys, and the history that they carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill
from trio_amqp10.amqp10.wire.values import Array, Symbol, Timestamp, UInt, ULong
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

if TYPE_CHECKING:
    from trio.testing import MockClock

NOW = 1_795_382_070_250
"""Milliseconds since 1970."""


def stand_in() -> RabbitMQ:
    """One with the queue ``dead`` behind the exchange ``dlx``, whose clock stands still unless trio's is moved."""
    broker = RabbitMQ(wall_clock=lambda: NOW / 1000 + trio.current_time())
    broker.declare_exchange("dlx", "topic")
    broker.declare_exchange("src", "topic")
    broker.declare_queue("dead", {"x-dead-letter-exchange": "src"})
    broker.bind("dlx", "dead", "#")
    return broker


async def take(conn: amqp.Connection, queue: str, how: str = "accept") -> amqp.Message:
    """The next message of a queue, with this outcome."""
    async with conn.open_receiver(f"/queues/{queue}") as receiver:
        delivery = await receiver.receive()
        getattr(delivery, how)()
        return delivery.message


def route(message: amqp.Message) -> tuple[Any, Any]:
    """Where it was published to."""
    return message.annotations["x-exchange"], message.annotations["x-routing-key"]


async def test_message_says_that_it_came_straight_to_its_queue() -> None:
    broker = RabbitMQ()
    broker.declare_queue("q")
    async with broker.container.connect() as conn:
        lie = amqp.Message("x", annotations={"x-exchange": "lie", "x-routing-key": "lie", "x-mine": 1})
        await fill(conn, "/queues/q", lie)
        message = await take(conn, "q")
    assert message.annotations == {"x-exchange": "", "x-routing-key": "q", "x-mine": 1}


async def test_dead_letter_keeps_the_routing_key_of_its_message(autojump_clock: MockClock) -> None:
    _ = autojump_clock
    broker = stand_in()
    broker.declare_queue("w", {"x-dead-letter-exchange": "dlx"})
    broker.bind("src", "w", "a.#")
    async with broker.container.connect() as conn:
        await fill(conn, "/exchanges/src/a.b", amqp.Message("x", ttl=60_000))
        await take(conn, "w", "reject")
        letter = await take(conn, "dead")
    entry = {
        "queue": "w",
        "reason": "rejected",
        "count": 1,
        "first-time": Timestamp(NOW),
        "last-time": Timestamp(NOW),
        "exchange": "src",
        "routing-keys": ["a.b"],
        "ttl": 60_000,
    }
    assert letter.ttl is None
    assert letter.annotations == {
        "x-exchange": "dlx",
        "x-routing-key": "a.b",
        "x-opt-deaths": [entry],
        "x-first-death-queue": "w",
        "x-first-death-reason": "rejected",
        "x-first-death-exchange": "src",
        "x-last-death-queue": "w",
        "x-last-death-reason": "rejected",
        "x-last-death-exchange": "src",
        "x-opt-deadletter-condition": "amqp:internal-error",
    }
    deaths = letter.annotations["x-opt-deaths"]
    assert (deaths.__class__, deaths.type) == (Array, "map")
    [written] = deaths
    assert {str(key): value.__class__ for key, value in written.items()} == {
        "queue": str,
        "reason": Symbol,
        "count": ULong,
        "first-time": Timestamp,
        "last-time": Timestamp,
        "exchange": str,
        "routing-keys": Array,
        "ttl": UInt,
    }


async def test_dead_letter_of_a_message_that_came_straight_has_the_name_of_its_queue() -> None:
    broker = stand_in()
    broker.declare_queue("w", {"x-dead-letter-exchange": "dlx"})
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/w", "x", amqp.Message.from_payload(b"not sections", 77))
        await take(conn, "w", "reject")
        letter = await take(conn, "dead")
        assert route(letter) == ("dlx", "w")
        [entry] = letter.annotations["x-opt-deaths"]
        assert (entry["exchange"], entry["routing-keys"]) == ("", ["w"])
        await take(conn, "w", "reject")
        assert (await take(conn, "dead")).message_format == 77


async def test_further_deaths_are_counted_and_the_first_one_stays() -> None:
    broker = stand_in()
    broker.declare_queue("w", {"x-dead-letter-exchange": "dlx"})
    broker.bind("src", "w", "a.#")
    async with broker.container.connect() as conn:
        await fill(conn, "/exchanges/src/a.b", "x")
        for queue in ("w", "dead", "w"):
            await take(conn, queue, "reject")
        letter = await take(conn, "dead")
    found = [(each["queue"], each["count"], each["exchange"]) for each in letter.annotations["x-opt-deaths"]]
    assert found == [("w", 2, "src"), ("dead", 1, "dlx")]
    assert (
        letter.annotations["x-first-death-exchange"] == letter.annotations["x-last-death-exchange"] == "src"
    )


async def test_dead_letter_does_not_expire_by_the_time_of_day_of_its_message(
    autojump_clock: MockClock,
) -> None:
    _ = autojump_clock
    broker = stand_in()
    broker.declare_queue("w", {"x-dead-letter-exchange": "dlx"})
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/w", amqp.Message("x", absolute_expiry_time=Timestamp(NOW + 5_000)))
        await trio.sleep(6)
        letter = await take(conn, "dead")
    assert letter.annotations["x-last-death-reason"] == "expired"


@pytest.mark.parametrize(
    "arguments",
    [{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}, {"x-dead-letter-exchange": ""}],
)
async def test_dead_letter_comes_back_to_its_queue_if_a_consumer_rejected_it(
    arguments: dict[str, Any],
) -> None:
    broker = RabbitMQ()
    queue = broker.declare_queue("q", arguments)
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/q", "x")
        await take(conn, "q", "reject")
        letter = await take(conn, "q")
        assert route(letter) == ("", "q")
        assert letter.annotations["x-last-death-queue"] == "q"
    await wait_all_tasks_blocked()
    assert len(queue) == 0


async def test_dead_letter_is_dropped_that_would_go_in_circles(autojump_clock: MockClock) -> None:
    _ = autojump_clock
    broker = RabbitMQ(wall_clock=lambda: 1e9 + trio.current_time())
    queue = broker.declare_queue(
        "q", {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "r"}
    )
    other = broker.declare_queue("r", {"x-message-ttl": 1000, "x-dead-letter-exchange": "amq.fanout"})
    third = broker.declare_queue("third")
    broker.bind("amq.fanout", "q")
    broker.bind("amq.fanout", "third")
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/q", "x")
        await trio.sleep(1.5)
        assert (len(queue), len(other), len(third)) == (0, 1, 0)
        await trio.sleep(1)
        assert (len(queue), len(other), len(third)) == (0, 0, 1), "it died in the first one before"


async def test_dead_letter_goes_through_an_exchange_that_is_internal_and_is_gone_without_one() -> None:
    broker = RabbitMQ()
    broker.container.add_queue("/queues/dead")
    queue = broker.declare_queue("q", {"x-dead-letter-exchange": "in"})
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/q", "lost", "kept")
        await take(conn, "q", "reject")
        topology = broker.container.broker
        assert topology is not None
        topology.declare_exchange("in", "fanout", internal=True)
        broker.bind("in", "dead")
        await take(conn, "q", "reject")
        assert (await take(conn, "dead")).body == "kept"
        assert len(queue) == 0
        topology.delete_exchange("in")
        await fill(conn, "/queues/q", "lost too")
        await take(conn, "q", "reject")
        assert len(queue) == 0


ENTRY = {"queue": "dead", "reason": "expired", "count": 1, "first-time": 1, "last-time": 1, "exchange": ""}


@pytest.mark.parametrize(
    "deaths",
    [
        "none",
        ["none"],
        [ENTRY],
        [ENTRY | {"routing-keys": [], "count": 1 << 33}],
        [ENTRY | {"routing-keys": [], "last-time": -1}],
        [ENTRY | {"routing-keys": [], "ttl": float("inf")}],
    ],
)
async def test_history_that_a_peer_made_up_and_that_is_not_possible_is_forgotten(deaths: Any) -> None:
    broker = stand_in()
    broker.declare_queue("w", {"x-dead-letter-exchange": "dlx", "x-max-length": 1})
    async with broker.container.connect() as conn:
        notes = {"x-opt-deaths": deaths, "x-first-death-queue": "lie"}
        await fill(conn, "/queues/w", amqp.Message("x", annotations=notes), "y")
        letter = await take(conn, "dead")
    assert [each["queue"] for each in letter.annotations["x-opt-deaths"]] == ["w"]
    assert letter.annotations["x-first-death-queue"] == "w"
    assert letter.annotations["x-last-death-reason"] == "maxlen"


async def test_dead_letters_of_a_queue_of_the_program_keep_their_keys_too() -> None:
    broker = RabbitMQ()
    broker.container.add_queue("/queues/mine", dead_letter="/exchanges/amq.direct")
    broker.container.add_queue("/queues/other", dead_letter="/exchanges/amq.direct/k")
    broker.declare_queue("dead")
    broker.bind("amq.direct", "dead", "k")
    broker.bind("amq.topic", "mine", "k")
    async with broker.container.connect() as conn:
        await fill(conn, "/exchanges/amq.topic/k", "x")
        await take(conn, "mine", "reject")
        assert (await take(conn, "dead")).annotations["x-opt-deadletter-source"] == "/queues/mine"
        await fill(conn, "/queues/other", "y")
        await take(conn, "other", "reject")
        async with conn.open_receiver("/queues/dead") as receiver:
            assert await bodies(receiver, 1) == ["y"]


@pytest.mark.parametrize("bound", ["x-max-length", "x-max-length-bytes"])
async def test_queue_that_holds_nothing_gives_to_a_consumer_that_waits_or_lets_die(bound: str) -> None:
    broker = stand_in()
    queue = broker.declare_queue("w", {bound: 0, "x-dead-letter-exchange": "dlx"})
    async with broker.container.connect() as conn:
        await fill(conn, "/queues/w", "dies")
        letter = await take(conn, "dead")
        assert (letter.body, letter.annotations["x-last-death-reason"]) == ("dies", "maxlen")
        async with conn.open_receiver("/queues/w", credit=1) as receiver, trio.open_nursery() as nursery:

            async def consume() -> None:
                assert await bodies(receiver, 1) == ["goes"]

            nursery.start_soon(consume)
            await wait_all_tasks_blocked()
            await fill(conn, "/queues/w", "goes")
    assert (len(queue), len(broker.declare_queue("dead", {"x-dead-letter-exchange": "src"}))) == (0, 0)


async def test_queue_that_holds_nothing_and_rejects_takes_nothing() -> None:
    broker = RabbitMQ()
    broker.declare_queue("w", {"x-max-length": 0, "x-overflow": "reject-publish"})
    async with broker.container.connect() as conn, conn.open_receiver("/queues/w"):
        await wait_all_tasks_blocked()
        with pytest.raises(amqp.DeliveryRejectedError):
            await fill(conn, "/queues/w", "x")


@pytest.mark.parametrize("address", ["/queues/w", "/exchanges/amq.fanout/k"])
async def test_message_that_is_rejected_is_a_dead_letter_too(address: str) -> None:
    broker = stand_in()
    queue = broker.declare_queue(
        "w", {"x-max-length": 1, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "dlx"}
    )
    broker.bind("amq.fanout", "w")
    async with broker.container.connect() as conn, conn.open_sender(address) as sender:
        await sender.send("one")
        with pytest.raises(amqp.DeliveryRejectedError):
            await sender.send(amqp.Message("two", annotations={"x-exchange": "lie", "x-routing-key": "lie"}))
        letter = await take(conn, "dead")
    key = address.rpartition("/")[2]
    assert (len(queue), letter.body, route(letter)) == (1, "two", ("dlx", key))
    [entry] = letter.annotations["x-opt-deaths"]
    assert (entry["queue"], entry["reason"], entry["routing-keys"]) == ("w", "maxlen", [key])
