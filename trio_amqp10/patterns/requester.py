"""Request and reply: send a message, and wait for the one that answers it.

A requester is a sender to the service and a receiver for the replies: of a node that the peer
makes for it (a dynamic source, 3.5.3), of one that exists, or of the one that answers. Each request carries a message-id
of its own; the reply carries that, or the request's correlation-id, as its correlation-id (3.2.4).

On a connection that comes back, requests that were under way when a link was lost raise: whether they were
acted upon is not known, and a node that was made for their replies is gone. Those that were not sent yet wait,
and name the node that is made anew.

Uses only what any program may use of a connection; knows nothing of who answers.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message
from trio_amqp10.net.waiters import EnteredWithAsync
from trio_amqp10.peer.delivery import Delivery, OutgoingDelivery, raise_unless_accepted
from trio_amqp10.peer.errors import ConnectionClosedError
from trio_amqp10.peer.link_options import RequesterOptions
from trio_amqp10.peer.option_signatures import takes_on
from trio_amqp10.peer.sender import open_sender
from trio_amqp10.spec.messaging import Source, Target

if TYPE_CHECKING:
    from types import TracebackType

    from trio_amqp10.peer.link_carriers import LinkConnection
    from trio_amqp10.peer.receiver import Receiver
    from trio_amqp10.peer.sender import Sender

__all__ = ["Requester", "RequesterOpening", "open_requester"]


class _Pending:
    """A request that waits for its reply."""

    __slots__ = ("changed", "delivery", "lost", "reply")

    def __init__(self) -> None:
        self.delivery: OutgoingDelivery | None = None
        self.lost = False
        self.reply: Message | None = None
        self.changed = trio.Event()

    def give_up(self) -> None:
        """Nobody waits for a reply any more, nor for an outcome: settled, it is not sent again, and leaving does not wait for it."""
        if self.delivery is not None and self.reply is None:
            with suppress(LocalProtocolError):  # it has an outcome already, or is not sent yet
                self.delivery.settle()


class Requester:
    """Sends requests and matches replies to them. Any number of tasks may use it.

    Attributes:
        reply_to: the address that replies are sent to; a new one after each restore of a connection that comes
            back, where the peer makes a node for them.
    """

    def __init__(self, sender: Sender, replies: Receiver, reply_to: str, *, made: bool) -> None:
        """``made``: the peer made the node for replies, and will make another where it is lost."""
        self.reply_to: str = reply_to
        self._made = made
        self._sender = sender
        self._replies = replies
        self._listening = True
        self._looked_for = trio.Event()
        self._unsent = 0
        sender.watch_lost(self._lose)
        replies.watch_lost(self._lose_replies)
        replies.watch_restored(self._listen)
        self._pending: dict[Any, _Pending] = {}
        self._prefix = str(uuid.uuid4())
        self._count = 0
        self._failure: Exception | None = None
        self._closed = False

    async def request(self, request: Any, *, timeout: float | None = None) -> Message:  # noqa: ASYNC109
        """Send a request and wait for its reply.

        Args:
            request: bytes, str, any AMQP value, or a ``Message``; of a message a copy is sent, with
                ``reply_to`` set, and ``message_id`` too where it has none.
            timeout: seconds to wait at most; None for as long as it takes. A reply that comes later is
                dropped.

        Returns:
            The reply.

        Raises:
            trio.TooSlowError: nothing came in time.
            DeliveryRejectedError, DeliveryReleasedError, DeliveryModifiedError: the request was not accepted.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: a link is gone, or was lost on the
                way and comes back; whether the request was acted upon is not known.
            trio.ClosedResourceError: the requester was closed.
            LocalProtocolError: the request cannot be encoded, or another one with its id waits.

        Cancelled: the request may have been acted upon; its reply will be dropped.
        """
        message = copy(request) if isinstance(request, Message) else Message(request)
        if message.message_id is None:
            self._count += 1
            message.message_id = f"{self._prefix}:{self._count}"
        keys = {message.message_id, message.correlation_id} - {None}
        for key in keys:
            if key in self._pending:
                raise LocalProtocolError(f"a request with id {key!r} waits for its reply already")
        self._check_alive()
        pending = _Pending()
        for key in keys:
            self._pending[key] = pending
        try:
            if timeout is None:
                return await self._ask(message, pending)
            with trio.fail_after(timeout):
                return await self._ask(message, pending)
        finally:
            pending.give_up()
            for key in keys:
                self._pending.pop(key, None)

    async def _ask(self, message: Message, pending: _Pending) -> Message:
        delivery = pending.delivery = await self._send(message)
        delivery.watch(pending.changed.set)
        while pending.reply is None:
            self._check_alive()
            if pending.lost:
                raise ConnectionClosedError(
                    f"a link of the request {message.message_id!r} was lost before its reply came"
                )
            await self._check_request(delivery)
            if pending.reply is None:
                await pending.changed.wait()
                pending.changed = trio.Event()
        return pending.reply

    async def _send(self, message: Message) -> OutgoingDelivery:
        """As soon as both links are there, as replies may have another address by then."""
        sender = self._sender
        await sender.session.connection.pace.checkpoint()
        self._unsent += 1
        try:
            while True:
                self._check_alive()
                if not self._listening:
                    await self._looked_for.wait()
                    continue
                message.reply_to = self.reply_to
                try:
                    return sender.send_nowait(message)
                except trio.WouldBlock:
                    await sender.wait_sendable()
        finally:
            self._unsent -= 1
            if not self._unsent:
                sender.give_back()  # if the service wants that

    def _lose(self) -> None:
        """A link was lost, and comes back: no reply will come to what is under way."""
        for pending in self._pending.values():
            if pending.delivery is not None and pending.reply is None:
                pending.lost = True
                pending.give_up()
                pending.changed.set()

    def _lose_replies(self) -> None:
        self._listening = False
        self._lose()

    def _listen(self) -> None:
        """Replies can come again."""
        address = self._replies.address
        if self._made and address is not None:
            self.reply_to = address
        self._listening = True
        self._look()

    def _look(self) -> None:
        """Let the requests look again that wait to be sent."""
        self._looked_for.set()
        self._looked_for = trio.Event()

    async def _check_request(self, delivery: OutgoingDelivery) -> None:
        """Raise where the request itself has failed, so that no reply will come."""
        if delivery.settled:
            raise_unless_accepted(await delivery.outcome(), delivery)
        else:
            self._sender.check_alive()

    def _check_alive(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this requester was closed here")
        if self._failure is not None:
            self._replies.check_alive()
            raise self._failure

    # -- replies ----------------------------------------------------------------------------

    async def take_replies(self) -> None:
        """Hand each reply to the request that waits for it, until the link is gone; what enters runs it.

        Cancelled: replies that come from then on stay with the peer.
        """
        try:
            async for delivery in self._replies:
                self._take(delivery)
            self._replies.check_alive()
        except Exception as failure:
            self._failure = failure
            for pending in self._pending.values():
                pending.changed.set()
            self._look()

    def _take(self, delivery: Delivery) -> None:
        try:
            pending = self._pending.get(delivery.message.correlation_id)
        except RemoteProtocolError as fault:
            delivery.reject(fault.condition, fault.description)
            return
        delivery.accept()  # a late one too: nobody else wants it
        if pending is not None and pending.reply is None:
            pending.reply = delivery.message
            pending.changed.set()

    def close(self) -> None:
        """No more requests; those that wait raise ``trio.ClosedResourceError``."""
        self._closed = True
        for pending in self._pending.values():
            pending.changed.set()
        self._look()

    def __repr__(self) -> str:
        return f"<Requester of {self._sender.address!r} waiting={len(self._pending)}>"


class RequesterOpening(EnteredWithAsync):
    """A requester that is yet to be opened: enter it with ``async with``.

    Raises (on entering):
        LinkRefusedError: the peer refuses one of its links.
    """

    def __init__(self, connection: LinkConnection, options: RequesterOptions) -> None:
        address, reply_to, direct = options.address, options.reply_to, options.direct
        if direct and reply_to is not None:
            raise LocalProtocolError(
                f"reply_to={reply_to!r} with direct=True: replies go one way or the other"
            )
        self._direct = str(uuid.uuid4()) if direct else None
        self._made = reply_to is None and not direct
        if direct:
            target = Target(address=self._direct)
            self._receiving = connection.open_receiver(address, target=target)
        else:
            source = Source(dynamic=True) if reply_to is None else None
            self._receiving = connection.open_receiver(reply_to, source=source)
        self._sending = open_sender(connection, options, options.session)

    async def __aenter__(self) -> Requester:
        self._replies = await self._receiving.__aenter__()
        try:
            reply_to = self._direct or self._replies.address
            if reply_to is None:
                raise LocalProtocolError("the peer has made a node for replies, and does not say where")
            sender = await self._sending.__aenter__()
        except BaseException:
            await self._receiving.__aexit__(None, None, None)
            raise
        # By hand, so that what the user's block raises does not come out as a group of one.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._requester = Requester(sender, self._replies, reply_to, made=self._made)
        self._nursery.start_soon(self._requester.take_replies)
        return self._requester

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._requester.close()
        self._nursery.cancel_scope.cancel()
        try:
            await self._manager.__aexit__(None, None, None)
        finally:
            try:
                await self._sending.__aexit__(kind, exc, tb)
            finally:
                await self._receiving.__aexit__(kind, exc, tb)


@takes_on(RequesterOptions)
def open_requester(connection: LinkConnection, options: RequesterOptions) -> RequesterOpening:
    """Request and reply: ``async with conn.open_requester("upper") as requester``.

    Args:
        connection: to the peer that answers.
        address: of the node that requests are for.
        reply_to: a node of the peer's that replies go through; if None, one is made for this requester.
        direct: have replies come on a link from the node that answers, as Azure's ``$cbs`` and ``$management``
            and the functions of a ``Container`` give them.
        options: the others, for the sender of requests, as for ``Connection.open_sender``.

    Raises:
        LocalProtocolError: both ``reply_to`` and ``direct``.
    """
    return RequesterOpening(connection, options)
