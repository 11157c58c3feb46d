"""A channel to RabbitMQ 4, which has exchanges of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amqp.protocol import queue_declare_ok_t
from kombu.utils.uuid import uuid

from trio_amqp10.rabbitmq import exchange_address, queue_address

from .channel import Channel, Place
from .errors import kombu_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio_amqp10.rabbitmq import Management


class BrokerChannel(Channel):
    """Declares at the broker."""

    def _ask(self, call: Callable[[Management], Awaitable[Any]]) -> Any:
        with kombu_errors():
            return self._wire.manage(call)

    def _places(self, exchange: str, routing_key: str) -> list[Place]:
        if exchange:
            return [Place(exchange_address(exchange, routing_key))]
        return [Place(queue_address(routing_key), is_queue=True)]

    def _address(self, queue: str) -> str:
        return queue_address(queue)

    def exchange_declare(
        self,
        exchange: str | None = None,
        type: str = "direct",  # noqa: A002 - kombu's word
        durable: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        passive: bool = False,
        **_: Any,
    ) -> None:
        """Create an exchange; with ``passive``, do nothing.

        The broker does not show exchanges over AMQP 1.0.
        """
        if exchange and not exchange.startswith("amq.") and not passive:
            self._ask(
                lambda broker: broker.declare_exchange(
                    exchange, type, durable=durable, auto_delete=auto_delete, arguments=arguments
                )
            )

    def exchange_delete(self, exchange: str, **_: Any) -> None:
        """Delete an exchange."""
        self._ask(lambda broker: broker.delete_exchange(exchange))

    def queue_declare(
        self,
        queue: str | None = None,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> queue_declare_ok_t:
        """Create a queue, or with ``passive`` find it.

        Return its name, and the number of its messages and consumers.
        """
        name = queue or f"kombu-{uuid()}"  # amq. is the broker's own
        given = dict(arguments or {})
        kind = given.pop("x-queue-type", "classic")
        if passive:
            info = self._ask(lambda broker: broker.queue(name))
        else:
            info = self._ask(
                lambda broker: broker.declare_queue(
                    name,
                    type=kind,
                    durable=durable,
                    exclusive=exclusive,
                    auto_delete=auto_delete,
                    arguments=given,
                )
            )
        return queue_declare_ok_t(info.name, info.message_count, info.consumer_count)

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Bind a queue to an exchange."""
        source = exchange or "amq.direct"
        self._ask(
            lambda broker: broker.bind(source, queue=queue, routing_key=routing_key, arguments=arguments)
        )

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Remove a binding."""
        source = exchange or "amq.direct"
        self._ask(
            lambda broker: broker.unbind(source, queue=queue, routing_key=routing_key, arguments=arguments)
        )

    def exchange_bind(
        self,
        destination: str,
        source: str = "",
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Bind an exchange to another."""
        self._ask(
            lambda broker: broker.bind(
                source, exchange=destination, routing_key=routing_key, arguments=arguments
            )
        )

    def exchange_unbind(
        self,
        destination: str,
        source: str = "",
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Remove a binding between exchanges."""
        self._ask(
            lambda broker: broker.unbind(
                source, exchange=destination, routing_key=routing_key, arguments=arguments
            )
        )

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **_: Any) -> int:
        """Delete a queue; return the number of its messages.

        Do nothing if a condition does not hold.
        """
        info = self._ask(lambda broker: broker.queue(queue)) if if_unused or if_empty else None
        if info is not None and ((if_unused and info.consumer_count) or (if_empty and info.message_count)):
            return 0
        count: int = self._ask(lambda broker: broker.delete_queue(queue))
        for no_ack in (True, False):  # The news that these links are over may come later.
            self._idle.pop((queue, no_ack), None)
        return count

    def queue_purge(self, queue: str, **_: Any) -> int:
        """Drop the messages that no consumer has; return their number."""
        count: int = self._ask(lambda broker: broker.purge_queue(queue))
        return count
