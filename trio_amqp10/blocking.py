"""AMQP 1.0 without async: for scripts and threads.

Each call runs in trio, in one thread for the whole process, and the caller waits for it. Any number of threads may use a connection
and its links. An interrupted call, as by Ctrl-C, is cancelled, like the call of the same name in trio.

Each call switches threads twice: a program that sends or receives many thousand messages a second should use
trio itself.

``python -m tests.blocking_source`` generates this module from ``trio_amqp10.aio``: change that, but not this.
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
from .bridges.blocking_bridge import Bridge, Opened, OpenedSender, dialled, inner_of, opened
from .bridges.blocking_management_generated import RemoteListing, RemoteManagement
from .bridges.browsing import open_browser
from .bridges.connection_changes import ChangesInTrio
from .bridges.portal import within
from .net.option_signatures import takes, takes_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from .amqp10.peer.delivery import Delivery as AsyncDelivery
    from .bridges.blocking_bridge import Sent
    from .net.recovery_events import Change
    from .net.recovery_events import Changes as AsyncChanges

__all__ = [
    "Changes",
    "Connection",
    "Delivery",
    "OutgoingDelivery",
    "Receiver",
    "RemoteListing",
    "RemoteManagement",
    "Requester",
    "Sender",
    "Transaction",
    "connect",
    "open_connection",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class Connection(Opened[AsyncConnection]):
    """A connection; made by ``open_connection``.

    Any number of threads may use it.
    """

    @takes_on(ConnectionSenderOptions)
    def open_sender(self, options: ConnectionSenderOptions) -> Sender:
        """Open a sender: ``with conn.open_sender("orders") as sender``.

        For its arguments and errors see ``trio_amqp10.Connection.open_sender``.
        """
        return opened(Sender, lambda: open_sender(self._inner, options), self._bridge)

    @takes_on(ConnectionReceiverOptions)
    def open_receiver(self, options: ConnectionReceiverOptions) -> Receiver:
        """Open a receiver: ``with conn.open_receiver("orders") as receiver``.

        For its arguments and errors see ``trio_amqp10.Connection.open_receiver``.
        """
        return opened(Receiver, lambda: open_receiver(self._inner, options), self._bridge)

    def browse(self, address: str, *, prefetch: int | None = None) -> Receiver:
        """Open a receiver of copies: ``with conn.browse("orders") as receiver``.

        The messages stay in the node; the receiver gets those that are there, oldest first, and then those that
        arrive later (3.5.3, ``distribution-mode``). Outcomes have no effect.

        Args:
            address: the address of the node.
            prefetch: at most this many copies that have no outcome; if None, each ``receive`` asks for one.

        Raises:
            GuaranteeNotSupportedError: the peer would remove the messages.
            LinkRefusedError: the peer refuses the link.
        """
        return opened(Receiver, lambda: open_browser(self._inner, address, prefetch), self._bridge)

    @takes_on(RequesterOptions)
    def open_requester(self, options: RequesterOptions) -> Requester:
        """Open a requester: ``with conn.open_requester("upper") as requester``.

        For its arguments and errors see ``trio_amqp10.Connection.open_requester``.
        """
        return opened(Requester, lambda: RequesterOpening(self._inner, options), self._bridge)

    def open_management(
        self, address: str = "$management", *, timeout: float | None = 60.0
    ) -> RemoteManagement:
        """Open management of the container of the peer.

        Use it as ``with conn.open_management() as management``. For its arguments and errors see
        ``trio_amqp10.Connection.open_management``.
        """
        return opened(
            RemoteManagement, lambda: self._inner.open_management(address, timeout=timeout), self._bridge
        )

    def open_transaction(self, *, keep: bool = False) -> Transaction:
        """Begin a transaction (4.1).

        Use it as ``with conn.open_transaction() as transaction``. Leaving the block commits, and an exception rolls back. For its argument and errors see
        ``trio_amqp10.Connection.open_transaction``.
        """
        return opened(Transaction, lambda: self._inner.open_transaction(keep=keep), self._bridge)

    def changes(self, *, attempts: bool = False) -> Changes:
        """Iterate over the losses and restores from now on.

        Use it as ``for change in conn.changes()``. A change is a ``trio_amqp10.Change``.

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

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        """Return the next change; end when the connection has ended for good."""
        try:
            found = self._bridge.run(self._changes.next, self._changes.put_back)
        except trio.ClosedResourceError:
            found = self._changes.rest()
        if found is None:
            raise StopIteration
        return found


class Sender(OpenedSender):
    """Sends messages to a node of the peer.

    Any number of threads may use it.
    """

    @property
    def address(self) -> str | None:
        """The address of the node; for a dynamic node, the one that the peer has chosen."""
        return self._inner.address

    def send(
        self,
        message: Any,
        *,
        timeout: float | None = None,
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
        """
        return self._send(message, timeout, tag, settled, inner_of(transaction))

    def transmit(
        self,
        message: Any,
        *,
        timeout: float | None = None,
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
        """
        sent = self._transmit(message, timeout, tag, settled, inner_of(transaction))
        return OutgoingDelivery(self._bridge, sent)

    def flush(self) -> None:
        """Wait until no delivery of this link is unsettled.

        See ``trio_amqp10.Sender.flush``.
        """
        self._bridge.run(self._flush)


class OutgoingDelivery:
    """A message that was sent by ``Sender.transmit``."""

    def __init__(self, bridge: Bridge, sent: Sent) -> None:
        self._bridge = bridge
        self._inner = sent

    def outcome(self, *, timeout: float | None = None) -> Outcome | None:
        """Wait for the outcome; see ``trio_amqp10.OutgoingDelivery.outcome``.

        Args:
            timeout: seconds to wait at most.

        Returns:
            The outcome; None if the message was sent settled.

        Raises: as the method of trio, and ``TimedOutError`` if no outcome came in time.
        """
        return self._bridge.outcome(self._inner, timeout)

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


class Receiver(Opened[AsyncReceiver]):
    """Receives messages from a node of the peer.

    Call ``receive``, or iterate with ``for delivery in receiver`` until the peer detaches.
    """

    @property
    def address(self) -> str | None:
        """The address of the node; for a dynamic node, the one that the peer has chosen."""
        return self._inner.address

    def receive(self, *, timeout: float | None = None) -> Delivery:
        """Return the next delivery.

        Args:
            timeout: seconds to wait at most.

        Raises: as ``trio_amqp10.Receiver.receive``, and ``TimedOutError`` if no delivery came in time; no
        delivery is lost.
        """
        inner = self._inner
        return self._wrapped(self._bridge.run(lambda: inner.receive(timeout=timeout), inner.put_back))

    def receive_many(self, most: int, *, timeout: float | None = None) -> list[Delivery]:
        """Wait for a delivery; return it with more from the buffer, up to ``most``.

        It costs little more than ``receive``, for many deliveries.

        Args:
            most: deliveries to return at most; at least 1.
            timeout: seconds to wait at most.

        Raises: as ``receive``.
        """
        inner = self._inner
        found = self._bridge.run(
            lambda: within(timeout, lambda: inner.receive_many(most), partial(no_message, inner)),
            lambda found: inner.put_back(*found),
        )
        return [self._wrapped(one) for one in found]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        """Return the next delivery; end when the peer detaches without an error."""
        found = self._bridge.run(self._next, self._put_back)
        if found is None:
            raise StopIteration
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

    An outcome raises the errors of the method of trio.
    """

    def __init__(self, bridge: Bridge, received: AsyncDelivery) -> None:
        self._bridge = bridge
        self._inner = received

    @property
    def message(self) -> Message:
        """The message; its sections are decoded when they are read."""
        return self._inner.message

    def accept(self, *, transaction: Transaction | None = None) -> None:
        """Accept the message: it was processed (3.4.2)."""
        inside = inner_of(transaction)
        self._settle(lambda: self._inner.accept(transaction=inside))

    def reject(
        self,
        condition: str = "amqp:internal-error",
        description: str | None = None,
        *,
        transaction: Transaction | None = None,
    ) -> None:
        """Reject the message as invalid, with an error that gives the reason (3.4.3)."""
        inside = inner_of(transaction)
        self._settle(lambda: self._inner.reject(condition, description, transaction=inside))

    def release(self, *, transaction: Transaction | None = None) -> None:
        """Give the message back, as if it had never been delivered (3.4.4)."""
        inside = inner_of(transaction)
        self._settle(lambda: self._inner.release(transaction=inside))

    def modify(
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
        self._settle(
            lambda: self._inner.modify(
                delivery_failed=delivery_failed,
                undeliverable_here=undeliverable_here,
                annotations=annotations,
                delay=delay,
                transaction=inside,
            )
        )

    def _settle(self, outcome: Callable[[], None]) -> None:
        self._bridge.run_sync(outcome)

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


class Requester(Opened[AsyncRequester]):
    """Sends requests and returns their replies.

    Any number of threads may use it.
    """

    def request(self, request: Any, *, timeout: float | None = None) -> Message:
        """Send a request and wait for its reply.

        For its arguments and errors see ``trio_amqp10.Requester.request``.
        """
        return self._bridge.run(lambda: self._inner.request(request, timeout=timeout))


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

    def commit(self) -> None:
        """Commit all work of the transaction; leaving the block does so.

        For its errors see ``trio_amqp10.Transaction.commit``.
        """
        self._bridge.run(self._inner.commit)

    def rollback(self) -> None:
        """Undo all work of the transaction; leaving the block by an exception does so.

        For its errors see ``trio_amqp10.Transaction.rollback``.
        """
        self._bridge.run(self._inner.rollback)


@takes(WhereAndOptions)
def open_connection(options: WhereAndOptions) -> Connection:
    """Connect to a peer: ``with open_connection(url) as conn``.

    Leaving the block closes the connection, with all its links. For its arguments and errors see
    ``trio_amqp10.open_connection``. ``connect`` is another name of it.

    Raises: also ``LocalProtocolError`` for a stream, which belongs to another loop.
    """
    return dialled(Connection, options)


connect = open_connection
