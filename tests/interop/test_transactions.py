"""Transactions with Qpid Proton: as the controller of our container, and as the coordinator of ours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp

from .ours import within

if TYPE_CHECKING:
    from .peers import Client


@pytest.fixture
def transactions(proton: Client) -> Client:
    """Proton, running the program for transactions in place of the usual one."""
    program = proton.command[-1].replace("proton_peer.py", "proton_transactions.py")
    return replace(proton, command=[*proton.command[:-1], program])


def test_proton_aborts_and_commits_in_our_container(transactions: Client) -> None:
    async def run() -> None:
        container = amqp.Container("ours")
        incoming, outgoing = container.add_queue("in"), container.add_queue("out")
        await container.send("in", "in")
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(container.serve, "amqp://127.0.0.1:0")
            url = listeners[0].url
            said = await trio.to_thread.run_sync(lambda: transactions.run("control", url, "", 0))
            assert said == {"said": ["got in", "aborted", "got in", "committed"]}
            assert (len(incoming), len(outgoing)) == (0, 3)
            async with amqp.open_connection(url) as conn, conn.open_receiver("out") as receiver:
                got = await receiver.receive_many(3)
                assert [delivery.message.body for delivery in got] == ["once 0", "once 1", "once 2"]
            nursery.cancel_scope.cancel()

    within(run)


@pytest.mark.parametrize("fails", [False, True])
def test_we_commit_and_roll_back_where_proton_coordinates(transactions: Client, fails: bool) -> None:
    async def run(url: str) -> None:
        async with (
            amqp.open_connection(url) as conn,
            conn.open_sender("out") as sender,
            conn.open_receiver("in", credit=0) as receiver,
        ):
            delivery = await receiver.receive()
            async with conn.open_transaction() as txn:
                assert await sender.send("one", transaction=txn) == amqp.Accepted()
                assert await sender.send("two", transaction=txn) == amqp.Accepted()
                delivery.accept(transaction=txn)  # and nothing is awaited before the discharge
                if fails:
                    await txn.rollback()
            assert delivery.settled
            assert sender.unsettled == 0

    with transactions.listen() as listener:
        within(run, listener.url)
    work = ["posted one", "posted two", "accepted in"]
    if fails:
        assert listener.result == {"done": [], "undone": [*work, "settled, released"]}
    else:
        assert listener.result == {"done": work, "undone": []}


@pytest.fixture
def broker(proton: Client) -> Client:
    """Proton as a broker of queues, with a coordinator."""
    program = proton.command[-1].replace("proton_peer.py", "proton_broker.py")
    return replace(proton, command=[*proton.command[:-1], program])


def test_we_move_messages_between_queues_of_a_proton_broker(broker: Client) -> None:
    class OopsError(Exception):
        pass

    async def run(url: str) -> None:
        async with (
            amqp.open_connection(url) as conn,
            conn.open_sender("in") as filler,
            conn.open_sender("out") as sender,
            conn.open_receiver("in", credit=0) as receiver,
        ):
            for number in range(2):
                await filler.send(number)
            delivery = await receiver.receive()
            async with conn.open_transaction() as txn:
                await sender.send("moved", transaction=txn)
                delivery.accept(transaction=txn)
            assert (txn.state, delivery.settled) == ("committed", True)

            delivery = await receiver.receive()
            with pytest.raises(OopsError):
                async with conn.open_transaction() as txn:
                    await sender.send("never", transaction=txn)
                    delivery.accept(transaction=txn)
                    raise OopsError
            again = await receiver.receive()
            assert again.message.body == delivery.message.body == 1
            again.release()

            async with conn.open_transaction() as txn, sender.stream(transaction=txn) as body:
                for _ in range(4):
                    await body.send_all(bytes(50_000))

            async with conn.open_transaction() as kept, conn.open_transaction() as dropped:
                await sender.send("kept", transaction=kept)
                await sender.send("dropped", transaction=dropped)
                await dropped.rollback()

            async with conn.open_receiver("out", credit=0) as results:
                results.grant(10)
                found = await results.drain()
                assert [one.message.body for one in found[::2]] == ["moved", "kept"]
                assert len(found) == 3
                for one in found:
                    one.accept()

    with broker.listen() as listener:
        within(run, listener.url)
    assert listener.result["left"] == {"in": 1}
    assert listener.result["ended"] == ["committed", "rolled back", "committed", "rolled back", "committed"]
    assert (listener.result["open"], listener.result["lent"]) == (0, 0)
