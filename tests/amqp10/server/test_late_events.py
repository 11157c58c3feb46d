"""Events that a peer sent before its link or the node ended raise no exception."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import served_no_more
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.broker.nodes.relay import Feed, Relay
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.read_turns import ReadTurns


def no_errors(caplog: pytest.LogCaptureFixture) -> bool:
    """Whether no engine, node or link has logged an error."""
    return not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_function_outlives_a_flow_with_an_unknown_transaction_on_its_link_for_replies(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container()

    @container.function("f")
    async def answer(message: amqp.Message) -> Any:
        return message.body

    async with container.connect() as conn, conn.open_sender("f") as sender:
        async with conn.open_receiver("f", target=amqp.Target(address="me"), credit=0) as replies:
            replies._link.flow_properties = {"txn-id": b"none"}
            replies.grant(1)
            with pytest.raises(amqp.LinkDetachedError) as detached:
                await replies.receive()
            assert detached.value.condition == "amqp:transaction:unknown-id"
        await sender.send(amqp.Message("x"))
    assert no_errors(caplog)


@pytest.mark.parametrize("kind", ["function", "consumer"])
async def test_worked_node_outlives_a_link_that_ends_with_a_message_of_an_unknown_transaction(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    container = Container()

    async def handle(_: Any) -> None:
        await trio.lowlevel.checkpoint()

    getattr(container, kind)("n")(handle)
    async with container.connect() as conn, conn.open_sender("n") as other, conn.open_transaction():
        async with conn.open_sender("n", guarantee="at-most-once") as sender:
            state = TransactionalState(txn_id=b"none")
            await sender.wait_sendable()
            sender._link.send(b"\x00\x53\x77\x40", True, None, 0, state)
            await wait_all_tasks_blocked()
            assert sender.closed
        await other.send("x")
    assert no_errors(caplog)


@pytest.mark.logs_errors
async def test_request_is_answered_when_its_reply_cannot_be_posted() -> None:
    container = Container()

    class Picky(amqp.Node):
        accepts_senders = True

        def on_arrivals(self, inlet: Any) -> None:
            raise RuntimeError("no")

    container.add_node(Picky("picky"))

    @container.function("f")
    async def answer(message: amqp.Message) -> Any:
        return message.body

    async with container.connect() as conn, conn.open_sender("f") as sender:
        with pytest.raises(amqp.DeliveryRejectedError):
            await sender.send(amqp.Message("x", reply_to="picky"))
        await sender.send(amqp.Message("x"))


async def test_relay_gives_back_what_a_node_had_not_taken_when_the_link_goes_with_the_node(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container()
    container.add_queue("q", max_length=1)
    async with container.connect() as conn, conn.open_sender(None) as sender:
        for number in range(3):
            await sender.transmit(amqp.Message(number, to="q"))
        await wait_all_tasks_blocked()
        inlet = next(iter(container.relay.inlets))
        inlet._link.session.settlement.incoming.clear()  # type: ignore[attr-defined]
        container.remove_node("q")
        sender._link.detach()
        await wait_all_tasks_blocked()
    assert no_errors(caplog)


def test_relay_closes_its_lines_though_closing_one_of_them_closes_another() -> None:
    lines: list[Any] = []

    class Linked(amqp.Node):
        accepts_senders = True

        def on_arrivals(self, inlet: Any) -> None:
            """Leave it with the line."""

        def remove_inlet(self, inlet: Any) -> None:
            super().remove_inlet(inlet)
            for other in lines:
                for each in list(other.inlets):
                    each.close()

    nodes = {name: Linked(name) for name in "ab"}
    lines.extend(nodes.values())
    relay = Relay(nodes.__getitem__)
    peer: Any = SimpleNamespace(container_id="peer", identity=None)
    inlet = Feed(peer)
    relay.add_inlet(inlet)
    for name in "ab":
        inlet.push(HeldMessages(amqp.Message("x", to=name)))
    relay.on_arrivals(inlet)
    relay.remove_inlet(inlet)
    relay.remove_inlet(inlet)
    assert not relay.inlets


class HeldMessages:
    """An arrival whose link is gone."""

    settled = False
    state = None
    tag = b""

    def __init__(self, message: amqp.Message) -> None:
        self.message = message

    @property
    def content(self) -> Any:
        return content_of_message(self.message)

    def release(self) -> None:
        raise LocalProtocolError("its link is gone")


LINKS = 30


async def send_on_many_links(conn: amqp.Connection, address: str) -> None:
    """One message on each of many links, settled, in one write."""
    async with AsyncExitStack() as links:
        senders = [
            await links.enter_async_context(conn.open_sender(address, guarantee="at-most-once"))
            for _ in range(LINKS)
        ]
        for sender in senders:
            await sender.wait_sendable()
        for sender in senders:
            await sender.send("x")
        await conn.aclose()


def never_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each link the turn is over: the next link has another one."""
    monkeypatch.setattr(ReadTurns, "is_over", lambda _: True)


@pytest.mark.parametrize("dialect", ["1.0", "1.0-draft-2010"])
@pytest.mark.parametrize("kind", ["function", "consumer"])
async def test_messages_that_come_in_one_read_with_the_close_are_handled(
    kind: str, dialect: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    container, handled = Container(), 0

    async def handle(_: Any) -> None:
        nonlocal handled
        handled += 1

    getattr(container, kind)("n")(handle)
    async with container.connect(dialect=dialect) as conn:
        never_in_time(monkeypatch)
        await send_on_many_links(conn, "n")
    await wait_all_tasks_blocked()
    assert handled == LINKS
    assert no_errors(caplog)


async def test_message_that_is_read_after_the_end_of_its_connection_is_given_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container, handled = Container(), 0

    @container.consumer("n")
    async def handle(_: amqp.Delivery) -> None:
        nonlocal handled
        handled += 1

    async with container.connect() as conn, conn.open_sender("n") as sender:
        async with served_no_more(container):
            delivery = await sender.transmit("x")
            await wait_all_tasks_blocked()
        assert (handled, delivery.state) == (0, None)
    assert no_errors(caplog)
