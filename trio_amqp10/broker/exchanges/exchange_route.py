"""ExchangeRoute: an exchange with a routing key, as a node of its own.

It exists while it has inlets. Knows exchanges; knows no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.broker.nodes.node import Node

from .addresses import exchange_address

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import Inlet

    from .exchanges import Exchange


class ExchangeRoute(Node):
    """Base of the routes; a subclass takes the messages and chooses their keys.

    Args:
        exchange: the exchange that messages go through.
        key: the routing key of all of them; None if each keeps its own.

    Attributes:
        key: as given.
    """

    accepts_senders = True

    def __init__(self, exchange: Exchange, key: str | None) -> None:
        super().__init__(exchange_address(exchange.name, key))
        self.key = key
        self._exchange = exchange

    @property
    def stores_messages(self) -> bool:
        return self._exchange.stores_messages

    def add_inlet(self, inlet: Inlet) -> None:
        super().add_inlet(inlet)
        self._exchange.join(self)

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._exchange.publisher.forget(inlet)
        if not self.inlets:
            self._exchange.leave(self)
