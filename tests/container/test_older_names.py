"""Nodes that were written with the names of the last release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Outlet, Peer


async def test_node_with_older_names_works_with_warnings() -> None:
    with pytest.warns(DeprecationWarning, match="interest"):

        class Old(amqp.Queue):
            asked: Any = None
            given: Any = None

            def check_outlet(  # type: ignore[override]
                self, peer: Peer, *, copying: bool, target: str | None, interest: Any
            ) -> None:
                super().check_outlet(peer, copying=copying, target=target, interest=interest)  # type: ignore[call-arg]
                self.asked = interest

            def add_outlet(self, outlet: Outlet) -> None:
                with pytest.warns(DeprecationWarning, match="subscription_terms"):
                    self.given = outlet.interest  # type: ignore[attr-defined]
                super().add_outlet(outlet)

    container = amqp.Container()
    queue = Old("old")
    container.add_node(queue)
    async with container.connect() as conn, conn.open_receiver("old"):
        assert isinstance(queue.asked, amqp.SubscriptionTerms)
        assert queue.given is queue.asked
    with pytest.warns(DeprecationWarning, match="container"):
        assert queue.house is queue.container
    with pytest.warns(DeprecationWarning, match="Container.keepers is Container.retaining_nodes now"):
        assert container.keepers is container.retaining_nodes
