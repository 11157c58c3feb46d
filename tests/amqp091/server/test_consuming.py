"""Consumers, gets, acknowledgements and prefetch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.meter import steps
from trio_amqp10 import SqliteStore
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.consuming import Consuming
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.container import Container

from .script import bodies_of, consuming, delivered, dialled, filled, is_quiet, opened

if TYPE_CHECKING:
    from pathlib import Path


async def test_consumer_gets_what_is_there_and_what_comes() -> None:
    async with opened() as client:
        await filled(client, b"1")
        await consuming(client)
        await client.publish("", "q", b"2")
        one, two = await delivered(client, 2)
        assert (one.body, two.body) == (b"1", b"2")
        assert (one["delivery_tag"], two["delivery_tag"]) == (1, 2)
        assert (one["consumer_tag"], one["redelivered"], one["routing_key"]) == (b"c", False, b"q")


async def test_consumer_gets_a_tag_when_it_has_none() -> None:
    async with opened() as client:
        await filled(client)
        answer = await client.ask(spec.BasicConsume(queue="q"))
        assert answer["consumer_tag"].startswith(b"amq.ctag-")


async def test_consumer_tag_in_use_ends_the_connection() -> None:
    async with opened() as client:
        await filled(client)
        await consuming(client)
        assert await client.refused(spec.BasicConsume(queue="q", consumer_tag="c")) == 530


async def test_no_ack_consumer_gets_everything_and_owes_nothing() -> None:
    container = Container()
    async with opened(container) as client:
        await filled(client, *(b"%d" % n for n in range(500)))
        await client.ask(spec.BasicQos(prefetch_count=1))
        await consuming(client, no_ack=True)
        assert len(await delivered(client, 500)) == 500
        assert len(container.nodes["q"]) == 0  # type: ignore[arg-type]
        assert await client.refused(spec.BasicAck(delivery_tag=1)) == 406


async def test_prefetch_holds_a_consumer_back_until_it_acknowledges() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2", b"3")
        assert (await client.ask(spec.BasicQos(prefetch_count=2))).name == "basic.qos-ok"
        await consuming(client)
        await delivered(client, 2)
        assert await is_quiet(client)
        await client.say(spec.BasicAck(delivery_tag=2, multiple=True))
        assert bodies_of(await delivered(client, 1)) == [b"3"]


async def test_prefetch_of_a_channel_is_shared_by_its_consumers() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2")
        await filled(client, b"3", b"4", name="r")
        await client.ask(spec.BasicQos(prefetch_count=2, global_=True))
        await consuming(client)
        await delivered(client, 2)
        await consuming(client, "d", "r")
        assert await is_quiet(client)
        await client.say(spec.BasicAck(delivery_tag=1))
        assert bodies_of(await delivered(client, 1)) == [b"3"]
        assert await is_quiet(client)


async def test_qos_is_refused_with_a_size() -> None:
    async with opened() as client:
        assert await client.refused(spec.BasicQos(prefetch_size=1)) == 540


async def test_get_does_not_count_for_the_prefetch() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2")
        await client.ask(spec.BasicQos(prefetch_count=1, global_=True))
        assert (await client.ask(spec.BasicGet(queue="q")))["message_count"] == 1
        await consuming(client)
        assert bodies_of(await delivered(client, 1)) == [b"2"]


@pytest.mark.parametrize(
    ("method", "left"),
    [
        (spec.BasicAck(delivery_tag=1), 0),
        (spec.BasicReject(delivery_tag=1, requeue=False), 0),
        (spec.BasicReject(delivery_tag=1, requeue=True), 1),
        (spec.BasicNack(delivery_tag=1, requeue=True), 1),
        (spec.BasicNack(delivery_tag=0, multiple=True, requeue=False), 0),
        (spec.BasicRecoverAsync(requeue=True), 1),
    ],
    ids=lambda each: each.plan.name if isinstance(each, spec.Method) else None,
)
async def test_delivery_is_settled_as_the_client_says(method: spec.Method, left: int) -> None:
    async with opened() as client:
        await filled(client, b"1")
        await client.ask(spec.BasicGet(queue="q"))
        await client.say(method)
        assert (await client.ask(spec.QueueDeclare(queue="q")))["message_count"] == left
        if left:
            again = await client.ask(spec.BasicGet(queue="q"))
            assert (again["redelivered"], again["delivery_tag"]) == (True, 2)


@pytest.mark.parametrize(
    "method",
    [
        spec.BasicAck(delivery_tag=9),
        spec.BasicAck(delivery_tag=9, multiple=True),
        spec.BasicAck(delivery_tag=0),
        spec.BasicNack(delivery_tag=9),
        spec.BasicReject(delivery_tag=9),
    ],
    ids=repr,
)
async def test_unknown_delivery_tag_is_refused(method: spec.Method) -> None:
    async with opened() as client:
        assert await client.refused(method) == 406


async def test_requeued_messages_take_their_old_places() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2", b"3")
        for _ in range(2):
            await client.ask(spec.BasicGet(queue="q"))
        await client.say(spec.BasicNack(delivery_tag=2, multiple=True))
        got = [await client.ask(spec.BasicGet(queue="q")) for _ in range(3)]
        assert bodies_of(got) == [b"1", b"2", b"3"]
        assert [each["redelivered"] for each in got] == [True, True, False]


async def test_recover_requeues_all_and_answers() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2")
        for _ in range(2):
            await client.ask(spec.BasicGet(queue="q"))
        assert (await client.ask(spec.BasicRecover(requeue=True))).name == "basic.recover-ok"
        assert await client.refused(spec.BasicAck(delivery_tag=1)) == 406
        assert bodies_of([await client.ask(spec.BasicGet(queue="q")) for _ in range(2)]) == [b"1", b"2"]


async def test_recover_without_requeue_is_refused() -> None:
    async with opened() as client:
        assert await client.refused(spec.BasicRecover(requeue=False)) == 540


async def test_unacknowledged_messages_go_back_when_their_channel_or_connection_is_gone() -> None:
    container = Container()
    async with opened(container) as other:
        async with opened(container) as client:
            await filled(client, b"1", b"2")
            await client.ask(spec.BasicGet(queue="q"))
            assert (await client.ask(spec.ChannelClose())).name == "channel.close-ok"
            await client.ask(spec.ChannelOpen())
            await consuming(client)
            assert [each["redelivered"] for each in await delivered(client, 2)] == [True, False]
        got = [await other.ask(spec.BasicGet(queue="q")) for _ in range(2)]
        assert bodies_of(got) == [b"1", b"2"]
        assert [each["redelivered"] for each in got] == [True, True]


async def test_cancelled_consumer_gets_no_more_and_may_still_acknowledge() -> None:
    container = Container()
    async with opened(container) as client:
        await filled(client, b"1")
        await consuming(client)
        await delivered(client, 1)
        assert (await client.ask(spec.BasicCancel(consumer_tag="c"))).name == "basic.cancel-ok"
        await client.publish("", "q", b"2")
        assert await is_quiet(client)
        await client.say(spec.BasicAck(delivery_tag=1))
        there = await client.ask(spec.QueueDeclare(queue="q"))
        assert (there["message_count"], there["consumer_count"]) == (1, 0)
        assert (await client.ask(spec.BasicCancel(consumer_tag="unknown"))).name == "basic.cancel-ok"


async def test_consumer_is_cancelled_by_the_server_behind_the_answer_to_who_deletes_its_queue() -> None:
    """Clients raise what they hear while they wait for that answer; RabbitMQ has this order too."""
    container = Container()
    async with opened(container) as client, opened(container) as other:
        await filled(client)
        await consuming(client)
        await consuming(other)
        assert (await client.ask(spec.QueueDelete(queue="q"))).name == "queue.delete-ok"
        for each in (client, other):
            cancel = await each.hear()
            assert cancel is not None
            assert (cancel.name, cancel) == ("basic.cancel", {"consumer_tag": b"c", "no_wait": True})


async def test_consumer_is_cancelled_by_the_server_behind_an_answer_that_waits_for_the_store(
    tmp_path: Path,
) -> None:
    with SqliteStore(tmp_path / "store") as store:
        async with opened(Container(store=store)) as client:
            await client.ask(spec.QueueDeclare(queue="q", durable=True))
            await consuming(client)
            assert (await client.ask(spec.QueueDelete(queue="q"))).name == "queue.delete-ok"
            assert (cancel := await client.hear()) is not None
            assert cancel.name == "basic.cancel"
            await client.ask(spec.QueueDeclare(queue="q", durable=True))
            await consuming(client)  # the tag is free again


async def test_consumer_is_cancelled_by_the_server_behind_an_answer_that_waits_for_permission() -> None:
    async def authorise(_access: object) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    container = Container(authorise=authorise)
    async with opened(container) as client, opened(container) as other:
        await filled(other)
        await consuming(client)
        assert (await client.ask(spec.QueueDelete(queue="q"))).name == "queue.delete-ok"
        assert (cancel := await client.hear()) is not None
        assert cancel.name == "basic.cancel"


async def test_consumer_that_knows_no_cancel_by_the_server_is_not_told() -> None:
    async with opened(capabilities={}) as client:
        await filled(client)
        await consuming(client)
        assert (await client.ask(spec.QueueDelete(queue="q"))).name == "queue.delete-ok"


def test_next_consumer_costs_the_same_however_many_there_are() -> None:
    def cost(consumers: int) -> int:
        node: Any = SimpleNamespace(outlets=[SimpleNamespace(copying=False) for _ in range(consumers)])
        assert not Consuming.is_taken(node, exclusive=False)
        return steps(lambda: Consuming.is_taken(node, exclusive=False))

    assert cost(100) == cost(1)


async def test_exclusive_consumer_is_refused_beside_others_and_keeps_others_out() -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await filled(one)
        await consuming(one)
        assert await two.refused(spec.BasicConsume(queue="q", exclusive=True)) == 403
        await one.ask(spec.BasicCancel(consumer_tag="c"))
        await consuming(one, exclusive=True)
        assert await two.refused(spec.BasicConsume(queue="q")) == 403


# -- quorum queues, dead letters, expiry ----------------------------------------------------


async def test_rejected_message_is_dead_lettered_with_its_history() -> None:
    async with opened() as client:
        await client.ask(spec.QueueDeclare(queue="dead"))
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        await filled(client, **arguments)
        await client.publish("", "q", b"1", headers={"n": 1}, expiration="60000")
        await client.ask(spec.BasicGet(queue="q"))
        await client.say(spec.BasicReject(delivery_tag=1, requeue=False))
        got = await client.ask(spec.BasicGet(queue="dead"))
        headers = dict(got.properties[2])
        assert headers[b"n"] == ("I", 1)
        assert headers[b"x-first-death-reason"] == ("S", b"rejected")
        (death,) = (dict(entry) for _, entry in headers[b"x-death"][1])
        assert death[b"count"] == ("l", 1)
        assert death[b"queue"] == ("S", b"q")
        assert death[b"routing-keys"] == ("A", [("S", b"q")])
        assert death[b"original-expiration"] == ("S", b"60000")
        assert got.properties[7] is None


async def test_dead_letter_keeps_its_own_key_and_goes_in_no_circle() -> None:
    async with opened() as client:
        await client.ask(spec.ExchangeDeclare(exchange="dlx", type="topic"))
        await filled(client, **{"x-dead-letter-exchange": "dlx", "x-message-ttl": 0})
        await filled(client, name="dead", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
        await client.ask(spec.QueueBind(queue="q", exchange="amq.topic", routing_key="#"))
        await client.ask(spec.QueueBind(queue="dead", exchange="dlx", routing_key="my.#"))
        await client.ask(spec.QueueBind(queue="q", exchange="dlx", routing_key="my.#"))
        await client.publish("amq.topic", "my.key", b"1")
        got = await client.ask(spec.BasicGet(queue="dead"))
        assert (got.body, got["exchange"], got["routing_key"]) == (b"1", b"dlx", b"my.key")
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0


async def test_message_expires_by_its_expiration(autojump_clock: trio.testing.MockClock) -> None:
    _ = autojump_clock
    async with opened() as client:
        await filled(client)
        await client.publish("", "q", b"1", expiration="1000")
        await client.ask(spec.QueueDeclare(queue="q"))
        await trio.sleep(2)
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


async def test_function_answers_a_request_of_0_9_1() -> None:
    container = Container()

    @container.function("double")
    async def double(message: Any) -> bytes:
        await trio.lowlevel.checkpoint()
        return bytes(message.body) * 2

    async with opened(container) as client:
        await consuming(client, name="amq.rabbitmq.reply-to", no_ack=True)
        await client.publish("", "double", b"ab", reply_to="amq.rabbitmq.reply-to", correlation_id="7")
        (reply,) = await delivered(client, 1)
        assert (reply.body, reply.properties[5]) == (b"abab", b"7")


async def test_text_that_a_function_returns_is_the_body_of_the_reply() -> None:
    container = Container()

    @container.function("greet")
    async def greet(message: Any) -> str:
        await trio.lowlevel.checkpoint()
        return f"hello {bytes(message.body).decode()}"

    async with opened(container) as client:
        await consuming(client, name="amq.rabbitmq.reply-to", no_ack=True)
        await client.publish("", "greet", b"ada", reply_to="amq.rabbitmq.reply-to")
        (reply,) = await delivered(client, 1)
        assert (reply.body, reply.properties[0]) == (b"hello ada", b"text/plain; charset=utf-8")


async def test_queue_methods_are_refused_for_a_function() -> None:
    container = Container()

    @container.function("f")
    async def handler(message: Any) -> bytes:
        await trio.lowlevel.checkpoint()
        return bytes(message.body)

    async with opened(container) as client:
        for method in (spec.QueueDeclare(queue="f"), spec.BasicConsume(queue="f"), spec.BasicGet(queue="f")):
            assert await client.refused(method) == 405


async def test_client_that_is_gone_before_it_opens_leaves_nothing() -> None:
    container = Container()
    async with dialled(container) as client:
        await client.stream.aclose()
    assert not container.connected


@pytest.mark.parametrize(("product", "delivered"), [("trio-amqp10", 2), ("RabbitMQ", 1)])
async def test_qos_reaches_consumers_that_run_unless_clients_take_it_for_rabbitmq(
    product: str, delivered: int
) -> None:
    container = Container()
    dialect = Amqp091(container, properties={"product": product})
    async with opened(container, dialect=dialect) as client:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.BasicQos(prefetch_count=1))
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        for _ in range(3):
            await client.publish("", "q", b"tea")
        assert (await client.hear() or {}).get("delivery_tag") == 1
        await client.say(spec.BasicQos(prefetch_count=2), spec.QueueDeclare(queue="q", passive=True))
        names = []
        while not names or names[-1] != "queue.declare-ok":
            heard = await client.hear()
            assert heard is not None
            names.append(heard.name)
        assert names.count("basic.deliver") == delivered - 1


async def test_end_of_a_channel_counts_as_a_failed_attempt_on_a_quorum_queue() -> None:
    async with opened() as client:
        await client.ask(spec.QueueDeclare(queue="q", durable=True, arguments={"x-queue-type": "quorum"}))
        await client.publish("", "q", b"tea")
        assert (await client.ask(spec.BasicGet(queue="q"))).properties[2] is None
        assert (await client.ask(spec.ChannelClose(reply_code=200))).name == "channel.close-ok"
        assert (await client.ask(spec.ChannelOpen())).name == "channel.open-ok"
        again = await client.ask(spec.BasicGet(queue="q"))
        assert again.properties[2] == [(b"x-delivery-count", ("l", 1))]


async def test_get_is_refused_when_a_quorum_queue_has_a_single_active_consumer() -> None:
    async with opened() as client:
        await filled(client, b"1", **{"x-queue-type": "quorum", "x-single-active-consumer": True})
        assert await client.refused(spec.BasicGet(queue="q")) == 405


async def test_single_active_consumer_is_followed_by_the_next_when_it_goes() -> None:
    async with opened() as client:
        await filled(client, b"1", **{"x-single-active-consumer": True})
        await consuming(client, tag="a", no_ack=True)
        assert bodies_of(await delivered(client, 1)) == [b"1"]
        await consuming(client, tag="b", no_ack=True)
        await client.publish("", "q", b"2")
        assert [each["consumer_tag"] for each in await delivered(client, 1)] == [b"a"]
        await client.ask(spec.BasicCancel(consumer_tag="a"))
        await client.publish("", "q", b"3")
        assert [each["consumer_tag"] for each in await delivered(client, 1)] == [b"b"]


async def test_recover_sends_what_goes_back_in_order_and_redelivered() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2", b"3")
        await consuming(client)
        assert [each["redelivered"] for each in await delivered(client, 3)] == [False] * 3
        await client.say(spec.BasicAck(delivery_tag=2))
        await client.say(spec.BasicRecover(requeue=True))
        heard = [await client.hear() for _ in range(3)]
        names = [each.name for each in heard if each is not None]
        assert sorted(names) == ["basic.deliver", "basic.deliver", "basic.recover-ok"]
        again = [each for each in heard if each is not None and each.name == "basic.deliver"]
        assert [(each.body, each["redelivered"], each["delivery_tag"]) for each in again] == [
            (b"1", True, 4),
            (b"3", True, 5),
        ]
        assert await client.refused(spec.BasicAck(delivery_tag=1)) == 406


async def test_requeue_into_a_full_queue_drops_its_head() -> None:
    async with opened() as client:
        await filled(client, b"1", **{"x-max-length": 1})
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"1"
        await client.publish("", "q", b"2")
        await client.say(spec.BasicNack(delivery_tag=1, requeue=True))
        assert (await client.ask(spec.BasicGet(queue="q", no_ack=True))).body == b"2"
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
