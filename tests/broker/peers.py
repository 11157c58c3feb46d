"""A peer of another dialect, as far as a container asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.broker.connected_peer_base import ConnectedPeerBase
from trio_amqp10.broker.peer_interfaces import LinkView
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio_amqp10.broker.rights.rights_holder import SolePolicy
    from trio_amqp10.container import Container


class Guest(ConnectedPeerBase):
    """A connection that speaks nothing at all."""

    container_id = ""
    identity: Any = None
    closed = False
    sole: SolePolicy | None = None

    def __init__(
        self,
        container: Container,
        name: str = "guest",
        user: str | None = None,
        sole: SolePolicy | None = None,
    ) -> None:
        self.container_id = name
        self.identity = None if user is None else Identity(name=user, mechanism="PLAIN")
        self.sole = sole
        super().__init__(container)
        self.said: tuple[str, str, Any] | None = None
        self.names = ["one"]
        self.over = False

    def links(self) -> Iterator[LinkView]:
        for name in self.names:
            yield LinkView(
                "sender", name, lambda: {"state": "open", "address": "q", "messages": 3}, self.close
            )

    def statistics(self) -> Mapping[str, Any]:
        return {"state": "open", "octets_in": 5, "messages_in": 2}

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        self.said = condition, description, info
        self.closed = True

    def ended(self) -> None:
        super().ended()
        self.over = True
