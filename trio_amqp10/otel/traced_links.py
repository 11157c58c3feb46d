"""Senders, receivers and deliveries that make spans, as subclasses.

Knows what each operation of a link is in the terms of ``spans``.
"""

from __future__ import annotations

from contextlib import ExitStack
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, cast

from trio_amqp10.errors import AmqpError
from trio_amqp10.message import Message
from trio_amqp10.peer.class_overrides import LinkClasses
from trio_amqp10.peer.delivery import (
    Delivery,
    Outcome,
    OutgoingDelivery,
    Transactional,
    raise_unless_accepted,
)
from trio_amqp10.peer.receiver import Receiver
from trio_amqp10.peer.sender import Sender
from trio_amqp10.peer.stream_sender import StreamSender

from .spans import SpanTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from opentelemetry.context import Context

    from trio_amqp10.peer.link_owner import LinkOwner

    from .spans import Spans

__all__ = ["TracedDelivery", "kinds_for", "message_of", "place_of"]


def place_of(link: LinkOwner, message: Any = None) -> SpanTarget:
    """The node that a link leads to, at either end; through the anonymous terminus, what the message names."""
    dynamic = bool(getattr(link.terminus, "dynamic", False))
    name = link.node
    if name is None and isinstance(message, Message):
        name = message.to
    return SpanTarget(name, temporary=dynamic, client_id=link.session.connection.container_id)


class _TracedStream(StreamSender):
    """A stream that is one send, from where it is entered to where its outcome is known."""

    def __init__(self, sender: Sender, *arguments: Any) -> None:
        super().__init__(sender, *arguments)
        self._given: Message = self.message
        self._span = ExitStack()

    async def __aenter__(self) -> Self:
        sender = cast("_TracedSender", self._sender)
        with ExitStack() as stack:
            sending = sender.spans.sending(self._given, place_of(sender, self._given))
            self.message = stack.enter_context(sending)
            await super().__aenter__()
            self._span = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, exc, tb)
        except BaseException as failure:
            self._span.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._span.__exit__(kind, exc, tb)

    async def aclose(self) -> None:
        if self._given.footer:  # it may be set until the end, on the message that we were given
            self.message.footer = self._given.footer
        await super().aclose()


class _TracedSender(Sender):
    __slots__ = ()
    stream_class = _TracedStream
    spans: ClassVar[Spans]

    async def send(
        self,
        message: Any,
        *,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> Outcome | None:
        with self.spans.sending(message, place_of(self, message)) as made:
            delivery = await super().transmit(made, tag=tag, settled=settled, transaction=transaction)
            outcome = await delivery.outcome()
            raise_unless_accepted(outcome, delivery)
            return outcome

    async def transmit(
        self,
        message: Any,
        *,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> OutgoingDelivery:
        with self.spans.sending(message, place_of(self, message)) as made:
            return await super().transmit(made, tag=tag, settled=settled, transaction=transaction)

    def send_nowait(
        self,
        message: Any,
        *,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> OutgoingDelivery:
        with self.spans.sending(message, place_of(self, message)) as made:
            return super().send_nowait(made, tag=tag, settled=settled, transaction=transaction)


class TracedDelivery(Delivery):
    """A delivery whose settlement is a span, once somebody has it.

    Attributes:
        within: the span that received or processed it; None where it is a node's affair, and no span is made.
    """

    __slots__ = ("within",)
    spans: ClassVar[Spans]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.within: Context | None = None

    def accept(self, *, transaction: Transactional | None = None) -> None:
        self._settle("accept", super().accept, transaction=transaction)

    def reject(
        self,
        condition: str = "amqp:internal-error",
        description: str | None = None,
        *,
        transaction: Transactional | None = None,
    ) -> None:
        self._settle("reject", super().reject, condition, description, transaction=transaction)

    def release(self, *, transaction: Transactional | None = None) -> None:
        self._settle("release", super().release, transaction=transaction)

    def modify(self, **options: Any) -> None:
        self._settle("modify", super().modify, **options)

    def _settle(self, operation: str, settle: Callable[..., None], *arguments: Any, **options: Any) -> None:
        if self.within is None:
            settle(*arguments, **options)
            return
        place = place_of(cast("LinkOwner", self.link.owner))
        with self.spans.settling(operation, message_of(self), place, self.within):
            settle(*arguments, **options)


def message_of(delivery: Delivery) -> Message | None:
    """Its message, if that is there to be looked at: of a stream it may not be."""
    return delivery.message if delivery.inflow is None else None


class _TracedReceiver(Receiver):
    __slots__ = ()
    spans: ClassVar[Spans]

    async def receive(self) -> Delivery:
        began = time_ns()
        try:
            delivery = await super().receive()
        except AmqpError as failure:
            self._told([], began, failure=failure)
            raise
        self._told([delivery], began)
        return delivery

    async def receive_many(self, most: int) -> list[Delivery]:
        began = time_ns()
        try:
            deliveries = [await super().receive()]
        except AmqpError as failure:
            self._told([], began, batch=True, failure=failure)
            raise
        while len(deliveries) < most and self.buffered:
            deliveries.append(super().receive_nowait())
        self._told(deliveries, began, batch=True)
        return deliveries

    def receive_nowait(self) -> Delivery:
        began = time_ns()
        delivery = super().receive_nowait()
        self._told([delivery], began)
        return delivery

    async def drain(self) -> list[Delivery]:
        began = time_ns()
        deliveries = await super().drain()
        self._told(deliveries, began, batch=True)
        return deliveries

    async def __anext__(self) -> Delivery:
        began = time_ns()
        try:
            delivery = await super().__anext__()
        except AmqpError as failure:
            self._told([], began, failure=failure)
            raise
        self._told([delivery], began)
        return delivery

    def _told(
        self,
        deliveries: list[Delivery],
        began: int,
        *,
        batch: bool = False,
        failure: BaseException | None = None,
    ) -> None:
        messages = [message for each in deliveries if (message := message_of(each)) is not None]
        context = self.spans.received(messages, place_of(self), began, batch=batch, failure=failure)
        for each in deliveries:
            if isinstance(each, TracedDelivery):
                each.within = context


def kinds_for(made: Spans) -> LinkClasses:
    """What a connection is to make its links and deliveries of, for these spans."""

    class ThisSender(_TracedSender):
        __slots__ = ()
        spans = made

    class ThisReceiver(_TracedReceiver):
        __slots__ = ()
        spans = made

    known: dict[type[Delivery], type[Delivery]] = {}

    def deliveries(base: type[Delivery]) -> type[Delivery]:
        if base not in known:
            known[base] = type("ThisDelivery", (TracedDelivery, base), {"__slots__": (), "spans": made})
        return known[base]

    return LinkClasses(sender=ThisSender, receiver=ThisReceiver, delivery=deliveries)
