"""RabbitMQ: a broker in this process, for tests of programs that use RabbitMQ.

Knows the addresses; knows nothing of links or octets.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp10.server.connection import Amqp10Connection, Amqp10Container
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.container.container import Container
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl import Server

from .addresses import queue_address, spell
from .declarations import declare_exchange, declare_queue
from .http_faults import FaultError
from .management_requests import Management

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.nodes.queue import Queue

_PROPERTIES: Final = {"product": "RabbitMQ", "version": "4.0.0", "platform": "trio-amqp10"}
"""The properties in 1.0: clients check the first two, and refuse other brokers."""

_PROPERTIES_091: Final = {"product": "RabbitMQ", "version": "3.13.7"}
"""The properties in 0-9-1, by which clients choose how ``basic.qos`` limits them."""


class RabbitMQ:
    """An emulator of RabbitMQ for clients of AMQP 1.0 and 0-9-1.

    Serve it with ``rabbit.container.serve("amqp://127.0.0.1:5672", **rabbit.serve_options)``; or from trio, in memory,
    connect with ``rabbit.container.connect()``. It has queues, exchanges and bindings, all in memory. Addresses are those of version 2:
    ``/queues/NAME``, ``/exchanges/NAME`` and ``/exchanges/NAME/KEY``, percent-encoded; an undeclared node is not found. A name
    without a slash is an address of version 1, and declares the queue, as in RabbitMQ 4.0.

    Args:
        name: the container id.
        users: passwords by user name; ``guest`` with ``guest`` if None.
        wall_clock: a clock that returns seconds since 1970.

    Attributes:
        container: the container that serves it.
        login: the first user and the password, encoded for a URL.
        serve_options: options for ``container.serve``: the users, and the properties that clients expect.
    """

    def __init__(
        self,
        name: str = "rabbit@localhost",
        *,
        users: Mapping[str, str] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        known = {"guest": "guest"} if users is None else dict(users)
        self.serve_options: dict[str, Any] = {
            "sasl": Server(users=known, anonymous=users is None),
            "properties": dict(_PROPERTIES),
        }
        self.login: Final = ":".join(quote(each, safe="") for each in next(iter(known.items()), ()))
        broker = _Broker(name, wall_clock)
        self._broker = broker.topology
        self.serve_options["dialects"] = (
            Amqp091(broker, properties=_PROPERTIES_091, limits=Limits(flow_control=False)),
        )
        self.container: Container = broker

    def declare_queue(self, name: str, arguments: Mapping[str, Any] | None = None) -> Queue:
        """Declare a queue as a client does; its ``len`` is its number of messages.

        Args:
            name: the name of the queue, not encoded.
            arguments: the arguments, e.g. ``{"x-max-length": 10}``.

        Raises:
            LocalProtocolError: the queue exists with other arguments, or the arguments are not valid.
        """
        with _faults_of_the_caller():
            return declare_queue(self._broker, name, arguments or {})[0]

    def declare_exchange(
        self, name: str, kind: str = "direct", arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Declare an exchange as a client does.

        Args:
            name: the name of the exchange, not encoded.
            kind: ``"direct"``, ``"fanout"``, ``"topic"`` or ``"headers"``.
            arguments: the arguments, e.g. ``{"alternate-exchange": "others"}``.

        Raises:
            LocalProtocolError: the exchange exists with other properties, or the kind is unknown.
        """
        with _faults_of_the_caller():
            declare_exchange(self._broker, name, kind, arguments=arguments)

    def bind(
        self, exchange: str, queue: str, key: str = "", arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Bind a queue to an exchange.

        Args:
            exchange, queue: their names, not encoded.
            key: the key that routing keys are compared with.
            arguments: the arguments that headers are compared with, e.g. ``{"x-match": "any", "colour": "red"}``.

        Raises:
            LocalProtocolError: the exchange or the queue does not exist, or the arguments are not valid.
        """
        with _faults_of_the_caller():
            self._broker.bind(exchange, "queue", queue, key, arguments)

    def __repr__(self) -> str:
        return f"<RabbitMQ {self.container.name!r} queues={len(self._broker.queues)}>"


@contextmanager
def _faults_of_the_caller() -> Generator[None]:
    """Raise a fault to the calling program, instead of an answer to a request."""
    try:
        yield
    except (FaultError, RefusedError) as fault:
        raise LocalProtocolError(fault.description) from fault


class _Broker(Container):
    """The container, whose addresses have many spellings and include routing keys."""

    def __init__(self, name: str, wall_clock: Callable[[], float]) -> None:
        super().__init__(name, strict=True, wall_clock=wall_clock)
        self.topology = self.add_broker(queue_address=queue_address, like_rabbitmq=True)
        self.amqp10.echoes = True
        self.amqp10.converse = partial(_Client, self.topology)
        self.add_node(Management(self.topology, self._post))

    def resolve(self, address: str) -> str:
        return spell(address)

    def find(self, address: str) -> Node:
        """Return the node of this address.

        A name without a slash is an address of version 1, of a queue, which is declared; unless the program has added a node of that name.

        Raises:
            RefusedError: ``amqp:not-found``.
        """
        if address and "/" not in address and not address.startswith("$") and address not in self.nodes:
            queue = self.nodes.get(queue_address(address))
            return declare_queue(self.topology, address, {})[0] if queue is None else queue
        return super().find(address)


class _Client(Amqp10Connection):
    """A connection, whose exclusive queues are deleted at its end."""

    def __init__(self, broker: Topology, container: Amqp10Container, connection: Connection) -> None:
        super().__init__(container, connection)
        self._broker = broker

    def ended(self) -> None:
        super().ended()
        self._broker.disown(self)
