"""AMQP 1.0 for asyncio: the calls of the library as coroutines.

Each call runs in trio, in one thread for the whole process, or in ``guest_mode`` in the thread of the loop. A connection and
its links belong to the loop that opened them; any number of its tasks may use them. Exceptions are those of the library,
unchanged. A cancelled call is cancelled in trio too, with the effect that the call of the same name has there.

``python -m tests.blocking_source`` generates ``trio_amqp10.blocking`` from this module. AMQP 1.0 only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import trio

from .amqp10.message import Message  # noqa: TC001 - the manual reads annotations
from .amqp10.peer.connection import Connection as AsyncConnection
from .amqp10.peer.delivery import Outcome  # noqa: TC001
from .amqp10.peer.dial_options import WhereAndOptions
from .amqp10.peer.link_options import ConnectionReceiverOptions, ConnectionSenderOptions, RequesterOptions
from .amqp10.peer.receiver import Receiver as AsyncReceiver
from .amqp10.peer.receiver import no_message, open_receiver
from .amqp10.peer.requester import Requester as AsyncRequester
from .amqp10.peer.requester import RequesterOpening
from .amqp10.peer.sender import open_sender
from .amqp10.peer.transaction import Transaction as AsyncTransaction
from .bridges.asyncio_bridge import Bridge, Opened, OpenedSender, Opening, dialled, guest_mode, inner_of
from .bridges.asyncio_management_generated import RemoteListing, RemoteManagement
from .bridges.browsing import open_browser
from .bridges.connection_changes import ChangesInTrio
from .bridges.portal import within
from .net.option_signatures import takes, takes_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from .amqp10.peer.delivery import Delivery as AsyncDelivery
    from .bridges.asyncio_bridge import Sent
    from .net.recovery_events import Change
    from .net.recovery_events import Changes as AsyncChanges

__all__ = [
    "Changes",
    "Connection",
    "Delivery",
    "Opening",
    "OutgoingDelivery",
    "Receiver",
    "RemoteListing",
    "RemoteManagement",
    "Requester",
    "Sender",
    "Transaction",
    "connect",
    "guest_mode",
    "open_connection",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class Connection(Opened[AsyncConnection]):
    """A connection; made by ``open_connection``.

    Any number of tasks of its loop may use it.
    """

    @takes_on(ConnectionSenderOptions)
    def open_sender(self, options: ConnectionSenderOptions) -> Opening[Sender]:
        """Open a sender: ``async with conn.open_sender("orders") as sender``.

        For its arguments and errors see ``trio_amqp10.Connection.open_sender``.
        """
        return Opening(Sender, lambda: open_sender(self._inner, options), self._bridge)

    @takes_on(ConnectionReceiverOptions)
    def open_receiver(self, options: ConnectionReceiverOptions) -> Opening[Receiver]:
        """Open a receiver: ``async with conn.open_receiver("orders") as receiver``.

        For its arguments and errors see ``trio_amqp10.Connection.open_receiver``.
        """
        return Opening(Receiver, lambda: open_receiver(self._inner, options), self._bridge)

    def browse(self, address: str, *, prefetch: int | None = None) -> Opening[Receiver]:
        """Open a receiver of copies: ``async with conn.browse("orders") as receiver``.

        The messages stay in the node; the receiver gets those that are there, oldest first, and then those that
        arrive later (3.5.3, ``distribution-mode``). Outcomes have no effect.

        Args:
            address: the address of the node.
            prefetch: at most this many copies that have no outcome; if None, each ``receive`` asks for one.

        Raises (on entering):
            GuaranteeNotSupportedError: the peer would remove the messages.
            LinkRefusedError: the peer refuses the link.
        """
        return Opening(Receiver, lambda: open_browser(self._inner, address, prefetch), self._bridge)

    @takes_on(RequesterOptions)
    def open_requester(self, options: RequesterOptions) -> Opening[Requester]:
        """Open a requester: ``async with conn.open_requester("upper") as requester``.

        For its arguments and errors see ``trio_amqp10.Connection.open_requester``.
        """
        return Opening(Requester, lambda: RequesterOpening(self._inner, options), self._bridge)

    def open_management(
        self, address: str = "$management", *, timeout: float | None = 60.0
    ) -> Opening[RemoteManagement]:
        """Open management of the container of the peer.

        Use it as ``async with conn.open_management() as management``. For its arguments and errors see
        ``trio_amqp10.Connection.open_management``.
        """
        return Opening(
            RemoteManagement, lambda: self._inner.open_management(address, timeout=timeout), self._bridge
        )

    def open_transaction(self, *, keep: bool = False) -> Opening[Transaction]:
        """Begin a transaction (4.1).

        Use it as ``async with conn.open_transaction() as transaction``. Leaving the block commits, and an exception rolls back. For its argument and errors see
        ``trio_amqp10.Connection.open_transaction``.
        """
        return Opening(Transaction, lambda: self._inner.open_transaction(keep=keep), self._bridge)

    def changes(self, *, attempts: bool = False) -> Changes:
        """Iterate over the losses and restores from now on.

        Use it as ``async for change in conn.changes()``. A change is a ``trio_amqp10.Change``.

        Args:
            attempts: as for ``trio_amqp10.Connection.changes``.

        Raises (in the first step):
            LocalProtocolError: the connection was opened without ``reconnect``.
        """
        return Changes(self._bridge, lambda: self._inner.changes(attempts=attempts))


class Changes:
    """The changes of a connection, made by ``Connection.changes``.

    It may be left at any time.
    """

    def __init__(self, bridge: Bridge, make: Callable[[], AsyncChanges]) -> None:
        self._bridge = bridge
        self._changes = ChangesInTrio(bridge.portal, make)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        """Return the next change; end when the connection has ended for good.

        Cancelled: no change is lost.
        """
        try:
            found = await self._bridge.run(self._changes.next, self._changes.put_back)
        except trio.ClosedResourceError:
            found = self._changes.rest()
        if found is None:
            raise StopAsyncIteration
        return found


class Sender(OpenedSender):
    """Sends messages to a node of the peer.

    Any number of tasks of its loop may use it.
    """

    @property
    def address(self) -> str | None:
        """The address of the node; for a dynamic node, the one that the peer has chosen."""
        return self._inner.address

    async def send(
        self,
        message: Any,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - it is measured in trio
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transaction | None = None,
    ) -> Outcome | None:
        """Send a message, and wait for its outcome; see ``trio_amqp10.Sender.send``.

        Args:
            message: bytes, str, any AMQP value, or a ``Message``.
            timeout: seconds to wait at most; after that it is not known whether the message was sent.
            tag, settled, transaction: as for ``trio_amqp10.Sender.send``.

        Returns:
            The outcome; None if the message was sent settled.

        Raises: as ``trio_amqp10.Sender.send``, and ``TimedOutError`` if no outcome came in time.

        Cancelled: the outcome is unknown. If it matters, use ``transmit``, and await the outcome of its
        delivery.
        """
        return await self._send(message, timeout, tag, settled, inner_of(transaction))

    async def transmit(
        self,
        message: Any,
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transaction | None = None,
    ) -> OutgoingDelivery:
        """Send a message without waiting for its outcome.

        See ``trio_amqp10.Sender.transmit``.

        Args:
            message: as for ``send``.
            timeout: seconds to wait for credit at most; after that nothing was sent.
            tag, settled, transaction: as for ``send``.

        Raises: as ``trio_amqp10.Sender.transmit``, and ``TimedOutError`` if there was no credit in time.

        Cancelled: nothing was sent; with ``tag``, ``transaction`` or a store in a file it may have been.
        """
        sent = await self._transmit(message, timeout, tag, settled, inner_of(transaction))
        return OutgoingDelivery(self._bridge, sent)

    async def flush(self) -> None:
        """Wait until no delivery of this link is unsettled.

        See ``trio_amqp10.Sender.flush``.

        Cancelled: nothing is lost; call it again.
        """
        await self._bridge.run(self._flush)


class OutgoingDelivery:
    """A message that was sent by ``Sender.transmit``."""

    def __init__(self, bridge: Bridge, sent: Sent) -> None:
        self._bridge = bridge
        self._inner = sent

    async def outcome(self, *, timeout: float | None = None) -> Outcome | None:  # noqa: ASYNC109
        """Wait for the outcome; see ``trio_amqp10.OutgoingDelivery.outcome``.

        Args:
            timeout: seconds to wait at most.

        Returns:
            The outcome; None if the message was sent settled.

        Raises: as the method of trio, and ``TimedOutError`` if no outcome came in time.

        Cancelled: nothing is lost; call it again.
        """
        return await self._bridge.outcome(self._inner, timeout)

    def __repr__(self) -> str:
        return f"<aio {self._inner!r}>"


class Receiver(Opened[AsyncReceiver]):
    """Receives messages from a node of the peer.

    Call ``receive``, or iterate with ``async for delivery in receiver`` until the peer detaches.
    """

    @property
    def address(self) -> str | None:
        """The address of the node; for a dynamic node, the one that the peer has chosen."""
        return self._inner.address

    async def receive(self, *, timeout: float | None = None) -> Delivery:  # noqa: ASYNC109
        """Return the next delivery.

        Args:
            timeout: seconds to wait at most.

        Raises: as ``trio_amqp10.Receiver.receive``, and ``TimedOutError`` if no delivery came in time; no
        delivery is lost.

        Cancelled: no delivery is lost.
        """
        inner = self._inner
        return self._wrapped(await self._bridge.run(lambda: inner.receive(timeout=timeout), inner.put_back))

    async def receive_many(self, most: int, *, timeout: float | None = None) -> list[Delivery]:  # noqa: ASYNC109
        """Wait for a delivery; return it with more from the buffer, up to ``most``.

        It costs little more than ``receive``, for many deliveries.

        Args:
            most: deliveries to return at most; at least 1.
            timeout: seconds to wait at most.

        Raises: as ``receive``.

        Cancelled: no delivery is lost.
        """
        inner = self._inner
        found = await self._bridge.run(
            lambda: within(timeout, lambda: inner.receive_many(most), partial(no_message, inner)),
            lambda found: inner.put_back(*found),
        )
        return [self._wrapped(one) for one in found]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        """Return the next delivery; end when the peer detaches without an error.

        Cancelled: no delivery is lost.
        """
        found = await self._bridge.run(self._next, self._put_back)
        if found is None:
            raise StopAsyncIteration
        return self._wrapped(found)

    async def _next(self) -> AsyncDelivery | None:
        try:
            return await self._inner.__anext__()  # in trio
        except StopAsyncIteration:  # of trio
            return None

    def _put_back(self, found: AsyncDelivery | None) -> None:
        if found is not None:
            self._inner.put_back(found)

    def _wrapped(self, received: AsyncDelivery) -> Delivery:
        return Delivery(self._bridge, received)


class Delivery:
    """A message that came in, to be accepted, rejected or released once.

    An outcome raises the errors of the method of trio. Cancelled: the outcome is given anyway.
    """

    def __init__(self, bridge: Bridge, received: AsyncDelivery) -> None:
        self._bridge = bridge
        self._inner = received

    @property
    def message(self) -> Message:
        """The message; its sections are decoded when they are read."""
        return self._inner.message

    async def accept(self, *, transaction: Transaction | None = None) -> None:
        """Accept the message: it was processed (3.4.2)."""
        inside = inner_of(transaction)
        await self._settle(lambda: self._inner.accept(transaction=inside))

    async def reject(
        self,
        condition: str = "amqp:internal-error",
        description: str | None = None,
        *,
        transaction: Transaction | None = None,
    ) -> None:
        """Reject the message as invalid, with an error that gives the reason (3.4.3)."""
        inside = inner_of(transaction)
        await self._settle(lambda: self._inner.reject(condition, description, transaction=inside))

    async def release(self, *, transaction: Transaction | None = None) -> None:
        """Give the message back, as if it had never been delivered (3.4.4)."""
        inside = inner_of(transaction)
        await self._settle(lambda: self._inner.release(transaction=inside))

    async def modify(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        annotations: dict[Any, Any] | None = None,
        delay: float | None = None,
        transaction: Transaction | None = None,
    ) -> None:
        """Give the message back with changes (3.4.5); see ``trio_amqp10.Delivery.modify``.

        Args:
            delivery_failed: count this as a failed attempt.
            undeliverable_here: do not send it to this link again.
            annotations: merged into its message-annotations.
            delay: seconds until the next delivery.
            transaction: the transaction that the outcome is a part of.

        Raises:
            LocalProtocolError: ``delay`` is out of range.
        """
        inside = inner_of(transaction)
        await self._settle(
            lambda: self._inner.modify(
                delivery_failed=delivery_failed,
                undeliverable_here=undeliverable_here,
                annotations=annotations,
                delay=delay,
                transaction=inside,
            )
        )

    async def _settle(self, outcome: Callable[[], None]) -> None:
        await self._bridge.run_sync(outcome)

    def __repr__(self) -> str:
        return f"<aio {self._inner!r}>"


class Requester(Opened[AsyncRequester]):
    """Sends requests and returns their replies.

    Any number of tasks of its loop may use it.
    """

    async def request(self, request: Any, *, timeout: float | None = None) -> Message:  # noqa: ASYNC109
        """Send a request and wait for its reply.

        For its arguments and errors see ``trio_amqp10.Requester.request``.

        Cancelled: the service may have acted upon the request; its reply will be dropped.
        """
        return await self._bridge.run(lambda: self._inner.request(request, timeout=timeout))


class Transaction(Opened[AsyncTransaction]):
    """A transaction, made by ``Connection.open_transaction``.

    Pass it as ``transaction`` to ``send``, ``transmit``, ``accept`` and the other outcomes. For what holds see ``trio_amqp10.Transaction``. ``close`` commits it, unless it has ended.
    """

    @property
    def state(self) -> str:
        """The state: ``"live"``, ``"committed"`` and so on.

        See ``trio_amqp10.Transaction``.
        """
        return self._inner.state

    async def commit(self) -> None:
        """Commit all work of the transaction; leaving the block does so.

        For its errors see ``trio_amqp10.Transaction.commit``.

        Cancelled: it is not known whether the transaction was committed.
        """
        await self._bridge.run(self._inner.commit)

    async def rollback(self) -> None:
        """Undo all work of the transaction; leaving the block by an exception does so.

        For its errors see ``trio_amqp10.Transaction.rollback``.

        Cancelled: it will be rolled back when the block is left.
        """
        await self._bridge.run(self._inner.rollback)


@takes(WhereAndOptions)
def open_connection(options: WhereAndOptions) -> Opening[Connection]:
    """Connect to a peer: ``async with open_connection(url) as conn``.

    Leaving the block closes the connection, with all its links. For its arguments and errors see
    ``trio_amqp10.open_connection``. ``connect`` is another name of it.

    Raises: also ``LocalProtocolError`` for a stream, which belongs to another loop.
    """
    return dialled(Connection, options)


connect = open_connection
