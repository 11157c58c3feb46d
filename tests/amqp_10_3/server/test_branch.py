"""Branches of distributed transactions: started, prepared, and ended by a coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError

from .script import opened


async def test_distributed_transaction_without_a_coordinator_is_not_implemented() -> None:
    async with opened() as client:
        assert await client.refused(spec.DtxSelect()) == ("connection", 540)


def with_coordinator() -> tuple[Amqp103, list[Any]]:
    branches: list[Any] = []
    return Amqp103(Container(), tickets=False, on_branch=branches.append), branches


@pytest.mark.parametrize("commits", [True, False])
async def test_coordinator_ends_a_branch(commits: bool) -> None:
    dialect, branches = with_coordinator()
    async with opened(dialect=dialect) as client:
        await client.declare()
        assert (await client.ask(spec.DtxSelect())).name == "dtx.select-ok"
        assert (await client.ask(spec.DtxStart(dtx_identifier="b"))).name == "dtx.start-ok"
        await client.publish("", "q", b"1")
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0
        (branch,) = branches
        assert branch.identifier == "b"
        (branch.commit if commits else branch.rollback)()
        with pytest.raises(LocalProtocolError):
            branch.commit()
        heard = await client.ask(spec.QueueDeclare(queue="q", passive=True))
        assert heard["message_count"] == commits


async def test_branch_that_a_queue_refuses_does_nothing_and_ends_its_channel() -> None:
    container, branches = Container(), list[Any]()
    broker = container.add_broker()
    dialect = Amqp103(container, tickets=False, on_branch=branches.append)
    async with opened(dialect=dialect) as client:
        await client.declare()
        broker.declare_queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
        await client.ask(spec.DtxSelect())
        await client.ask(spec.DtxStart(dtx_identifier="b"))
        await client.publish("", "q", b"1")
        await client.publish("", "full", b"1")
        await client.ask(spec.QueueDeclare(queue="q", passive=True))
        (branch,) = branches
        branch.commit()
        assert await client.closed(await client.hear()) == ("channel", 406)
        assert "has no room" in branch.failure
        assert not len(broker.get_queue("q"))


async def test_branch_is_rolled_back_when_its_channel_ends() -> None:
    dialect, branches = with_coordinator()
    async with opened(dialect=dialect) as client:
        await client.declare()
        await client.ask(spec.DtxSelect())
        await client.ask(spec.DtxStart(dtx_identifier="b"))
        await client.publish("", "q", b"1")
        await client.ask(spec.ChannelClose())
        (branch,) = branches
        assert branch.over
        await client.ask(spec.ChannelOpen())
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


@pytest.mark.parametrize("before", ["nothing", "publish", "tx"])
async def test_start_has_its_time(before: str) -> None:
    dialect, _ = with_coordinator()
    async with opened(dialect=dialect) as client:
        await client.declare()
        if before == "publish":
            await client.publish("", "q", b"1")
            await client.ask(spec.DtxSelect())
        elif before == "tx":
            await client.ask(spec.DtxSelect())
            await client.ask(spec.TxSelect())
        assert await client.refused(spec.DtxStart(dtx_identifier="b")) == ("connection", 503)
