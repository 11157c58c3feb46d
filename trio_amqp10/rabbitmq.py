"""RabbitMQ 4 as a client sees it: addresses of its queues and exchanges, and their declaration over ``/management``.

A queue and an exchange are made by requests over a pair of links (Link Pairing 1.0), which look like HTTP: the subject is the
method, ``to`` the path, and the subject of the reply the status. Messages are sent and received by ``Connection.open_sender`` and
``open_receiver``, at the addresses that ``queue_address`` and ``exchange_address`` make.

The former path of ``trio_amqp10.testing.rabbitmq_emulator``: its names work here for one more release, with a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from trio_amqp10.errors import AmqpError, LocalProtocolError
from trio_amqp10.message import Message, Value
from trio_amqp10.patterns.requester import RequesterOpening
from trio_amqp10.peer.connection import Connection  # noqa: TC001 - the manual reads annotations
from trio_amqp10.spec.messaging import Source, Target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from trio_amqp10.patterns.requester import Requester

__all__ = [
    "Management",
    "ManagementError",
    "QueueInfo",
    "exchange_address",
    "open_management",
    "queue_address",
]

ADDRESS: Final = "/management"
_PAIRED: Final = {"paired": True}
_CREDIT: Final = 100
"""Replies that may be under way."""

QueueType = Literal["classic", "quorum", "stream"]
ExchangeType = Literal["direct", "fanout", "topic", "headers"]


def queue_address(queue: str) -> str:
    """The address of a queue, to send to and to receive from: ``/queues/NAME``, percent-encoded."""
    return f"/queues/{_encoded(queue)}"


def exchange_address(exchange: str, routing_key: str = "") -> str:
    """The address of an exchange, to send to, with this routing key: ``/exchanges/NAME/KEY``, percent-encoded."""
    if not exchange:
        raise LocalProtocolError(
            f"the default exchange has no address: send to queue_address({routing_key!r})"
        )
    return f"/exchanges/{_encoded(exchange)}" + (f"/{_encoded(routing_key)}" if routing_key else "")


class ManagementError(AmqpError):
    """RabbitMQ did not do what was asked for.

    Attributes:
        status: as in HTTP: 404 there is none, 409 there is another of this name, 403 it is not permitted.
        description: what RabbitMQ says of it.
    """

    def __init__(self, request: str, status: int, description: str) -> None:
        super().__init__(f"{request}: {status}, {description}")
        self.status = status
        self.description = description


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue, as RabbitMQ describes it.

    Attributes:
        name: of the queue; made by RabbitMQ where none was given.
        type: ``classic``, ``quorum`` or ``stream``.
        durable: whether it outlives the broker.
        exclusive: whether it is this connection's alone.
        auto_delete: whether it goes with its last consumer.
        arguments: those that it was declared with.
        message_count: messages that wait.
        consumer_count: those who receive from it.
    """

    name: str
    type: str
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: Mapping[str, Any]
    message_count: int
    consumer_count: int


class Management:
    """Declares and deletes what messages go through. Any number of tasks may use it.

    Every method raises ``ManagementError`` where RabbitMQ refuses, ``trio.TooSlowError`` where it does not answer for ``timeout``
    seconds, and ``LinkDetachedError``, ``SessionEndedError`` or ``ConnectionClosedError`` where a link is gone. Cancelled: it may have
    been done.
    """

    def __init__(self, requester: Requester, timeout: float) -> None:
        self._requester = requester
        self._timeout = timeout

    async def declare_queue(
        self,
        name: str,
        *,
        type: QueueType = "classic",  # noqa: A002 - RabbitMQ's word
        durable: bool = True,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> QueueInfo:
        """Make a queue, or find that there is one like it.

        Args:
            name: of the queue.
            type: how it is stored; ``quorum`` is replicated, ``stream`` keeps what was read.
            durable: it outlives the broker.
            exclusive: it is this connection's alone, and goes with it.
            auto_delete: it goes with its last consumer.
            arguments: RabbitMQ's ``x-`` arguments, as ``{"x-message-ttl": 60_000}``.

        Raises:
            ManagementError: 409: there is a queue of this name that is unlike; 400: an argument is none.

        Cancelled: it may have been made.
        """
        body = {
            "durable": durable,
            "exclusive": exclusive,
            "auto_delete": auto_delete,
            "arguments": {"x-queue-type": type, **(arguments or {})},
        }
        return _queue_info(await self._ask("PUT", f"/queues/{_encoded(name)}", body))

    async def queue(self, name: str) -> QueueInfo:
        """What there is to know of a queue.

        Raises:
            ManagementError: 404: there is none.

        Cancelled: nothing has happened.
        """
        return _queue_info(await self._ask("GET", f"/queues/{_encoded(name)}"))

    async def delete_queue(self, name: str) -> int:
        """Delete a queue; returns how many messages went with it, 0 where there was none. Cancelled: it may be gone."""
        return _count(await self._ask("DELETE", f"/queues/{_encoded(name)}"))

    async def purge_queue(self, name: str) -> int:
        """Throw away the messages of a queue that no consumer has; returns how many. Cancelled: they may be gone."""
        return _count(await self._ask("DELETE", f"/queues/{_encoded(name)}/messages"))

    async def declare_exchange(
        self,
        name: str,
        type: ExchangeType | str = "direct",  # noqa: A002 - RabbitMQ's word
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an exchange, or find that there is one like it.

        Args:
            name: of the exchange.
            type: how it routes; a plug-in may bring more than the four that there are.
            durable: it outlives the broker.
            auto_delete: it goes with its last binding.
            internal: only other exchanges send to it.
            arguments: as ``{"alternate-exchange": "unroutable"}``.

        Raises:
            ManagementError: 409: there is an exchange of this name that is unlike.

        Cancelled: it may have been made.
        """
        body = {
            "type": type,
            "durable": durable,
            "auto_delete": auto_delete,
            "internal": internal,
            "arguments": dict(arguments or {}),
        }
        await self._ask("PUT", f"/exchanges/{_encoded(name)}", body)

    async def delete_exchange(self, name: str) -> None:
        """Delete an exchange; nothing happens where there is none. Cancelled: it may be gone."""
        await self._ask("DELETE", f"/exchanges/{_encoded(name)}")

    async def bind(
        self,
        source: str,
        *,
        queue: str | None = None,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Have an exchange give what matches to a queue, or to another exchange.

        Args:
            source: the exchange.
            queue, exchange: one of the two: where messages go.
            routing_key: for topics a pattern, as ``order.*``.
            arguments: for ``headers`` exchanges, as ``{"x-match": "all", "colour": "red"}``.

        Raises:
            LocalProtocolError: neither a queue nor an exchange was given, or both.
            ManagementError: 404: one of the two is not there.

        Cancelled: it may be bound.
        """
        kind, destination = _destination(queue, exchange)
        body = {
            "source": source,
            f"destination_{kind}": destination,
            "binding_key": routing_key,
            "arguments": dict(arguments or {}),
        }
        await self._ask("POST", "/bindings", body)

    async def bindings(
        self, source: str, *, queue: str | None = None, exchange: str | None = None, routing_key: str = ""
    ) -> list[dict[str, Any]]:
        """The arguments of each binding with this routing key; an empty list if there is none.

        RabbitMQ asks for both ends and the key: it does not list the bindings of an exchange over AMQP 1.0.

        Args:
            source: the exchange.
            queue, exchange: one of the two: where messages go.
            routing_key: of the bindings.

        Raises:
            LocalProtocolError: neither a queue nor an exchange was given, or both.

        Cancelled: nothing has happened.
        """
        found = await self._bindings(source, queue, exchange, routing_key)
        return [dict(binding["arguments"]) for binding in found]

    async def _bindings(self, source: str, queue: str | None, exchange: str | None, key: str) -> list[Any]:
        kind, destination = _destination(queue, exchange)
        names = (("src", source), (f"dst{kind[0]}", destination), ("key", key))
        query = "&".join(f"{name}={_encoded(value)}" for name, value in names)
        return await self._ask("GET", f"/bindings?{query}") or []

    async def unbind(
        self,
        source: str,
        *,
        queue: str | None = None,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """End a binding; the arguments are those of ``bind``. Nothing happens where there is none. Cancelled: it may be ended.

        Raises:
            LocalProtocolError: as ``bind``.
        """
        for binding in await self._bindings(source, queue, exchange, routing_key):
            if dict(binding["arguments"]) == dict(arguments or {}):
                await self._ask("DELETE", binding["location"])

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = Message(Value(body), subject=method, to=path)
        reply = await self._requester.request(request, timeout=self._timeout)
        status = int(reply.subject or 0)
        if not 200 <= status < 300:
            raise ManagementError(f"{method} {path}", status, str(reply.body))
        return reply.body


class _Opening(RequesterOpening):
    """A sender and a receiver of one name at one address, which RabbitMQ takes for a pair."""

    def __init__(self, connection: Connection) -> None:
        name = connection.new_name()
        self._direct = "$me"
        self._made = False
        paired: dict[str, Any] = {"name": name, "guarantee": "at-most-once", "properties": _PAIRED}
        ends: dict[str, Any] = {"source": Source(address=ADDRESS), "target": Target(address=ADDRESS)}
        self._receiving = connection.open_receiver(ADDRESS, **paired, **ends, credit=_CREDIT)
        self._sending = connection.open_sender(ADDRESS, **paired, **ends)


class _ManagementOpening:
    def __init__(self, connection: Connection, timeout: float) -> None:
        self._opening = _Opening(connection)
        self._timeout = timeout

    async def __aenter__(self) -> Management:
        return Management(await self._opening.__aenter__(), self._timeout)

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._opening.__aexit__(kind, exc, tb)


def open_management(connection: Connection, *, timeout: float = 30.0) -> _ManagementOpening:
    """Declare, bind, purge and delete at RabbitMQ 4: ``async with open_management(conn) as broker``.

    Args:
        connection: to RabbitMQ, or to its stand-in (``trio_amqp10.testing.rabbitmq``).
        timeout: seconds to wait for each answer.

    Raises (on entering):
        LinkRefusedError: the peer has no ``/management``: it is no RabbitMQ, or older than 4.0.
    """
    return _ManagementOpening(connection, timeout)


def _encoded(name: str) -> str:
    return quote(name, safe="")


def _destination(queue: str | None, exchange: str | None) -> tuple[str, str]:
    if queue is not None and exchange is None:
        return "queue", queue
    if exchange is not None and queue is None:
        return "exchange", exchange
    raise LocalProtocolError("a binding leads to a queue or to an exchange: give one of the two")


def _queue_info(body: Any) -> QueueInfo:
    return QueueInfo(
        name=str(body["name"]),
        type=str(body["type"]),
        durable=bool(body["durable"]),
        exclusive=bool(body["exclusive"]),
        auto_delete=bool(body["auto_delete"]),
        arguments=dict(body["arguments"]),
        message_count=int(body["message_count"]),
        consumer_count=int(body["consumer_count"]),
    )


def _count(body: Any) -> int:
    return int(body["message_count"])
