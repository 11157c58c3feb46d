"""RabbitMQ: a broker in this process, for the tests of programs that use one.

Knows which addresses there are; knows nothing of links or octets.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from trio_amqp10.container.container import Container
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.protocols.amqp091.protocol import Amqp091
from trio_amqp10.container.protocols.amqp10.connection import Amqp10Connection, Amqp10Container
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.protocol_rules import Strict
from trio_amqp10.sasl import Server

from .addresses import queue_address, spell
from .declarations import declare_exchange, declare_queue
from .http_faults import FaultError
from .management_requests import Management

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.nodes.queue import Queue
    from trio_amqp10.peer.connection import Connection

__all__ = ["RabbitMQ"]

_PROPERTIES: Final = {"product": "RabbitMQ", "version": "4.0.0", "platform": "trio-amqp10"}
"""Clients of AMQP 1.0 look for the first two, and turn away from anything else."""

_PROPERTIES_091: Final = {"product": "RabbitMQ", "version": "3.13.7"}
"""Clients of 0-9-1 choose by these how they limit what running consumers may have unacknowledged."""


class RabbitMQ:
    """Queues, exchanges and bindings as RabbitMQ has them, for clients of AMQP 1.0 and of 0-9-1.

    Clients reach it by ``rabbit.container.serve("amqp://127.0.0.1:5672", **rabbit.serve_options)``; or from trio, in
    memory, by ``rabbit.container.connect()``. Addresses are those of version 2: ``/queues/NAME``, ``/exchanges/NAME``
    and ``/exchanges/NAME/KEY``, in percent-encoding; what was not declared is not found. All of it is in memory.

    Args:
        name: the container id that peers see.
        users: passwords by name; ``guest`` with ``guest`` if None.
        wall_clock: seconds since 1970.

    Attributes:
        container: what serves it.
        login: the first of the users with the password, as a URL has them.
        serve_options: for ``container.serve``: who may connect, and what clients want to see of a broker.
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
            "strict": Strict(section_order=False),  # RabbitMQ's client for Python puts a body of null first
        }
        self.login: Final = ":".join(quote(each, safe="") for each in next(iter(known.items()), ()))
        broker = _Broker(name, wall_clock)
        self._broker = broker.topology
        self.serve_options["dialects"] = (Amqp091(broker, properties=_PROPERTIES_091),)
        self.container: Container = broker

    def declare_queue(self, name: str, arguments: Mapping[str, Any] | None = None) -> Queue:
        """A queue, as if a client had declared it; its ``len`` is how many messages it holds.

        Args:
            name: of the queue, in plain text.
            arguments: e.g. ``{"x-max-length": 10}``.

        Raises:
            LocalProtocolError: there is one with other arguments, or these are not possible.
        """
        with _faults_of_the_caller():
            return declare_queue(self._broker, name, arguments or {})[0]

    def declare_exchange(
        self, name: str, kind: str = "direct", arguments: Mapping[str, Any] | None = None
    ) -> None:
        """An exchange, as if a client had declared it.

        Args:
            name: of the exchange, in plain text.
            kind: ``"direct"``, ``"fanout"``, ``"topic"`` or ``"headers"``.
            arguments: e.g. ``{"alternate-exchange": "others"}``.

        Raises:
            LocalProtocolError: there is one with other properties, or there is no such kind.
        """
        with _faults_of_the_caller():
            declare_exchange(self._broker, name, kind, arguments=arguments)

    def bind(
        self, exchange: str, queue: str, key: str = "", arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Have an exchange hand messages on to a queue.

        Args:
            exchange, queue: their names, in plain text.
            key: what routing keys are compared with.
            arguments: what headers are compared with, e.g. ``{"x-match": "any", "colour": "red"}``.

        Raises:
            LocalProtocolError: there is no such exchange or queue, or the arguments are not possible.
        """
        with _faults_of_the_caller():
            self._broker.bind(exchange, "queue", queue, key, arguments)

    def __repr__(self) -> str:
        return f"<RabbitMQ {self.container.name!r} queues={len(self._broker.queues)}>"


@contextmanager
def _faults_of_the_caller() -> Generator[None]:
    """Who calls from within hears of a fault as an exception, not as the answer to a request."""
    try:
        yield
    except (FaultError, RefusedError) as fault:
        raise LocalProtocolError(fault.description) from fault


class _Broker(Container):
    """The container, whose addresses may be spelt in many ways, and lead to routing keys."""

    def __init__(self, name: str, wall_clock: Callable[[], float]) -> None:
        super().__init__(name, strict=True, wall_clock=wall_clock)
        self.topology = self.add_broker(queue_address=queue_address)
        self.amqp10.echoes = True
        self.amqp10.converse = partial(_Client, self.topology)
        self.add_node(Management(self.topology, self._post))

    def resolve(self, address: str) -> str:
        return spell(address)


class _Client(Amqp10Connection):
    """A connection, whose exclusive queues go with it."""

    def __init__(self, broker: Topology, container: Amqp10Container, connection: Connection) -> None:
        super().__init__(container, connection)
        self._broker = broker

    def ended(self) -> None:
        super().ended()
        self._broker.disown(self)
