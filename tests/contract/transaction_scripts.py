"""Transactions of each protocol behind one small interface: send, take, and commit all of it or nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True)
class Place:
    """Where a message is sent to.

    Attributes:
        name: the address of a node; the name of an exchange, which is published to with an empty routing key.
        kind: what it is.
    """

    name: str
    kind: Literal["queue", "topic", "exchange", "node"] = "queue"


class Work(Protocol):
    """One transaction."""

    async def send(self, place: Place, body: bytes, *, durable: bool = True) -> None:
        """Send a message in it. A refusal is no error here: the commit is to say so."""
        ...

    async def take(self, queue: str) -> bytes:
        """Receive a message, and acknowledge it in the transaction."""
        ...

    async def commit(self) -> bool:
        """Commit; False if the peer says that nothing is done, and any other answer raises."""
        ...


class TransactionScript(Protocol):
    """The transactions of one protocol."""

    @property
    def drops_unroutable(self) -> bool:
        """Whether the protocol drops a message that reaches no queue, so that this is all that a commit has to do."""
        ...

    @property
    def routes_at_once(self) -> bool:
        """Whether an exchange finds the queues when a message is published, and not at the commit."""
        ...

    @property
    def in_doubt(self) -> type[Exception]:
        """What a commit raises whose answer is lost."""
        ...

    def begin(self, port: int) -> AbstractAsyncContextManager[Work]:
        """One transaction on a connection of its own; it is rolled back at the end of the context if it was not committed."""
        ...


# -- AMQP 1.0 and its draft ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Script10:
    dialect: Literal["1.0", "1.0-draft-2010"]
    settled: bool = False
    drops_unroutable: bool = False
    routes_at_once: bool = False
    in_doubt: type[Exception] = amqp.TransactionInDoubtError

    @asynccontextmanager
    async def begin(self, port: int) -> AsyncGenerator[Work]:
        url = f"amqp://127.0.0.1:{port}"
        async with (
            amqp.open_connection(url, dialect=self.dialect, sasl=amqp.sasl.Anonymous()) as connection,
            AsyncExitStack() as stack,
            connection.open_transaction() as transaction,
        ):
            yield _Work10(connection, stack, transaction, self.settled)
            if transaction.state == "live":
                await transaction.rollback()


class _Work10:
    def __init__(
        self, connection: amqp.Connection, stack: AsyncExitStack, transaction: amqp.Transaction, settled: bool
    ) -> None:
        self._connection = connection
        self._stack = stack
        self._transaction = transaction
        self._settled = settled
        self._links: dict[str, Any] = {}

    async def _open(self, address: str, opening: Callable[[], Any]) -> Any:
        if address not in self._links:
            self._links[address] = await self._stack.enter_async_context(opening())
        return self._links[address]

    async def send(self, place: Place, body: bytes, *, durable: bool = True) -> None:
        address = f"/exchanges/{place.name}" if place.kind == "exchange" else place.name
        guarantee: Any = "at-most-once" if self._settled else "at-least-once"
        sender = await self._open(
            f"> {address}", lambda: self._connection.open_sender(address, guarantee=guarantee)
        )
        await sender.transmit(amqp.Message(body, durable=durable), transaction=self._transaction)

    async def take(self, queue: str) -> bytes:
        receiver = await self._open(f"< {queue}", lambda: self._connection.open_receiver(queue, credit=1))
        delivery = await receiver.receive()
        delivery.accept(transaction=self._transaction)
        return bytes(delivery.message.body)

    async def commit(self) -> bool:
        try:
            await self._transaction.commit()
        except amqp.TransactionRolledBackError:
            return False
        return True


# -- AMQP 0-9-1 and 10.3 -------------------------------------------------------------------------


class _LeftError(Exception):
    """The block is left without another commit."""


@dataclass(frozen=True)
class _Script091:
    connect: Callable[[str], Any]
    scheme: str
    in_doubt: type[Exception]
    drops_unroutable: bool = True
    routes_at_once: bool = True

    @asynccontextmanager
    async def begin(self, port: int) -> AsyncGenerator[Work]:
        async with self.connect(f"{self.scheme}://127.0.0.1:{port}") as connection:
            with suppress(_LeftError):
                async with connection.open_transaction() as transaction:
                    yield _Work091(transaction)
                    raise _LeftError


class _Work091:
    def __init__(self, transaction: Any) -> None:
        self._transaction = transaction

    async def send(self, place: Place, body: bytes, *, durable: bool = True) -> None:
        exchange, key = (place.name, "") if place.kind == "exchange" else ("", place.name)
        properties = amqp091.BasicProperties(delivery_mode=2 if durable else 1)
        await self._transaction.publish(exchange, key, body, properties=properties)

    async def take(self, queue: str) -> bytes:
        while (delivery := await self._transaction.queue(queue).get()) is None:
            await trio.lowlevel.checkpoint()
        delivery.ack()
        return bytes(delivery.body)

    async def commit(self) -> bool:
        try:
            await self._transaction.commit()
        except (amqp091.ChannelClosedError, amqp_10_3.ChannelClosedError) as closed:
            if closed.code != 406:
                raise
            return False
        return True


# -- AMQP/Fast -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ScriptFast:
    drops_unroutable: bool = False
    routes_at_once: bool = False
    in_doubt: type[Exception] = amqp_fast.TransactionInDoubtError

    @asynccontextmanager
    async def begin(self, port: int) -> AsyncGenerator[Work]:
        async with amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}") as connection:
            with suppress(amqp_fast.ChannelClosedError, amqp_fast.HandleClosedError):
                async with connection.open_channel(transacted=True) as channel, AsyncExitStack() as stack:
                    yield _WorkFast(channel, stack)


class _WorkFast:
    def __init__(self, channel: amqp_fast.Channel, stack: AsyncExitStack) -> None:
        self._channel = channel
        self._stack = stack
        self._handles: dict[tuple[str, str], amqp_fast.Handle] = {}
        self._taken: dict[str, amqp_fast.Delivery] = {}

    async def _open(self, use: str, name: str, service: Any = "queue") -> amqp_fast.Handle:
        handle = self._handles.get((use, name))
        if handle is None:
            handle = await self._stack.enter_async_context(self._channel.open_handle(name, service=service))
            self._handles[use, name] = handle
        return handle

    async def send(self, place: Place, body: bytes, *, durable: bool = True) -> None:
        services = {"queue": "queue", "topic": "topic", "exchange": "topic", "node": "peer"}
        name = f"/exchanges/{place.name}" if place.kind == "exchange" else place.name
        with suppress(amqp_fast.HandleClosedError):
            handle = await self._open(">", name, services[place.kind])
            await handle.send(body, confirm=False, persistent=durable)

    async def take(self, queue: str) -> bytes:
        handle = await self._open("<", queue)
        before = self._taken.get(queue)
        if before is None:
            await handle.consume(prefetch=1)
        else:
            before.ack()  # there is room for the next; the commit is for all that was received (3.3.4)
        delivery = self._taken[queue] = await handle.receive()
        return bytes(delivery.body)

    async def commit(self) -> bool:
        try:
            await self._channel.commit()
        except amqp_fast.ChannelClosedError:
            return False
        return True


TRANSACTION_SCRIPTS: Final[dict[str, TransactionScript]] = {
    "1.0": _Script10("1.0"),
    "0-9-1": _Script091(amqp091.open_connection, "amqp091", amqp091.TransactionInDoubtError),
    "10.3": _Script091(amqp_10_3.open_connection, "amqp103", amqp_10_3.TransactionInDoubtError),
    "amqp-fast": _ScriptFast(),
    "1.0-draft-2010": _Script10("1.0-draft-2010"),
}
"""By the names of ``container.dialects``, and 1.0."""
