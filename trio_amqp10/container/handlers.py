"""Nodes that call the user's functions: request and reply, consume.

Each call of a handler runs in a task of its own, several for each peer if allowed. An exception of a handler is
logged here, in full, and the peer learns only that the handler failed. A handler is not cancelled when
its peer has disconnected.

Knows messages, inlets and outlets; knows no links.
"""

# Not every kind of handler needs all its arguments.
# ruff: noqa: ARG002

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from typing import Any, Final

import trio

from trio_amqp10.amqp10.message import Message
from trio_amqp10.broker.connected_peer_base import ConnectedPeerBase
from trio_amqp10.broker.nodes.node import Arrival, Inlet, Node, Outlet, Peer, RefusedError, SubscriptionTerms
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError

_log = logging.getLogger("trio_amqp10.container")

PAIRED: Final = "$me"
"""The reply address that means the receiving link of the same name."""

Post = Callable[[str, Message, Peer], Awaitable[object]]
Around = Callable[[Node, Arrival, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""A function that wraps the handler of a node; see ``Container.surround``."""


class _InletTasks:
    """The tasks that work for one inlet, and the order of their replies."""

    __slots__ = ("last", "working")

    def __init__(self) -> None:
        self.working = 0
        self.last: trio.Event | None = None


class HandlerNode(Node):
    """A node that handles up to ``concurrency`` arrivals of an inlet at a time.

    The base of consumers and functions.

    Attributes:
        around: a function that is called around the handler, or None.
    """

    accepts_senders = True

    def __init__(self, address: str, concurrency: int) -> None:
        super().__init__(address)
        if concurrency < 1:
            raise LocalProtocolError(f"concurrency={concurrency}: expected at least 1")
        self.around: Around | None = None
        self._concurrency = concurrency
        self._figures = {"handled": 0, "failed": 0}
        self._tasks: dict[Inlet, _InletTasks] = {}

    def add_inlet(self, inlet: Inlet) -> None:
        super().add_inlet(inlet)
        self._tasks[inlet] = _InletTasks()

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._tasks.pop(inlet, None)

    def on_arrivals(self, inlet: Inlet) -> None:
        tasks = self._tasks.get(inlet)
        while tasks is not None and tasks.working < self._concurrency:
            arrival = inlet.take()
            if arrival is None:
                return
            before, done = tasks.last, trio.Event()
            inlet.peer.start_soon(self._work, inlet, tasks, arrival, before, done)
            tasks.last = done
            tasks.working += 1

    async def _work(
        self,
        inlet: Inlet,
        tasks: _InletTasks,
        arrival: Arrival | None,
        before: trio.Event | None,
        done: trio.Event,
    ) -> None:
        try:
            while arrival is not None:
                try:
                    await self._handle(inlet, arrival, before)
                finally:
                    done.set()
                arrival = inlet.take()
                if arrival is not None:
                    before, done = _turn(tasks)
        finally:
            tasks.working -= 1

    async def _handle(self, inlet: Inlet, arrival: Arrival, before: trio.Event | None) -> None:
        raise NotImplementedError

    def _call(
        self, arrival: Arrival, handler: Callable[[Any], Awaitable[Any]], argument: Any
    ) -> Awaitable[Any]:
        around = self.around
        return handler(argument) if around is None else around(self, arrival, partial(handler, argument))

    def statistics(self) -> dict[str, int]:
        return super().statistics() | self._figures

    def _answer(
        self, arrival: Arrival, failure: Exception | None, refusal: RefusedError | None = None
    ) -> None:
        """Settle an arrival that the handler has not settled, and count it.

        It is accepted, or rejected because of a failure of the handler, or a refusal by the handler or of its reply.
        """
        self._figures["handled"] += 1
        self._figures["failed"] += failure is not None
        try:
            if failure is None and refusal is not None:
                # The handler refused the message, or its reply was refused.
                if arrival.state is None:
                    arrival.reject(refusal.condition, refusal.description)
                return
            if failure is None:
                if arrival.state is None:
                    arrival.accept()
                return
            if isinstance(failure, RemoteProtocolError) and failure.scope == "link":
                # The message itself is at fault: its sections cannot be decoded (3.2).
                _log.info("%r: a message cannot be read: %s", self, failure)
                condition, description = failure.condition, failure.description
            else:
                _log.error("%r: the handler failed", self, exc_info=failure)
                condition, description = Condition.INTERNAL_ERROR.value, "the handler of this message failed"
            if arrival.state is None:
                arrival.reject(condition, description)
        except LocalProtocolError as gone:
            _log.debug("%r: %s", self, gone)


def _turn(tasks: _InletTasks) -> tuple[trio.Event | None, trio.Event]:
    """Return the event to wait for before replying, and the event to set after it."""
    before, tasks.last = tasks.last, trio.Event()
    return before, tasks.last


class ConsumerNode(HandlerNode):
    """A node that calls ``handler(delivery)`` for every message that peers send.

    The delivery is accepted when the handler returns, unless the handler settled it otherwise. It is
    rejected when the handler raises: with the condition of a ``RefusedError``, otherwise with ``amqp:internal-error``.

    Args:
        address: the address of the node.
        handler: an async function of a delivery.
        concurrency: deliveries of one link that are handled at a time; with 1, in order.
    """

    def __init__(
        self, address: str, handler: Callable[[Any], Awaitable[object]], *, concurrency: int = 1
    ) -> None:
        super().__init__(address, concurrency)
        self._handler = handler

    async def _handle(self, inlet: Inlet, arrival: Arrival, before: trio.Event | None) -> None:
        failure: Exception | None = None
        refusal: RefusedError | None = None
        try:
            await self._call(arrival, self._handler, arrival)
        except RefusedError as refused:
            refusal = refused
        except Exception as raised:
            failure = raised
        self._answer(arrival, failure, refusal)


class Answering(HandlerNode):
    """A node that answers every request; a subclass makes the answers.

    The reply goes to the request's ``reply_to``. This is the target of a link of the same peer that receives from this
    node, or otherwise the address of a node of the container; ``$me`` is the receiving link that is paired with the link
    of the request, which has the same name ("AMQP Request-Response Messaging with Link Pairing 1.0"). The reply carries
    the request's ``correlation_id``, or if it has none, its ``message_id``. Replies are sent in the order of the requests
    of one link, even if their handlers finish in another, unless ``ordered`` is False. The request is
    accepted when its reply is sent, and rejected when answering raises: with the condition of a ``RefusedError``, otherwise
    with ``amqp:internal-error``.

    A reply is dropped and counted if its link or node is gone, or if it is larger than its link takes. If it is too large,
    the request is rejected with ``amqp:link:message-size-exceeded``, or, if it was sent settled, the link for
    replies is ended with that error.

    Args:
        address: the address of the node.
        post: sends a message to the node of that address, or raises ``RefusedError``.
        concurrency: requests of one link that are handled at a time.
        ordered: whether a reply waits for the replies to earlier requests of its link.

    Attributes:
        answers_unasked: whether receiving links need no target address. If true, the reply to a request without
            ``reply_to`` goes to the latest such link of its peer, and ``reply_to`` may be the name of one, as Azure's
            clients for JavaScript have it.
        settles_first: whether a request is accepted before its reply is sent, as at Azure: clients on ``uamqp`` take a reply
            before that for a failure. Then no reply can reject it.
    """

    accepts_receivers = answers_link_pairs = True
    answers_unasked = settles_first = False

    def __init__(
        self,
        address: str,
        post: Post,
        *,
        concurrency: int = 100,
        ordered: bool = True,
    ) -> None:
        super().__init__(address, concurrency)
        self._post = post
        self._ordered = ordered
        self._dropped = 0
        self._demand: dict[Outlet, trio.lowlevel.ParkingLot] = {}

    async def _handle(self, inlet: Inlet, arrival: Arrival, before: trio.Event | None) -> None:
        failure: Exception | None = None
        refusal: RefusedError | None = None
        reply: Message | None = None
        address: str | None = None
        try:
            request = arrival.message
            address = request.reply_to
            correlation = request.message_id if request.correlation_id is None else request.correlation_id
            ask = partial(self._ask, inlet.peer)
            reply = _reply(await self._call(arrival, ask, request), address, correlation)
        except RefusedError as refused:
            refusal = refused
        except Exception as raised:
            failure = raised
        if self._ordered and before is not None and not before.is_set():
            await before.wait()
        if reply is not None and self.settles_first and arrival.state is None:
            self._answer(arrival, None)
            if isinstance(inlet.peer, ConnectedPeerBase):
                inlet.peer.write_outcomes()
            await self._send_settled(inlet, address, reply)
            return
        if reply is not None:
            try:
                refusal = await self._send(inlet, address, reply, waits=not arrival.settled)
            except Exception as raised:
                failure = raised
        self._answer(arrival, failure, refusal)

    async def _send_settled(self, inlet: Inlet, address: str | None, reply: Message) -> None:
        """Send the reply to a request that is settled, or drop it."""
        try:
            await self._send(inlet, address, reply, waits=False)
        except Exception:
            _log.exception("%r: a reply could not be sent", self)

    async def _ask(self, peer: Peer, request: Message) -> Any:
        """Return the answer to a request: any AMQP value, or a ``Message``."""
        raise NotImplementedError

    async def _send(
        self, inlet: Inlet, address: str | None, reply: Message, *, waits: bool
    ) -> RefusedError | None:
        """Send a reply, or drop it; return why the request must be rejected, if it must.

        Args:
            inlet: the link of the request.
            address: the ``reply_to`` of the request.
            reply: the reply.
            waits: whether the request is unsettled, so that its peer waits for an outcome.
        """
        outlet = self._outlet_for(inlet, address)
        if outlet is not None:
            return await self._send_through(outlet, reply, waits=waits)
        if address == PAIRED:
            self._drop(f"no link is paired with {inlet!r}")
        elif address is not None:
            try:
                await self._post(address, reply, inlet.peer)
            except RefusedError as refusal:
                self._drop(refusal)
        return None

    def _outlet_for(self, inlet: Inlet, address: str | None) -> Outlet | None:
        """Return the link of the same peer that takes replies to this address, or to none."""
        mine = [outlet for outlet in self.outlets if outlet.peer is inlet.peer]
        if address is None:
            return mine[-1] if mine and self.answers_unasked else None
        for outlet in mine:
            # ``$me`` means the link of the same name; any other address is the target of a link.
            if outlet.target == address if address != PAIRED else outlet.pair == inlet.pair:
                return outlet
        if self.answers_unasked:
            # Azure's clients for JavaScript put the name of their receiving link in ``reply-to``.
            for outlet in mine:
                if outlet.target is None and outlet.subscription_terms.name == address:
                    return outlet
        return None

    def _drop(self, why: object) -> None:
        self._dropped += 1
        _log.info("%r: a reply is dropped: %s", self, why)

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"dropped": self._dropped}

    # -- links that receive replies from this node ------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)
        if target is None:
            raise RefusedError(
                Condition.NOT_ALLOWED,
                f"{self.address!r} sends replies: the target of the link must have the address in `reply-to`",
            )

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        self._demand[outlet] = trio.lowlevel.ParkingLot()

    def on_demand(self, outlet: Outlet) -> None:
        lot = self._demand.get(outlet)
        if not lot:
            outlet.rest(0)
        else:
            lot.unpark_all()

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        lot = self._demand.pop(outlet, None)
        if lot is not None:
            lot.unpark_all()

    async def _send_through(self, outlet: Outlet, reply: Message, *, waits: bool) -> RefusedError | None:
        limit, size = outlet.max_message_size, len(reply.to_payload())
        if limit is not None and size > limit:
            text = f"the reply takes {size} octets, and the link for replies takes {limit} (2.7.3)"
            self._drop(text)
            if not waits:
                # The request is settled, so only the end of this link can report the error.
                outlet.outgrow(size)
            return RefusedError(Condition.MESSAGE_SIZE_EXCEEDED, text)
        try:
            while not outlet.ready():
                lot = self._demand.get(outlet)
                if lot is None:
                    self._drop("its link is gone")
                    return None
                await lot.park()
            outlet.give(reply, None)
        except Exception:
            self._drop("its link failed")
            self.end_link(outlet)
        return None


class FunctionNode(Answering):
    """A node that answers every request with the result of ``handler(message)``.

    Args:
        address: the address of the node.
        handler: an async function of a ``Message``, returning any AMQP value or a ``Message``.
        post, concurrency, ordered: as for ``Answering``.
    """

    def __init__(
        self,
        address: str,
        handler: Callable[[Message], Awaitable[Any]],
        post: Post,
        *,
        concurrency: int = 100,
        ordered: bool = True,
    ) -> None:
        super().__init__(address, post, concurrency=concurrency, ordered=ordered)
        self._handler = handler

    async def _ask(self, peer: Peer, request: Message) -> Any:
        return await self._handler(request)


def _reply(result: Any, address: str | None, correlation: Any) -> Message:
    """Return the reply as octets.

    If it cannot be encoded, the exception counts as the handler's.
    """
    reply = copy(result) if isinstance(result, Message) else Message(result)
    reply.correlation_id = correlation
    if reply.to is None and address != PAIRED:
        reply.to = address
    return Message.from_payload(reply.to_payload())
