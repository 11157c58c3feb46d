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


class _OlderLease(amqp.Lease):
    pass


async def test_lease_that_deletes_by_the_older_name_works_with_warnings() -> None:
    with pytest.warns(DeprecationWarning, match="Old.strike is Old.delete_in_commit now"):

        class Old(amqp.Lease):
            deleted = False

            def strike(self) -> Any:
                assert super().strike() is None  # type: ignore[misc]
                self.deleted = True
                return self.undo

            def undo(self) -> None:
                self.deleted = False

    lease: Any = Old()
    undo = lease.delete_in_commit()
    assert lease.deleted
    undo()
    assert not lease.deleted
    with pytest.warns(DeprecationWarning, match="_OlderLease.strike is _OlderLease.delete_in_commit now"):
        assert _OlderLease().strike() is None  # type: ignore[abstract, attr-defined]


async def test_acceptance_is_recorded_by_its_older_name_with_a_warning() -> None:
    arrivals: list[Any] = []

    class Taking(amqp.Node):
        accepts_senders = True

        def on_arrivals(self, inlet: amqp.Inlet) -> None:
            while (arrival := inlet.take()) is not None:
                with pytest.warns(DeprecationWarning, match="foretell is .*record_acceptance now"):
                    arrival.foretell()  # type: ignore[attr-defined]
                arrivals.append(arrival)
                arrival.accept()

    container = amqp.Container()
    container.add_node(Taking("here"))
    async with container.connect() as conn, conn.open_sender("here") as sender:
        await sender.send("one")
    assert len(arrivals) == 1


async def test_node_that_says_what_it_accepts_by_older_names_works_with_warnings() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"Taking\.(takes is .*accepts_senders|storing is .*stores_messages) now"
    ):

        class Taking(amqp.Node):
            takes = True

            @property
            def storing(self) -> bool:
                return True

            def on_arrivals(self, inlet: amqp.Inlet) -> None:
                while (arrival := inlet.take()) is not None:
                    arrival.accept()

    node: Any = Taking("here")
    container = amqp.Container()
    container.add_node(node)
    async with container.connect() as conn:
        async with conn.open_sender("here") as sender:
            await sender.send("one")
        with pytest.raises(amqp.LinkRefusedError, match="gives no messages"):
            async with conn.open_receiver("here"):
                pass
    assert node.accepts_senders
    assert node.stores_messages
    assert not node.keeps_subscriptions
    with pytest.warns(DeprecationWarning, match="Taking.gives is Taking.accepts_receivers now"):
        node.gives = True
    assert node.accepts_receivers
    assert not amqp.Node.accepts_receivers
