"""Transactions: our controller against our coordinator, over memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.amqp10.spec.transactions import Coordinator, Declared, TransactionalState
from trio_amqp10.testing import open_container

from .helpers import served

if TYPE_CHECKING:
    from trio.testing import MockClock


class OopsError(Exception):
    """What goes wrong in the body of a test."""


async def rest(conn: amqp.Connection, address: str = "q") -> list[Any]:
    """What is on a queue, in order; taken away."""
    await wait_all_tasks_blocked()
    async with conn.open_receiver(address, credit=0) as receiver:
        receiver.grant(100)
        found = await receiver.drain()
        for delivery in found:
            delivery.accept()
    return [delivery.message.body for delivery in found]


# -- posting ------------------------------------------------------------------------------------


async def test_message_becomes_visible_when_its_transaction_commits() -> None:
    async with (
        open_container() as container,
        two(container) as (conn, other),
        conn.open_sender("q") as sender,
        other.open_receiver("q") as receiver,
    ):
        async with conn.open_transaction() as txn:
            assert await sender.send("one", transaction=txn) == amqp.Accepted()
            delivery = await sender.transmit("two", transaction=txn)
            assert await delivery.outcome() == amqp.Accepted()
            await wait_all_tasks_blocked()
            assert (receiver.buffered, txn.state) == (0, "live")
        assert txn.state == "committed"
        assert await bodies(receiver, 2) == ["one", "two"]
        assert (delivery.settled, delivery.state) == (True, amqp.Accepted())


async def test_message_is_gone_when_its_transaction_is_rolled_back() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_sender("q") as sender:
            with pytest.raises(OopsError):
                async with conn.open_transaction() as txn:
                    await sender.send("one", transaction=txn)
                    raise OopsError
            assert txn.state == "rolled back"
            await sender.send("two")
        assert await rest(other) == ["two"]


async def test_message_of_many_frames_and_one_sent_settled_are_part_of_a_transaction() -> None:
    async with open_container() as container, two(container) as (conn, other):
        large = bytes(300_000)
        async with (
            conn.open_sender("q", snd_settle_mode=amqp.SenderSettleMode.MIXED) as sender,
            conn.open_transaction() as txn,
        ):
            assert await sender.send("at most once", settled=True, transaction=txn) is None
            await sender.transmit(large, transaction=txn)
            await sender.transmit("last", transaction=txn)
        assert await rest(other) == ["at most once", large, "last"]


async def test_temporary_queue_lives_on_for_what_a_transaction_holds_back() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_transaction() as txn:
            async with conn.open_sender("made") as sender:
                await sender.send("kept", transaction=txn)
            await wait_all_tasks_blocked()
            assert "made" in container.nodes
        assert await rest(other, "made") == ["kept"]
        await wait_all_tasks_blocked()
        assert "made" not in container.nodes


async def test_messages_of_a_transaction_wait_for_room_in_order_when_the_queue_is_full() -> None:
    async with open_container() as container, two(container) as (conn, other):
        container.add_queue("small", max_length=2)
        async with conn.open_sender("small") as sender:
            async with conn.open_transaction() as txn:
                for number in range(4):
                    await sender.send(number, transaction=txn)
            assert len(queue_of(container, "small")) == 2
            async with other.open_receiver("small") as receiver:
                assert await bodies(receiver, 4) == [0, 1, 2, 3]
                await wait_all_tasks_blocked()
            assert len(queue_of(container, "small").inlets) == 1


async def test_relay_rejects_in_the_transaction_what_it_cannot_route() -> None:
    async with open_container(["q"], strict=True) as container, container.connect() as conn:
        async with conn.open_sender(None) as sender:
            with pytest.raises(amqp.DeliveryRejectedError):
                async with conn.open_transaction() as txn:
                    await sender.send(amqp.Message("no", to="nowhere"), transaction=txn)
            with pytest.raises(
                amqp.TransactionRolledBackError, match="amqp:not-found: the message has no `to`"
            ):
                async with conn.open_transaction() as txn:
                    await sender.send(amqp.Message("yes", to="q"), transaction=txn)
                    delivery = await sender.transmit(amqp.Message("no"), transaction=txn)
                    assert isinstance(await delivery.outcome(), amqp.Rejected)
        assert await rest(conn) == []


async def test_commit_fails_when_a_message_sent_settled_cannot_be_routed() -> None:
    async with open_container(["q"], strict=True) as container, container.connect() as conn:
        async with conn.open_sender(None, guarantee="at-most-once") as sender:
            with pytest.raises(amqp.TransactionRolledBackError, match="amqp:not-found") as failed:
                async with conn.open_transaction() as txn:
                    await sender.transmit(amqp.Message("yes", to="q"), transaction=txn)
                    await sender.transmit(amqp.Message("no", to="nowhere"), transaction=txn)
        assert (failed.value.condition, txn.state) == ("amqp:transaction:rollback", "rolled back")
        assert await rest(conn) == []


async def test_function_and_consumer_see_a_message_once_it_commits() -> None:
    async with open_container() as container, container.connect() as conn:
        seen: list[Any] = []

        @container.consumer("audit")
        async def audit(delivery: amqp.Delivery) -> None:
            await trio.lowlevel.checkpoint()
            seen.append(delivery.message.body)

        async with conn.open_sender("audit") as sender:
            async with conn.open_transaction() as txn:
                for number in range(3):
                    await sender.send(number, transaction=txn)
                await wait_all_tasks_blocked()
                assert not seen
            await wait_all_tasks_blocked()
            assert seen == [0, 1, 2]
        await wait_all_tasks_blocked()
        assert not container.nodes["audit"].inlets


# -- retiring -----------------------------------------------------------------------------------


async def test_outcome_counts_when_its_transaction_commits() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", *"abcd")
        async with conn.open_receiver("q") as receiver:
            a, b, c, d = [await receiver.receive() for _ in range(4)]
            async with conn.open_transaction() as txn:
                a.accept(transaction=txn)
                b.reject("amqp:decode-error", "no", transaction=txn)
                c.release(transaction=txn)
                d.modify(delivery_failed=True, undeliverable_here=True, transaction=txn)
                await wait_all_tasks_blocked()
                assert len(queue_of(container)) == 4
                assert queue_of(container).available == 0
                assert not a.settled
                with pytest.raises(amqp.LocalProtocolError, match="already given"):
                    a.accept()
            assert a.state == amqp.Accepted()
            assert isinstance(b.state, amqp.Rejected)
            assert all(one.settled for one in (a, b, c, d))
            assert await bodies(receiver, 1) == ["c"]
        async with other.open_receiver("q") as receiver:
            last = await receiver.receive()
            assert (last.message.body, last.message.delivery_count) == ("d", 1)


async def test_delivery_is_released_when_its_transaction_is_rolled_back() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            with pytest.raises(OopsError):
                async with conn.open_transaction() as txn:
                    delivery.accept(transaction=txn)
                    raise OopsError
            assert (delivery.settled, delivery.state) == (True, amqp.Released())
            again = await receiver.receive()
            assert (again.message.body, again.message.delivery_count) == ("a", 0)


async def test_delivery_can_be_settled_anew_after_a_rollback_when_it_is_kept() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            async with conn.open_transaction(keep=True) as txn:
                delivery.accept(transaction=txn)
                await txn.rollback()
            assert (delivery.settled, delivery.state) == (False, None)
            await wait_all_tasks_blocked()
            assert queue_of(container).available == 0
            async with conn.open_transaction() as second:
                delivery.accept(transaction=second)
            await wait_all_tasks_blocked()
            assert len(queue_of(container)) == 0


async def test_outcome_stays_when_the_link_goes_before_the_commit_and_goes_with_a_rollback() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a", "b")
        for wanted, fails in (("a", False), ("b", True)):
            async with conn.open_transaction() as txn:
                async with conn.open_receiver("q", credit=0) as receiver:
                    delivery = await receiver.receive()
                    assert delivery.message.body == wanted
                    delivery.accept(transaction=txn)
                await wait_all_tasks_blocked()
                if fails:
                    await txn.rollback()
        assert await rest(other) == ["b"]


# -- acquiring ----------------------------------------------------------------------------------


async def test_acquired_messages_go_back_when_the_transaction_is_rolled_back() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", *"abc")
        async with conn.open_receiver("q", credit=0) as receiver:
            with pytest.raises(OopsError):
                async with conn.open_transaction() as txn:
                    receiver.grant(2, transaction=txn)
                    first = await receiver.receive()
                    assert first.remote_state == TransactionalState(txn_id=txn.id)
                    first.accept(transaction=txn)
                    await wait_all_tasks_blocked()
                    assert (receiver.buffered, queue_of(container).available) == (1, 1)
                    raise OopsError
            assert receiver.buffered == 0
        assert await rest(other) == ["a", "b", "c"]


async def test_acquired_messages_stay_when_the_transaction_commits() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", *"abc")
        async with conn.open_receiver("q", credit=0) as receiver:
            async with conn.open_transaction() as txn:
                receiver.grant(2, transaction=txn)
                (await receiver.receive()).accept(transaction=txn)
                await wait_all_tasks_blocked()
            second = await receiver.receive()
            assert second.message.body == "b"
            second.accept()
            third = await receiver.receive()
            assert third.remote_state is None
            third.release()
        assert await rest(other) == ["c"]


@pytest.mark.parametrize("fails", [False, True])
async def test_message_acquired_at_most_once_is_gone_or_back(fails: bool) -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with (
            conn.open_receiver("q", guarantee="at-most-once") as receiver,
            conn.open_transaction() as txn,
        ):
            receiver.grant(1, transaction=txn)
            await receiver.receive()
            if fails:
                await txn.rollback()
        assert await rest(other) == ["a"] * fails


async def test_link_is_detached_when_a_node_gives_nothing_to_be_acquired() -> None:
    async with open_container() as container, container.connect() as conn:

        @container.producer("ticks")
        async def ticks(link: amqp.Sender) -> None:
            await link.transmit("tick")

        async with conn.open_receiver("ticks", credit=0) as receiver, conn.open_transaction() as txn:
            receiver.grant(1, transaction=txn)
            with pytest.raises(amqp.LinkDetachedError) as gone:
                while True:
                    await receiver.receive()
            assert gone.value.condition == "amqp:not-implemented"


async def test_receiver_that_grants_by_itself_acquires_nothing() -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_receiver("q") as receiver,
        conn.open_transaction() as txn,
    ):
        with pytest.raises(amqp.LocalProtocolError, match="credit=0"):
            receiver.grant(1, transaction=txn)


# -- several, and where -------------------------------------------------------------------------


async def test_transactions_on_one_session_know_nothing_of_each_other() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_sender("q") as sender, conn.open_transaction() as one:
            with pytest.raises(OopsError):
                async with conn.open_transaction() as two_:
                    await sender.send("two", transaction=two_)
                    await sender.send("one", transaction=one)
                    raise OopsError
        assert await rest(other) == ["one"]


async def test_transaction_spans_sessions_of_its_connection_and_no_other() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with (
            conn.open_session() as session,
            session.open_transaction() as txn,
            conn.open_sender("q") as sender,
            other.open_sender("q") as foreign,
        ):
            await sender.send("far", transaction=txn)
            with pytest.raises(amqp.LocalProtocolError, match="its own connection"):
                await foreign.send("too far", transaction=txn)
        assert await rest(other) == ["far"]


async def test_transaction_keeps_to_its_session_when_the_coordinator_cannot_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trio_amqp10.amqp10.server.connection.CAPABILITIES", ("amqp:local-transactions",))
    async with open_container(["q"]) as container, container.connect() as conn:
        async with (
            conn.open_session() as session,
            session.open_transaction() as txn,
            conn.open_sender("q") as far,
            session.open_sender("q") as near,
        ):
            await near.send("near", transaction=txn)
            with pytest.raises(amqp.LocalProtocolError, match="multi-ssns-per-txn"):
                await far.send("far", transaction=txn)
        assert await rest(conn) == ["near"]


async def test_transaction_that_is_over_takes_no_more_work() -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_sender("q") as sender,
    ):
        async with conn.open_transaction() as txn:
            await txn.commit()
            assert "committed" in repr(txn)
            with pytest.raises(amqp.LocalProtocolError, match="committed"):
                await sender.send("late", transaction=txn)
            for again in (txn.commit, txn.rollback):
                with pytest.raises(amqp.LocalProtocolError, match="committed"):
                    await again()
        assert sender.unsettled == 0


# -- what goes wrong ----------------------------------------------------------------------------


async def test_transaction_is_refused_where_there_is_no_coordinator() -> None:
    async def handle(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            await link.refuse("amqp:not-implemented")

    async with served(handle) as conn:
        with pytest.raises(amqp.LinkRefusedError):
            async with conn.open_transaction():
                pass


async def test_transaction_is_rolled_back_when_its_block_is_cancelled() -> None:
    async with open_container() as container, two(container) as (conn, other):
        await fill(other, "q", "a")
        async with conn.open_sender("r") as sender, conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            with trio.CancelScope() as scope:
                async with conn.open_transaction() as txn:
                    await sender.send("b", transaction=txn)
                    delivery.accept(transaction=txn)
                    scope.cancel()
                    await trio.sleep_forever()
            assert (txn.state, delivery.state) == ("rolled back", amqp.Released())
            assert (await receiver.receive()).message.body == "a"
        assert await rest(other, "r") == []


async def test_commit_fails_when_the_transaction_took_too_long(autojump_clock: MockClock) -> None:
    container = amqp.Container(transaction_timeout=10)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        with pytest.raises(amqp.TransactionRolledBackError) as late:
            async with conn.open_transaction() as txn:
                await sender.send("one", transaction=txn)
                await trio.sleep(11)
                with pytest.raises(amqp.DeliveryRejectedError) as refused:
                    await sender.send("two", transaction=txn)
                assert refused.value.condition == "amqp:transaction:timeout"
        assert late.value.condition == "amqp:transaction:timeout"
        with pytest.raises(OopsError):
            async with conn.open_transaction():
                await trio.sleep(11)
                raise OopsError
        assert await rest(conn) == []


@pytest.mark.parametrize("step", range(4))
async def test_all_is_as_before_when_the_connection_is_lost_at_any_step(step: int) -> None:
    async with open_container(["r"]) as container, container.connect() as other:
        await fill(other, "q", "a")
        with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError, amqp.AmqpError)):
            async with (
                container.connect(close_timeout=0.1) as conn,
                conn.open_sender("r") as sender,
                conn.open_receiver("q") as receiver,
                conn.open_transaction() as txn,
            ):
                for number in range(4):
                    if number == step:
                        await conn.pump._stream.aclose()
                        await wait_all_tasks_blocked()
                    if number == 0:
                        await sender.send("b", transaction=txn)
                    elif number == 1:
                        (await receiver.receive()).accept(transaction=txn)
                        await wait_all_tasks_blocked()
                    elif number == 2:
                        await sender.transmit("c", transaction=txn)
        assert txn.state == "rolled back"
        await wait_all_tasks_blocked()
        assert await rest(other) == ["a"]
        assert await rest(other, "r") == []


def scripted(target: Any, *answers: Any) -> Any:
    """A service whose coordinator gives these answers; None ends the connection, an Error the link."""

    async def handle(conn: amqp.Connection) -> None:
        todo = list(answers)
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(target=target) as receiver:
                async for delivery in receiver:
                    answer = todo.pop(0)
                    if answer is None:
                        return
                    if isinstance(answer, amqp.ErrorInfo):
                        await receiver.aclose(answer)
                        break
                    delivery.link.session.settlement.dispose(delivery, answer)

    return handle


@pytest.mark.parametrize(
    ("answer", "error", "state"),
    [
        (amqp.Rejected(), amqp.TransactionRolledBackError, "rolled back"),
        (amqp.Released(), amqp.TransactionRolledBackError, "rolled back"),
        (
            amqp.ErrorInfo(condition="amqp:transaction:rollback"),
            amqp.TransactionRolledBackError,
            "rolled back",
        ),
        (None, amqp.TransactionInDoubtError, "in doubt"),
    ],
    ids=["rejected", "released", "detached", "lost"],
)
async def test_commit_tells_what_is_known_of_its_end(
    answer: Any, error: type[amqp.TransactionError], state: str
) -> None:
    handle = scripted(Coordinator(), Declared(txn_id=b"t"), answer)
    async with served(handle) as conn:
        with pytest.raises(error):
            async with conn.open_transaction() as txn:
                pass
        assert txn.state == state


@pytest.mark.parametrize("target", [Coordinator(), amqp.Target(address="q")])
async def test_declare_that_is_rejected_or_made_of_no_coordinator_raises(target: Any) -> None:
    handle = scripted(target, amqp.Rejected(error=amqp.ErrorInfo(condition="amqp:not-allowed")))
    async with served(handle) as conn:
        with pytest.raises(amqp.TransactionError):
            async with conn.open_transaction():
                pass


# -- streams ------------------------------------------------------------------------------------


async def test_stream_becomes_visible_when_its_transaction_commits() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_sender("q") as sender:
            async with conn.open_transaction() as txn:
                async with sender.stream(transaction=txn) as body:
                    for _ in range(3):
                        await body.send_all(bytes(100_000))
                assert body.delivery.state == TransactionalState(txn_id=txn.id, outcome=amqp.Accepted())
                assert len(queue_of(container)) == 0
            assert (body.delivery.settled, body.delivery.state) == (True, amqp.Accepted())
        assert await rest(other) == [bytes(300_000)]


async def test_stream_is_gone_when_its_transaction_is_rolled_back() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_sender("q") as sender:
            with pytest.raises(OopsError):
                async with conn.open_transaction() as txn:
                    async with sender.stream(length=200_000, transaction=txn) as body:
                        await body.send_all(bytes(200_000))
                    raise OopsError
            assert sender.unsettled == 0
            await sender.send("after")
        assert await rest(other) == ["after"]


async def test_stream_that_is_aborted_is_no_part_of_its_transaction() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_sender("q") as sender:
            async with conn.open_transaction() as txn:
                await sender.send("before", transaction=txn)
                with pytest.raises(OopsError):
                    async with sender.stream(transaction=txn) as body:
                        await body.send_all(bytes(200_000))
                        raise OopsError
                await sender.send("after", transaction=txn)
            assert sender.unsettled == 0
        assert await rest(other) == ["before", "after"]


async def test_commit_waits_for_the_stream_of_another_task() -> None:
    async with open_container() as container, two(container) as (conn, other):
        async with conn.open_sender("q") as sender, trio.open_nursery() as nursery:

            async def write() -> None:
                async with sender.stream(transaction=txn) as body:
                    await body.send_all(b"first ")
                    begun.set()
                    await wait_all_tasks_blocked()
                    await body.send_all(b"second")

            begun = trio.Event()
            async with conn.open_transaction() as txn:
                nursery.start_soon(write)
                await begun.wait()
        assert await rest(other) == [b"first second"]


async def test_stream_is_refused_when_its_transaction_is_over() -> None:
    async with open_container() as container, container.connect() as conn, conn.open_sender("q") as sender:
        async with conn.open_transaction() as txn:
            pass
        with pytest.raises(amqp.LocalProtocolError, match="committed"):
            async with sender.stream(transaction=txn):
                raise AssertionError("a stream that should not begin")
        await sender.send("the link is as good as before")


async def test_stream_begins_no_more_when_its_transaction_ends_while_it_waits_for_credit() -> None:
    async with open_container() as container, container.connect() as conn:
        go_on = trio.Event()

        @container.consumer("slow")
        async def slow(delivery: amqp.Delivery) -> None:
            await go_on.wait()

        async with conn.open_sender("slow") as sender, trio.open_nursery() as nursery:
            while sender.credit:
                sender.send_nowait("filler")

            async def write() -> None:
                with pytest.raises(amqp.LocalProtocolError, match="rolled back"):
                    async with sender.stream(transaction=txn):
                        raise AssertionError("a stream that should not begin")

            async with conn.open_transaction() as txn:
                nursery.start_soon(write)
                await wait_all_tasks_blocked()
                await txn.rollback()
                go_on.set()
