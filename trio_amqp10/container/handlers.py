"""Nodes that are a function of the user's: request and reply, consume.

Handlers run in tasks of their own, several for each peer if allowed. What a handler raises is
logged here, in full, and the peer learns only that it failed. A handler is not cancelled because
its peer has gone.

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

from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message

from .nodes.node import Arrival, Inlet, Node, Outlet, Peer, RefusedError, SubscriptionTerms

__all__ = ["Around", "ConsumerNode", "FunctionNode", "HandlerNode"]

_log = logging.getLogger("trio_amqp10.container")

PAIRED: Final = "$me"
"""The address of the link that receives, for the one of the same name that sends."""

Post = Callable[[str, Message, Peer], Awaitable[object]]
Around = Callable[[Node, Arrival, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Stands between an arrival and the handler of its node: see ``Container.surround``."""


class _InletTasks:
    """The tasks that work for one inlet, and whose turn it is to reply."""

    __slots__ = ("last", "working")

    def __init__(self) -> None:
        self.working = 0
        self.last: trio.Event | None = None


class HandlerNode(Node):
    """What consumers and functions have in common: up to ``concurrency`` arrivals of an inlet at a time.

    Attributes:
        around: stands between arrivals and the handler, or None.
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
        """Settle what the handler has not settled, by what became of it, and of its reply."""
        self._figures["handled"] += 1
        self._figures["failed"] += failure is not None
        try:
            if failure is None and refusal is not None:
                if arrival.state is None:
                    arrival.reject(refusal.condition, refusal.description)
                return
            if failure is None:
                if arrival.state is None:
                    arrival.accept()
                return
            if isinstance(failure, RemoteProtocolError) and failure.scope == "link":
                # The message itself is at fault: its sections are no sections.
                _log.info("%r: a message that cannot be read: %s", self, failure)
                condition, description = failure.condition, failure.description
            else:
                _log.error("%r: the handler failed", self, exc_info=failure)
                condition, description = Condition.INTERNAL_ERROR.value, "the handler of this message failed"
            if arrival.state is None:
                arrival.reject(condition, description)
        except LocalProtocolError as gone:
            _log.debug("%r: %s", self, gone)


def _turn(tasks: _InletTasks) -> tuple[trio.Event | None, trio.Event]:
    """What to wait for before replying, and what to set after it."""
    before, tasks.last = tasks.last, trio.Event()
    return before, tasks.last


class ConsumerNode(HandlerNode):
    """Calls ``handler(delivery)`` for every message that peers send.

    The delivery is accepted when the handler returns, unless it has settled it otherwise, and
    rejected when it raises: with the condition of a ``RefusedError``, otherwise with ``amqp:internal-error``.

    Args:
        address: what links name to reach it.
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
    """Answers every request; what with, is for a class of this one to say.

    The reply goes to the request's ``reply_to``: a link of the same peer that receives from this
    node and calls its target so, or else a node of the container; ``$me`` is the link that is paired with that of the
    request, which has the same name ("AMQP Request-Response Messaging with Link Pairing 1.0"). It carries the request's
    ``correlation_id``, or else its ``message_id``. Replies leave in the order of the requests of
    one link, also where their handlers finish in another, unless ``ordered`` is False. The request is
    accepted when its reply is out, and rejected when answering raises: with the condition of a ``RefusedError``, otherwise with
    ``amqp:internal-error``.
    A reply that comes too late, because its link or node is gone, is dropped and counted. So is one that is larger than
    its link takes: the request is rejected with ``amqp:link:message-size-exceeded``, or, if it was sent settled, the link for
    replies is ended so.

    Args:
        address: what links name to reach it.
        post: sends a message to the node of that address, or raises ``RefusedError``.
        concurrency: requests of one link that are handled at a time.
        ordered: whether a reply waits for those to earlier requests of its link.

    Attributes:
        answers_unasked: whether links that receive from here need no address: then the reply to a request without ``reply_to``
            goes to the latest such link of its peer, and ``reply_to`` may be the name of one, as Azure's clients for JavaScript have it.
    """

    accepts_receivers = answers_link_pairs = True
    answers_unasked = False

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
        if reply is not None:
            try:
                refusal = await self._send(inlet, address, reply, waits=not arrival.settled)
            except Exception as raised:
                failure = raised
        self._answer(arrival, failure, refusal)

    async def _ask(self, peer: Peer, request: Message) -> Any:
        """The answer to a request of this peer: any AMQP value, or a ``Message``."""
        raise NotImplementedError

    async def _send(
        self, inlet: Inlet, address: str | None, reply: Message, *, waits: bool
    ) -> RefusedError | None:
        """Send a reply, or drop it; returns why the request is to be rejected, if its peer ``waits`` to hear."""
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
        """The link of the same peer that takes replies to this address, or to none."""
        mine = [outlet for outlet in self.outlets if outlet.peer is inlet.peer]
        if address is None:
            return mine[-1] if mine and self.answers_unasked else None
        for outlet in mine:
            if outlet.target == address if address != PAIRED else outlet.pair == inlet.pair:
                return outlet
        if self.answers_unasked:
            for outlet in mine:
                if outlet.target is None and outlet.subscription_terms.name == address:
                    return outlet
        return None

    def _drop(self, why: object) -> None:
        self._dropped += 1
        _log.info("%r: a reply is dropped, %s", self, why)

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"dropped": self._dropped}

    # -- links that take replies straight from here -----------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)
        if target is None:
            raise RefusedError(
                Condition.NOT_ALLOWED,
                f"{self.address!r} gives replies, so the target of the link needs the address in `reply-to`",
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
                outlet.outgrow(size)  # nothing else can tell the peer
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
    """Calls ``handler(message)`` for every request, and sends back what it returns.

    Args:
        address: what links name to reach it.
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
    """The reply as octets already, so that what cannot be encoded is found while it is the handler's."""
    reply = copy(result) if isinstance(result, Message) else Message(result)
    reply.correlation_id = correlation
    if reply.to is None and address != PAIRED:
        reply.to = address
    return Message.from_payload(reply.to_payload())
