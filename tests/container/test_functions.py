"""Functions, through real links."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
from trio.testing import Sequencer, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Accepted, Source, Target
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import bodies, fill

SECRET = "the password is swordfish"


def upper_container(**options: Any) -> Container:
    container = Container("service")

    @container.function("upper", **options)
    async def upper(message: amqp.Message) -> Any:
        if message.body == "fail":
            raise ValueError(SECRET)
        return message.body.upper()

    return container


async def test_function_replies_to_a_dynamic_node_with_the_message_id() -> None:
    async with upper_container().connect() as conn:
        source = Source(dynamic=True)
        async with conn.open_receiver(None, source=source) as replies, conn.open_sender("upper") as sender:
            assert replies.address is not None
            await sender.send(amqp.Message("hello", message_id=42, reply_to=replies.address))
            reply = (await replies.receive()).message
            assert (reply.body, reply.correlation_id, reply.to) == ("HELLO", 42, replies.address)


async def test_function_replies_with_the_correlation_id_where_the_request_has_one() -> None:
    async with upper_container().connect() as conn, conn.open_receiver("answers") as replies:
        await fill(conn, "upper", amqp.Message("x", message_id="m", correlation_id="c", reply_to="answers"))
        assert (await replies.receive()).message.correlation_id == "c"


async def test_function_replies_on_a_link_of_the_requester_that_is_named_so() -> None:
    async with (
        upper_container().connect() as conn,
        conn.open_receiver("upper", target=Target(address="me"), credit=1) as replies,
        conn.open_sender("upper") as sender,
    ):
        first = await sender.transmit(amqp.Message("a", reply_to="me"))
        assert await first.outcome() == Accepted()
        second = await sender.transmit(amqp.Message("b", reply_to="me"))
        third = await sender.transmit(amqp.Message("c", reply_to="me"))
        assert await bodies(replies, 3) == ["A", "B", "C"]
        assert await second.outcome() == await third.outcome() == Accepted()
        assert await replies.drain() == []


async def test_function_replies_on_the_link_of_the_same_name_where_the_request_asks_for_its_pair() -> None:
    async with (
        upper_container().connect() as conn,
        conn.open_receiver("upper", name="a", target=Target(address="x")) as other,
        conn.open_receiver("upper", name="b", target=Target(address="x")) as pair,
        conn.open_sender("upper", name="b") as sender,
    ):
        await sender.send(amqp.Message("hello", reply_to="$me"))
        assert await bodies(pair, 1) == ["HELLO"]
        with pytest.raises(trio.WouldBlock):
            other.receive_nowait()


async def test_function_drops_a_reply_whose_link_goes_before_it_has_credit() -> None:
    async with upper_container().connect() as conn, conn.open_sender("upper") as sender:
        async with conn.open_receiver("upper", target=Target(address="me"), credit=0):
            delivery = await sender.transmit(amqp.Message("a", reply_to="me"))
            await wait_all_tasks_blocked()
            assert not delivery.settled
        assert await delivery.outcome() == Accepted()


async def test_function_refuses_a_receiver_that_has_no_name_for_replies() -> None:
    async with upper_container().connect() as conn:
        with pytest.raises(LinkRefusedError) as refused:
            async with conn.open_receiver("upper"):
                pass
        assert refused.value.condition == "amqp:not-allowed"


async def test_function_runs_and_accepts_a_request_that_wants_no_reply() -> None:
    async with upper_container().connect() as conn, conn.open_sender("upper") as sender:
        assert await sender.send("x") == Accepted()


@pytest.mark.parametrize("reply_to", ["temporary/gone", "upper2", ""])
async def test_function_accepts_a_request_whose_reply_can_go_nowhere(reply_to: str) -> None:
    container = upper_container()

    @container.producer("upper2")
    async def nothing(link: amqp.Sender) -> None: ...

    async with container.connect() as conn, conn.open_sender("upper") as sender:
        assert await sender.send(amqp.Message("x", reply_to=reply_to)) == Accepted()


@pytest.mark.parametrize("body", ["fail", 5])
@pytest.mark.logs_errors
async def test_row_67_function_that_raises_rejects_the_request_and_tells_no_more(
    body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with upper_container().connect() as conn, conn.open_sender("upper") as sender:
        with pytest.raises(DeliveryRejectedError) as rejected:
            await sender.send(amqp.Message(body, reply_to="answers"))
        assert rejected.value.condition == "amqp:internal-error"
        assert SECRET not in str(rejected.value)
        assert "Traceback" not in str(rejected.value)
        assert await sender.send("good") == Accepted()
    assert [record.exc_info is not None for record in caplog.records if record.levelno == logging.ERROR] == [
        True
    ]


@pytest.mark.logs_errors
async def test_function_that_returns_what_amqp_has_no_type_for_rejects_the_request() -> None:
    container = Container()

    @container.function("f")
    async def f(message: amqp.Message) -> object:
        return object()

    async with container.connect() as conn, conn.open_sender("f") as sender:
        with pytest.raises(DeliveryRejectedError):
            await sender.send("x")


async def test_row_24_function_rejects_a_request_that_cannot_be_decoded() -> None:
    async with upper_container().connect() as conn, conn.open_sender("upper") as sender:
        with pytest.raises(DeliveryRejectedError) as rejected:
            await sender.send(amqp.Message.from_payload(b"\x00\x53\x77\xff"))
        assert rejected.value.condition == "amqp:decode-error"
        assert await sender.send("good") == Accepted()


async def test_function_may_return_a_message_and_keeps_it_as_it_was() -> None:
    container = Container()
    answer = amqp.Message("fixed", subject="s", to="elsewhere")

    @container.function("f")
    async def f(message: amqp.Message) -> amqp.Message:
        return answer

    async with container.connect() as conn, conn.open_receiver("answers") as replies:
        await fill(conn, "f", amqp.Message(None, message_id=1, reply_to="answers"))
        reply = (await replies.receive()).message
        assert (reply.subject, reply.correlation_id, reply.to) == ("s", 1, "elsewhere")
    assert answer.correlation_id is None


async def test_function_handles_requests_at_once_and_replies_in_their_order() -> None:
    container = Container()
    running = 0
    order: list[int] = []
    gate = Sequencer()

    @container.function("f")
    async def f(message: amqp.Message) -> int:
        nonlocal running
        running += 1
        async with gate(2 - message.body):  # the last one finishes first
            order.append(message.body)
        return int(message.body)

    async with (
        container.connect() as conn,
        conn.open_receiver("answers") as replies,
        conn.open_sender("f") as sender,
    ):
        for number in range(3):
            await sender.transmit(amqp.Message(number, reply_to="answers"))
        assert await bodies(replies, 3) == [0, 1, 2]
    assert running == 3
    assert order == [2, 1, 0]


async def test_function_handles_no_more_at_once_than_it_may() -> None:
    container = Container()
    most = running = 0

    @container.function("f", concurrency=2)
    async def f(message: amqp.Message) -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await wait_all_tasks_blocked()
        running -= 1

    async with container.connect() as conn, conn.open_sender("f") as sender:
        for number in range(9):
            await sender.transmit(number)
        await sender.flush()
    assert most == 2
    with pytest.raises(LocalProtocolError):
        container.function("g", concurrency=0)(f)


async def test_function_sends_each_reply_when_it_is_there_where_order_is_not_asked_for() -> None:
    container = Container()
    first_may = trio.Event()

    @container.function("slow-first", ordered=False)
    async def slow_first(message: amqp.Message) -> Any:
        if message.body == "first":
            await first_may.wait()
        return message.body

    async with (
        container.connect() as conn,
        conn.open_receiver("slow-first", target=Target(address="me")) as replies,
        conn.open_sender("slow-first") as sender,
    ):
        for body in ("first", "second"):
            await sender.transmit(amqp.Message(body, reply_to="me"))
        assert await bodies(replies, 1) == ["second"]
        first_may.set()
        assert await bodies(replies, 1) == ["first"]


@pytest.mark.logs_errors
async def test_function_counts_what_it_handled_what_failed_and_replies_that_came_too_late() -> None:
    container = upper_container()
    container.strict = True
    async with container.connect() as conn, conn.open_sender("upper") as sender:
        await sender.send(amqp.Message("a", reply_to="nowhere"))
        await sender.send("nobody wants a reply")
        with pytest.raises(DeliveryRejectedError):
            await sender.send("fail")
    figures = container.nodes["upper"].statistics()
    assert figures == {"senders": 0, "receivers": 0, "handled": 3, "failed": 1, "dropped": 1}
