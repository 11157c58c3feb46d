"""Nodes that confirm: a receiver that settles second learns whether its outcome was applied (2.6.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Rejected
from trio_amqp10.container import Container, Lease, Node, Outlet, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import trio_amqp10 as amqp


class Strict(Node, Lease):
    """Gives one message, whose lease applies an outcome, refuses it, or fails."""

    accepts_receivers = may_refuse_outcomes = True

    def __init__(self, answer: Exception | None) -> None:
        super().__init__("strict")
        self.answer = answer
        self.said: list[Any] = []

    def on_demand(self, outlet: Outlet) -> None:
        if outlet.ready() and not self.said:
            self.said.append("given")
            outlet.give(Message("tea"), self, b"a name")

    def _hear(self, *what: Any) -> None:
        self.said += what
        if self.answer is not None:
            raise self.answer

    def accepted(self) -> None:
        self._hear("accepted")

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        self._hear("rejected", condition, description, info)

    def released(self) -> None:
        self._hear("released")

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        self._hear("modified", failed, undeliverable_here, annotations)

    def lost(self) -> None:
        self._hear("lost")


REFUSAL = RefusedError("app:late", "too late")


async def answer(node: Strict, outcome: str, guarantee: Any = "exactly-once", **how: Any) -> Any:
    container = Container()
    container.add_node(node)
    async with container.connect() as conn, conn.open_receiver("strict", guarantee=guarantee) as receiver:
        delivery: amqp.Delivery = await receiver.receive()
        assert delivery.tag == b"a name"
        getattr(delivery, outcome)(**how)
        await delivery.wait_settled()
        await wait_all_tasks_blocked()
        return delivery.remote_state


async def test_outcome_that_was_applied_is_confirmed() -> None:
    node = Strict(None)
    assert await answer(node, "accept") == Accepted()
    assert node.said == ["given", "accepted"]
    assert await answer(Strict(None), "modify", delivery_failed=True) == Modified(delivery_failed=True)


async def test_rejection_that_was_applied_is_confirmed_without_its_error() -> None:
    node = Strict(None)
    assert await answer(node, "reject", condition="app:bad", description="sour") == Rejected()
    assert node.said == ["given", "rejected", "app:bad", "sour", None]


@pytest.mark.parametrize("outcome", ["accept", "reject", "release", "modify"])
async def test_outcome_that_the_lease_refuses_is_rejected(outcome: str) -> None:
    state = await answer(Strict(REFUSAL), outcome)
    assert (state.error.condition, state.error.description) == ("app:late", "too late")


@pytest.mark.logs_errors
async def test_lease_that_fails_is_told_as_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    state = await answer(Strict(ValueError("bug")), "accept")
    assert state.error.condition == "amqp:internal-error"
    assert "was not taken" in caplog.text


async def test_receiver_that_settles_first_hears_nothing() -> None:
    node = Strict(REFUSAL)
    assert await answer(node, "accept", "at-least-once") is None
    assert node.said == ["given", "accepted"]


async def test_lease_of_a_link_that_goes_is_lost() -> None:
    node = Strict(None)
    container = Container()
    container.add_node(node)
    async with (
        container.connect() as conn,
        conn.open_receiver("strict", guarantee="exactly-once") as receiver,
    ):
        await receiver.receive()
    await wait_all_tasks_blocked()
    assert node.said == ["given", "lost"]
