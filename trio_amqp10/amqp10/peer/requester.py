"""Request and reply: send a message, and wait for its answer.

A requester has a sender to the service and a receiver for the replies. The replies come from a node that the
peer creates for the requester (a dynamic source, 3.5.3), from an existing node, or directly from the node of
the service. Each request has a message-id of its own; the reply has this id, or the request's correlation-id,
as its correlation-id (3.2.4).

On a connection with ``reconnect``, a request in progress raises when a link is lost: it is not known whether
the service has acted upon it, and a node that was created for its reply is gone. Requests that were not sent
yet wait, and name the new reply node.

Uses only the public interface of a connection; knows nothing of the service that replies.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.errors import GoneError, TimedOutError, fresh_copy, time_limit
from trio_amqp10.net.option_signatures import takes_on
from trio_amqp10.net.waiters import EnteredWithAsync

from .delivery import Delivery, OutgoingDelivery, raise_unless_accepted
from .errors import lost_with
from .link_options import RequesterOptions
from .sender import not_sent, open_sender

if TYPE_CHECKING:
    from types import TracebackType

    from .link_carriers import LinkConnection
    from .receiver import Receiver
    from .sender import Sender


class _Pending:
    """A request that waits for its reply."""

    __slots__ = ("changed", "delivery", "lost", "reply")

    def __init__(self) -> None:
        self.delivery: OutgoingDelivery | None = None
        self.lost: GoneError | None = None
        self.reply: Message | None = None
        self.changed = trio.Event()

    def give_up(self) -> None:
        """Settle the request: its reply and its outcome are not needed any more.

        A settled request is not sent again, and leaving the requester does not wait for it.
        """
        if self.delivery is not None and self.reply is None:
            with suppress(LocalProtocolError):  # it has an outcome already, or is not sent yet
                self.delivery.settle()


class Requester:
    """Sends requests and matches replies to them. Any number of tasks may use it.

    Attributes:
        reply_to: the address for replies. If the peer creates the reply node, it is a new one after each
            restore of the connection.
    """

    def __init__(self, sender: Sender, replies: Receiver, reply_to: str, *, made: bool) -> None:
        """``made``: the peer has created the reply node, and creates another after a loss."""
        self.reply_to: str = reply_to
        self._made = made
        self._sender = sender
        self._replies = replies
        self._listening = True
        self._looked_for = trio.Event()
        self._unsent = 0
        sender.watch_lost(lambda: self._lose(sender))
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
            request: bytes, str, any AMQP value, or a ``Message``; a copy of a message is sent, with
                ``reply_to`` set, and with ``message_id`` if it has none.
            timeout: seconds to wait at most; None for no limit. A later reply is dropped.

        Returns:
            The reply.

        Raises:
            TimedOutError: no reply came in time, or the request could not be sent in time (``sent`` is False).
                It is a ``trio.TooSlowError``.
            DeliveryRejectedError, DeliveryReleasedError, DeliveryModifiedError: the request was not accepted.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: a link ended, or was lost meanwhile
                and is restored. If ``sent`` is True, it is not known whether the service has acted upon the
                request; if False, it has not.
            trio.ClosedResourceError: the requester was closed.
            LocalProtocolError: the request cannot be encoded, or another request with its id waits for a
                reply.

        Cancelled: the service may have acted upon the request; its reply will be dropped.
        """
        message = copy(request) if isinstance(request, Message) else Message(request)
        if message.message_id is None:
            self._count += 1
            message.message_id = f"{self._prefix}:{self._count}"
        ids = (message.message_id, message.correlation_id)
        keys = {_key(each): each for each in ids if each is not None}
        for key, given in keys.items():
            if key in self._pending:
                raise LocalProtocolError(f"a request with id {given!r} waits for its reply already")
        pending = _Pending()
        for key in keys:
            self._pending[key] = pending
        try:
            if timeout is None:
                return await self._ask(message, pending)
            with time_limit(timeout, lambda: self._late(pending, timeout)):
                return await self._ask(message, pending)
        except GoneError as gone:
            raise self._told(gone, sent=pending.delivery is not None) from gone.__cause__
        finally:
            pending.give_up()
            for key in keys:
                self._pending.pop(key, None)

    def _late(self, pending: _Pending, seconds: float) -> TimedOutError:
        if pending.delivery is None:
            return not_sent(self._sender, seconds, self._replies.why_suspended())
        return TimedOutError(f"no reply from {self._sender.node!r} within {seconds:g} s", sent=True)

    def _told(self, gone: GoneError, *, sent: bool) -> GoneError:
        """Return a copy of an error, with whether the request was sent."""
        again = fresh_copy(gone)
        again.sent = sent
        again.args = (self._reason(gone, sent=sent),)
        return again

    def _reason(self, gone: GoneError, *, sent: bool) -> str:
        if sent:
            return f"the request to {self._sender.node!r} was sent, and its reply is lost: {gone}"
        return f"the request to {self._sender.node!r} was not sent: {gone}"

    async def _ask(self, message: Message, pending: _Pending) -> Message:
        delivery = pending.delivery = await self._send(message)
        delivery.watch(pending.changed.set)
        while pending.reply is None:
            self._check_alive()
            if pending.lost is not None:
                raise pending.lost
            await self._check_request(delivery)
            if pending.reply is None:
                await pending.changed.wait()
                pending.changed = trio.Event()
        return pending.reply

    async def _send(self, message: Message) -> OutgoingDelivery:
        """Send when both links are attached, because the reply address may change before."""
        sender = self._sender
        connection = sender.session.connection
        await connection.pace.checkpoint()
        self._unsent += 1
        try:
            while True:
                self._check_alive()
                if not self._listening:
                    await self._looked_for.wait()
                    continue
                message.reply_to = self.reply_to
                try:
                    return connection.pump.write_at_once(sender.send_nowait, message)
                except trio.WouldBlock:
                    await sender.wait_sendable()
        finally:
            self._unsent -= 1
            if not self._unsent:
                sender.give_back()  # the service may drain the link, and waits for its credit then

    def _lose(self, link: Sender | Receiver) -> None:
        """Fail the requests in progress: this link was lost, and their replies with it."""
        for pending in self._pending.values():
            if pending.delivery is not None and pending.reply is None:
                pending.lost = lost_with(link.loss(), "a link of the request was lost")
                pending.give_up()
                pending.changed.set()

    def _lose_replies(self) -> None:
        self._listening = False
        self._lose(self._replies)

    def _listen(self) -> None:
        """Send requests again: replies can arrive on the restored link."""
        address = self._replies.address
        if self._made and address is not None:
            self.reply_to = address
        self._listening = True
        self._look()

    def _look(self) -> None:
        """Wake the requests that wait to be sent."""
        self._looked_for.set()
        self._looked_for = trio.Event()

    async def _check_request(self, delivery: OutgoingDelivery) -> None:
        """Raise if the request has failed, so that no reply can come."""
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
        """Hand each reply to the request that waits for it, until the link ends.

        A task of ``RequesterOpening`` runs it. Cancelled: later replies stay at the peer.
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
            pending = self._pending.get(_key(delivery.message.correlation_id))
        except RemoteProtocolError as fault:
            delivery.reject(fault.condition, fault.description)
            return
        delivery.accept()  # also a late reply: nothing else could use it
        if pending is not None and pending.reply is None:
            pending.reply = delivery.message
            pending.changed.set()

    def close(self) -> None:
        """Close the requester; waiting requests raise ``trio.ClosedResourceError``."""
        self._closed = True
        for pending in self._pending.values():
            pending.changed.set()
        self._look()

    def __repr__(self) -> str:
        return f"<Requester of {self._sender.address!r} waiting={len(self._pending)}>"


def _key(message_id: Any) -> Any:
    """Return a message id in the form in which ids are compared.

    The draft of 2010 has ids of octets only, so the reply to a text has octets.
    """
    return message_id.encode() if isinstance(message_id, str) else message_id


class RequesterOpening(EnteredWithAsync):
    """A requester that is not opened yet: enter it with ``async with``.

    Raises (on entering):
        LinkRefusedError: the peer refuses one of its links.
    """

    def __init__(self, connection: LinkConnection, options: RequesterOptions) -> None:
        address, reply_to, direct = options.address, options.reply_to, options.direct
        if direct and reply_to is not None:
            raise LocalProtocolError(f"reply_to={reply_to!r} with direct=True: give only one of the two")
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
                raise LocalProtocolError(
                    "the peer created a node for replies, but its attach has no address of it"
                )
            sender = await self._sending.__aenter__()
        except BaseException:
            await self._receiving.__aexit__(None, None, None)
            raise
        # The nursery is entered by hand, so that an exception of the user's block is not wrapped in a group.
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
    """Open a requester: ``async with conn.open_requester("upper") as requester``.

    Args:
        connection: the connection to the peer with the service.
        address: the address of the node for requests.
        reply_to: a node at the peer for the replies; if None, the peer creates a node for this requester.
        direct: receive replies on a link from the node of the service itself, as with Azure's ``$cbs`` and
            ``$management`` and the functions of a ``Container``.
        options: all others are for the sender of requests, as for ``Connection.open_sender``.

    Raises:
        LocalProtocolError: both ``reply_to`` and ``direct``.
    """
    return RequesterOpening(connection, options)
