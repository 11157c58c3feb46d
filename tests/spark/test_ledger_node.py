"""A ledger takes each record once, in any order of commits."""

from __future__ import annotations

import pytest
import trio
import trio.testing

import trio_amqp10 as amqp
from trio_amqp10.spark import Ledger
from trio_amqp10.testing import open_container


def record(name: object) -> amqp.Message:
    return amqp.Message("done", message_id=name)  # type: ignore[arg-type]


async def test_ledger_takes_a_record_once() -> None:
    async with open_container() as container:
        ledger = Ledger("done")
        container.add_node(ledger)
        async with container.connect() as connection, connection.open_sender("done") as sender:
            await sender.send(record("a"))
            await sender.send(record(1))
            await sender.send(record("1"))
            with pytest.raises(amqp.DeliveryRejectedError, match="amqp:precondition-failed"):
                await sender.send(record("a"))
            with pytest.raises(amqp.DeliveryRejectedError, match="needs a message-id"):
                await sender.send(record(None))
            assert len(ledger) == 3


def of_batch(job: str, batch: int, partition: int = 0) -> amqp.Message:
    said = {"spark_job": job, "spark_batch": batch}
    return amqp.Message("done", message_id=f"{job}-{batch}-{partition}", application_properties=said)


async def test_records_of_former_batches_go_and_do_not_come_back() -> None:
    async with open_container() as container:
        ledger = Ledger("done")
        container.add_node(ledger)
        async with container.connect() as connection, connection.open_sender("done") as sender:
            for batch in (3, 7, 7, 12):  # numbers need not be neighbours
                await sender.send(of_batch("a", batch, len(ledger)))
            await sender.send(of_batch("b", 1))
            assert len(ledger) == 4
            await sender.send(of_batch("a", 9, 9))  # late, and not over
            assert len(ledger) == 3
            for batch in (3, 7, 8):
                with pytest.raises(
                    amqp.DeliveryRejectedError, match=f"amqp:illegal-state: .*batch {batch} of 'a' is over"
                ):
                    await sender.send(of_batch("a", batch, 9))
            with pytest.raises(amqp.DeliveryRejectedError, match="amqp:precondition-failed"):
                await sender.send(of_batch("a", 9, 9))


async def test_transaction_that_is_rolled_back_ends_no_batch() -> None:
    async with open_container() as container:
        ledger = Ledger("done")
        container.add_node(ledger)
        async with container.connect() as connection, connection.open_sender("done") as sender:
            await sender.send(of_batch("a", 1))
            await sender.send(of_batch("a", 2))
            async with connection.open_transaction() as transaction:
                await sender.send(of_batch("a", 3), transaction=transaction)
                assert len(ledger) == 2
                await transaction.rollback()
            await sender.send(of_batch("a", 1, 1))
            assert len(ledger) == 3


async def test_record_that_somebody_is_about_to_take_stays_until_then() -> None:
    async with open_container() as container:
        ledger = Ledger("done")
        container.add_node(ledger)
        async with container.connect() as connection, connection.open_sender("done") as sender:
            await sender.send(of_batch("a", 1))
            async with connection.open_receiver("done", credit=1) as receiver:
                first = await receiver.receive()
                for batch in (2, 3):
                    await sender.send(of_batch("a", batch))
                assert len(ledger) == 3
                first.accept()
                await sender.send(of_batch("b", 1))  # behind the outcome
                assert len(ledger) == 3


async def test_record_that_is_taken_off_may_come_again() -> None:
    async with open_container() as container:
        container.add_node(Ledger("done"))
        async with container.connect() as connection, connection.open_sender("done") as sender:
            await sender.send(record("a"))
            async with connection.open_receiver("done") as receiver:
                (await receiver.receive()).accept()
            await sender.send(record("a"))


@pytest.mark.parametrize("end", ["rejected", "expired"])
async def test_name_of_a_record_that_dies_is_free(end: str, autojump_clock: trio.testing.MockClock) -> None:
    async with open_container() as container:
        container.add_node(Ledger("done"))
        async with container.connect() as connection, connection.open_sender("done") as sender:
            await sender.send(amqp.Message("done", message_id="a", ttl=1000))
            if end == "expired":
                await trio.sleep(2)
            else:
                async with connection.open_receiver("done") as receiver:
                    (await receiver.receive()).reject()
            await sender.send(record("a"))


async def test_second_transaction_with_a_record_is_refused_before_the_first_commits() -> None:
    async with open_container() as container:
        ledger = Ledger("done")
        container.add_node(ledger)
        async with (
            container.connect() as one,
            container.connect() as other,
            one.open_sender("done") as mine,
            other.open_sender("done") as theirs,
        ):
            async with one.open_transaction() as first:
                await mine.send(record("a"), transaction=first)
                with pytest.raises(amqp.TransactionRolledBackError):
                    async with other.open_transaction() as second:
                        with pytest.raises(
                            amqp.DeliveryRejectedError, match="an open transaction has sent it"
                        ):
                            await theirs.send(record("a"), transaction=second)
                assert len(ledger) == 0
            assert len(ledger) == 1
            with pytest.raises(amqp.DeliveryRejectedError):
                await theirs.send(record("a"))


async def test_rollback_gives_up_the_claim() -> None:
    async with open_container() as container:
        ledger = Ledger("done")
        container.add_node(ledger)
        async with container.connect() as connection, connection.open_sender("done") as sender:
            async with connection.open_transaction() as first:
                await sender.send(record("a"), transaction=first)
                await sender.send(record("b"), transaction=first)
                await first.rollback()
            assert len(ledger) == 0
            async with connection.open_transaction() as second:
                await sender.send(record("a"), transaction=second)
        assert len(ledger) == 1


async def test_lost_controller_gives_up_the_claim() -> None:
    async with open_container() as container:
        container.add_node(Ledger("done"))
        async with (
            container.connect() as one,
            one.open_sender("done") as sender,
            one.open_session() as session,
        ):
            with pytest.raises(amqp.TransactionRolledBackError):
                async with session.open_transaction() as transaction:
                    await sender.send(record("a"), transaction=transaction)
                    await session.aclose()
        async with container.connect() as other, other.open_sender("done") as sender:
            await sender.send(record("a"))
