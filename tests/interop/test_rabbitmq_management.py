"""``trio_amqp10.rabbitmq`` against RabbitMQ 4: the steps that the emulator passes, and what only a broker refuses."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from tests.test_docs import ROOT, blocks, promises
from tests.test_examples import load
from tests.test_rabbitmq import use, use_wrongly
from trio_amqp10 import rabbitmq, testing

from .ours import within

if TYPE_CHECKING:
    from .rabbitmq import Broker


def test_broker_declares_binds_and_deletes(rabbitmq4: Broker) -> None:
    async def main() -> None:
        async with amqp.open_connection(rabbitmq4.url) as conn:
            await use(conn, "managed-")
            async with rabbitmq.open_management(conn) as broker:
                for kind in ("quorum", "stream"):
                    assert (await broker.declare_queue(f"managed-{kind}", type=kind)).type == kind  # type: ignore[arg-type]
                    await broker.delete_queue(f"managed-{kind}")

    within(main)


def test_example_of_a_client_runs(rabbitmq4: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    within(partial(load("rabbitmq_client").main, rabbitmq4.url))
    assert capsys.readouterr().out.splitlines() == [
        "no queue is bound for black.coffee",
        "green.tea one cup",
    ]


def test_program_of_the_manual_runs(
    rabbitmq4: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs/programs/rabbitmq.rst"
    [program] = [block.text for block in blocks(page) if block.kind == "python"]
    monkeypatch.setattr(testing, "rabbitmq", lambda: nullcontext(rabbitmq4.url))
    names: dict[str, Any] = {}
    exec(program.replace("trio.run(main)", ""), names)
    within(names["main"])
    assert set(promises(page)) <= set(capsys.readouterr().out.splitlines())


def test_misspelt_queue_ends_no_other_link(rabbitmq4: Broker) -> None:
    async def main() -> None:
        async with amqp.open_connection(rabbitmq4.url) as conn:
            await use_wrongly(conn, rabbitmq4.new_queue())

    within(main)


def test_exactly_once_is_a_guarantee_that_the_broker_does_not_have(rabbitmq4: Broker) -> None:
    async def main() -> None:
        address = rabbitmq4.new_queue()
        async with amqp.open_connection(rabbitmq4.url) as conn:
            for opening in (
                conn.open_sender(address, guarantee="exactly-once"),
                conn.open_receiver(address, guarantee="exactly-once"),
            ):
                with pytest.raises(
                    amqp.GuaranteeNotSupportedError, match="rcv-settle-mode second not supported"
                ):
                    async with opening:
                        pytest.fail("the broker has no such mode")

    within(main)


def test_management_of_containers_is_refused(rabbitmq4: Broker) -> None:
    async def main() -> None:
        async with amqp.open_connection(rabbitmq4.url) as conn:
            with pytest.raises(amqp.LinkRefusedError):
                async with conn.open_management():
                    pytest.fail("it is open")
            await use(conn, "after-")

    within(main)
