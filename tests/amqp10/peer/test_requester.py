"""Request and reply, as a client: against a container, and against a peer that does as it likes."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import (
    ConnectionClosedError,
    DeliveryRejectedError,
    LinkDetachedError,
    LinkRefusedError,
)
from trio_amqp10.amqp10.peer.requester import Requester, open_requester
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@asynccontextmanager
async def asking(reply_to: str | None = None) -> AsyncGenerator[tuple[Container, Requester], None]:
    container = Container()

    @container.function("upper")
    async def upper(message: amqp.Message) -> Any:
        if message.body == "slow":
            await trio.sleep(5)
        if message.body == "fail":
            raise ValueError
        return message.body.upper()

    async with container.connect() as conn, open_requester(conn, "upper", reply_to=reply_to) as requester:
        yield container, requester


@pytest.mark.parametrize("reply_to", [None, "answers"])
async def test_request_returns_the_reply(reply_to: str | None) -> None:
    async with asking(reply_to) as (_, requester):
        reply = await requester.request("hello")
        assert reply.body == "HELLO"
        assert reply.to == requester.reply_to
        assert reply_to in (None, requester.reply_to)
        assert "waiting=0" in repr(requester)


async def test_request_leaves_the_callers_message_as_it_is() -> None:
    async with asking() as (_, requester):
        message = amqp.Message("a", message_id=uuid.uuid4())
        assert (await requester.request(message)).correlation_id == message.message_id
        assert message.reply_to is None
        assert (await requester.request(amqp.Message("b", correlation_id="c"))).correlation_id == "c"
        assert (await requester.request(amqp.Message("d"))).body == "D"


async def test_requests_have_ids_of_their_own_when_their_program_names_none() -> None:
    container = Container()

    @container.function("ids")
    async def ids(message: amqp.Message) -> Any:
        return message.message_id

    async with container.connect() as conn:
        found = []
        for _ in range(2):
            async with open_requester(conn, "ids") as requester:
                found += [(await requester.request("?")).body for _ in range(3)]
        assert None not in found
        assert len(set(found)) == 6


async def test_requests_go_at_once_and_get_each_its_own_reply() -> None:
    async with asking() as (_, requester), trio.open_nursery() as nursery:
        got: dict[str, Any] = {}

        async def ask(word: str) -> None:
            got[word] = (await requester.request(word)).body

        words = [f"word{number}" for number in range(150)]
        for word in words:
            nursery.start_soon(ask, word)
        with trio.fail_after(20):
            while len(got) < len(words):
                await trio.lowlevel.checkpoint()
        assert got == {word: word.upper() for word in words}


@pytest.mark.logs_errors
async def test_request_raises_when_it_is_rejected() -> None:
    async with asking() as (_, requester):
        with pytest.raises(DeliveryRejectedError) as rejected:
            await requester.request("fail")
        assert rejected.value.condition == "amqp:internal-error"
        assert (await requester.request("fine")).body == "FINE"


async def test_request_that_takes_too_long_raises_and_its_late_reply_is_dropped(
    autojump_clock: MockClock,
) -> None:
    async with asking() as (container, requester):
        with pytest.raises(trio.TooSlowError, match=r"^no reply from 'upper' within 0\.2 s$") as late:
            await requester.request("slow", timeout=0.2)
        assert isinstance(late.value, amqp.TimedOutError)
        assert late.value.sent is True
        with trio.move_on_after(0.3) as scope:
            await requester.request("slow")
        assert scope.cancelled_caught
        assert (await requester.request("quick", timeout=10)).body == "QUICK"
        await trio.sleep(15)
        queue: Any = container.nodes[requester.reply_to]
        assert len(queue) == 0  # the late replies were accepted


async def test_leaving_does_not_wait_for_the_outcome_of_a_request_that_was_given_up(
    autojump_clock: MockClock,
) -> None:
    container = Container()

    @container.function("slow")
    async def slow(message: amqp.Message) -> None:
        await trio.sleep_forever()

    async with container.connect() as conn:
        async with open_requester(conn, "slow") as requester:
            with pytest.raises(trio.TooSlowError):
                await requester.request("?", timeout=0.5)
        assert trio.current_time() < 1


async def test_request_without_credit_is_not_sent_and_its_error_tells_so(autojump_clock: MockClock) -> None:
    container = Container()
    container.add_queue("full", max_length=1)
    async with container.connect() as conn, open_requester(conn, "full", reply_to="answers") as requester:
        late: Any = None
        while late is None or late.sent:
            with pytest.raises(amqp.TimedOutError) as raised:
                await requester.request("?", timeout=1)
            late = raised.value
        assert late.sent is False
        assert str(late) == "not sent within 1 s: no credit from 'full'"


async def test_request_with_an_id_that_waits_already_is_refused(autojump_clock: MockClock) -> None:
    async with asking() as (_, requester), trio.open_nursery() as nursery:
        nursery.start_soon(requester.request, amqp.Message("slow", message_id="m"))
        await wait_all_tasks_blocked()
        with pytest.raises(LocalProtocolError):
            await requester.request(amqp.Message("x", correlation_id="m"))
        with pytest.raises(LocalProtocolError):
            await requester.request(object())


async def test_requester_is_refused_where_the_service_is_not() -> None:
    container = Container(strict=True)
    async with container.connect() as conn:
        with pytest.raises(LinkRefusedError) as refused:
            async with open_requester(conn, "nobody"):
                pass
        assert refused.value.condition == "amqp:not-found"
        await wait_all_tasks_blocked()
        assert not container.nodes


async def test_request_raises_when_the_node_for_replies_goes(autojump_clock: MockClock) -> None:
    async with (
        asking() as (container, requester),
        trio.open_nursery() as nursery,
    ):

        async def ask() -> None:
            with pytest.raises(LinkDetachedError) as detached:
                await requester.request("slow")
            assert detached.value.condition == "amqp:resource-deleted"

        nursery.start_soon(ask)
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        container.remove_node(requester.reply_to)
        await wait_all_tasks_blocked()
        with pytest.raises(LinkDetachedError):
            await requester.request("x")
        container.remove_node("upper")


async def test_request_raises_when_the_service_goes(autojump_clock: MockClock) -> None:
    async with asking() as (container, requester), trio.open_nursery() as nursery:

        async def ask() -> None:
            with pytest.raises(LinkDetachedError) as detached:
                await requester.request("slow")
            assert detached.value.condition == "amqp:resource-deleted"

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        container.remove_node("upper")


async def test_request_raises_when_the_connection_is_lost() -> None:
    container = Container()

    @container.function("never")
    async def never(message: amqp.Message) -> None:
        await trio.sleep_forever()

    with trio.move_on_after(20):
        async with container.connect(close_timeout=0.01) as conn, open_requester(conn, "never") as requester:

            async def cut() -> None:
                await wait_all_tasks_blocked()
                conn.pump.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(cut)
                with pytest.raises(
                    ConnectionClosedError, match=r"^the request to 'never' was sent, and its reply is lost: "
                ) as doubtful:
                    await requester.request("x")
                assert doubtful.value.sent is True
                for _ in range(2):
                    with pytest.raises(
                        ConnectionClosedError, match=r"^the request to 'never' was not sent: the connection"
                    ) as unsent:
                        await requester.request("y")
                    assert unsent.value.sent is False


async def test_request_raises_after_the_requester_was_closed(autojump_clock: MockClock) -> None:
    waiting: list[type[BaseException]] = []
    async with trio.open_nursery() as nursery:
        async with asking() as (_, requester):

            async def ask() -> None:
                try:
                    await requester.request("slow")
                except trio.ClosedResourceError as closed:
                    waiting.append(type(closed))

            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
        with pytest.raises(trio.ClosedResourceError):
            await requester.request("x")
    assert waiting == [trio.ClosedResourceError]


async def test_requester_lets_an_exception_of_its_block_out_as_itself() -> None:
    with pytest.raises(KeyError):
        async with asking():
            raise KeyError


async def test_requester_goes_on_after_a_reply_that_it_cannot_read_or_does_not_know() -> None:
    async with asking() as (container, requester):
        await container.send(requester.reply_to, amqp.Message.from_payload(b"no sections"))
        await container.send(requester.reply_to, amqp.Message("stray", correlation_id="nobody's"))
        await container.send(requester.reply_to, "without an id")
        assert (await requester.request("x")).body == "X"
        queue: Any = container.nodes[requester.reply_to]
        await wait_all_tasks_blocked()
        assert len(queue) == 0


async def test_requester_says_so_where_the_peer_names_no_node_for_replies() -> None:
    async def handle(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            answer: Any = {"source": amqp.Source()} if isinstance(link, amqp.IncomingSender) else {}
            async with link.accept(**answer) as accepted:
                await accepted.wait()

    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url, close_timeout=0.1) as conn:
            with pytest.raises(LocalProtocolError):
                async with open_requester(conn, "x"):
                    pass
        nursery.cancel_scope.cancel()
