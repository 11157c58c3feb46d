"""Senders, receivers and deliveries that make spans, as subclasses.

Knows the operation in ``spans`` for each method of a link.
"""

from __future__ import annotations

from contextlib import ExitStack
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.class_overrides import LinkClasses
from trio_amqp10.amqp10.peer.delivery import (
    Delivery,
    Outcome,
    OutgoingDelivery,
    Transactional,
    raise_unless_accepted,
)
from trio_amqp10.amqp10.peer.receiver import Receiver
from trio_amqp10.amqp10.peer.sender import Sender
from trio_amqp10.amqp10.peer.stream_sender import StreamSender
from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.option_signatures import takes_as

from .spans import SpanTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from opentelemetry.context import Context

    from trio_amqp10.amqp10.peer.link_callbacks import LinkOwner

    from .spans import Spans


def span_target_of(link: LinkOwner, message: Any = None) -> SpanTarget:
    """Return the node of a link at either end.

    For a link to the anonymous terminus it is the address in the message.
    """
    dynamic = bool(getattr(link.terminus, "dynamic", False))
    name = link.node
    if name is None and isinstance(message, Message):
        name = message.to
    return SpanTarget(name, temporary=dynamic, client_id=link.session.connection.container_id)


class _TracedStream(StreamSender):
    """A stream that is one send, from entering until its outcome is known."""

    def __init__(self, sender: Sender, *arguments: Any) -> None:
        super().__init__(sender, *arguments)
        self._given: Message = self.message
        self._span = ExitStack()

    async def __aenter__(self) -> Self:
        sender = cast("_TracedSender", self._sender)
        with ExitStack() as stack:
            sending = sender.spans.sending(self._given, span_target_of(sender, self._given))
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
        if self._given.footer:  # the program may set it until the end, on the message that it passed
            self.message.footer = self._given.footer
        await super().aclose()


class _TracedSender(Sender):
    __slots__ = ()
    stream_class = _TracedStream
    spans: ClassVar[Spans]

    @takes_as(Sender.send)
    async def send(self, message: Any, **options: Any) -> Outcome | None:
        with self.spans.sending(message, span_target_of(self, message)) as made:
            delivery = await super().transmit(made, **options)
            outcome = await delivery.outcome()
            raise_unless_accepted(outcome, delivery)
            return outcome

    @takes_as(Sender.transmit)
    async def transmit(self, message: Any, **options: Any) -> OutgoingDelivery:
        with self.spans.sending(message, span_target_of(self, message)) as made:
            return await super().transmit(made, **options)

    @takes_as(Sender.send_nowait)
    def send_nowait(self, message: Any, **options: Any) -> OutgoingDelivery:
        with self.spans.sending(message, span_target_of(self, message)) as made:
            return super().send_nowait(made, **options)


class TracedDelivery(Delivery):
    """A delivery whose settlement is a span, after a program has received it.

    Attributes:
        within: the context of the span that received or processed it; None for a delivery to a node, whose settlement makes no
            span.
    """

    __slots__ = ("within",)
    spans: ClassVar[Spans]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.within: Context | None = None

    def accept(self, *, transaction: Transactional | None = None) -> None:
        self._settle("accept", super().accept, transaction=transaction)

    @takes_as(Delivery.reject)
    def reject(self, *error: Any, **options: Any) -> None:
        self._settle("reject", super().reject, *error, **options)

    def release(self, *, transaction: Transactional | None = None) -> None:
        self._settle("release", super().release, transaction=transaction)

    @takes_as(Delivery.modify)
    def modify(self, **options: Any) -> None:
        self._settle("modify", super().modify, **options)

    def _settle(self, operation: str, settle: Callable[..., None], *arguments: Any, **options: Any) -> None:
        if self.within is None:
            settle(*arguments, **options)
            return
        target = span_target_of(cast("LinkOwner", self.link.owner))
        with self.spans.settling(operation, message_of(self), target, self.within):
            settle(*arguments, **options)


def message_of(delivery: Delivery) -> Message | None:
    """Return the delivery's message; None if it is a stream that is still arriving."""
    return delivery.message if delivery.inflow is None else None


class _TracedReceiver(Receiver):
    __slots__ = ()
    spans: ClassVar[Spans]

    async def receive(self, *, timeout: float | None = None) -> Delivery:  # noqa: ASYNC109
        began = time_ns()
        try:
            delivery = await super().receive(timeout=timeout)
        except AmqpError as failure:
            self._record([], began, failure=failure)
            raise
        self._record([delivery], began)
        return delivery

    async def receive_many(self, most: int) -> list[Delivery]:
        began = time_ns()
        try:
            deliveries = [await super().receive()]
        except AmqpError as failure:
            self._record([], began, batch=True, failure=failure)
            raise
        while len(deliveries) < most and self.buffered:
            deliveries.append(super().receive_nowait())
        self._record(deliveries, began, batch=True)
        return deliveries

    def receive_nowait(self) -> Delivery:
        began = time_ns()
        delivery = super().receive_nowait()
        self._record([delivery], began)
        return delivery

    async def drain(self) -> list[Delivery]:
        began = time_ns()
        deliveries = await super().drain()
        self._record(deliveries, began, batch=True)
        return deliveries

    async def __anext__(self) -> Delivery:
        began = time_ns()
        try:
            delivery = await super().__anext__()
        except AmqpError as failure:
            self._record([], began, failure=failure)
            raise
        self._record([delivery], began)
        return delivery

    def _record(
        self,
        deliveries: list[Delivery],
        began: int,
        *,
        batch: bool = False,
        failure: BaseException | None = None,
    ) -> None:
        messages = [message for each in deliveries if (message := message_of(each)) is not None]
        context = self.spans.received(messages, span_target_of(self), began, batch=batch, failure=failure)
        for each in deliveries:
            if isinstance(each, TracedDelivery):
                each.within = context


def kinds_for(made: Spans) -> LinkClasses:
    """Return the classes with which a connection makes links for these spans."""

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
