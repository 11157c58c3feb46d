"""Spans of messages, by the semantic conventions for messaging (1.44).

=========  ========  =====================================================================================
operation  kind      parent and links
=========  ========  =====================================================================================
send       PRODUCER  a child of the current span; its own context is put in the message. If the message already has
                     a context: CLIENT, with a link to that context, which is not changed
receive    CLIENT    a child of the current span, a link for each message
process    CONSUMER  a child of the current span, or, if there is none, of the message's context; linked to it either way
settle     CLIENT    a child of the current span, or of the span that processed or received it; linked to the message's context
=========  ========  =====================================================================================

Temporary destinations, those of dynamic nodes and replies, are attributes and not part of a span's name.
Knows messages and addresses; knows no links.
"""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode

from trio_amqp10.amqp10.message import Message

from .durations import Durations, error_type
from .trace_context import GETTER, SETTER, extract_carrier, with_carrier

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from opentelemetry import metrics
    from opentelemetry.propagators.textmap import TextMapPropagator

_SCHEMA: Final = "https://opentelemetry.io/schemas/1.44.0"
_NAME: Final = "trio_amqp10"


class SpanTarget:
    """The destination or source of a message.

    Args:
        name: the address, if there is one.
        temporary: whether it is a dynamic node, or a place for replies: its name has no meaning outside of the connection.
        client_id: the container-id of the client.
    """

    __slots__ = ("client_id", "name", "temporary")

    def __init__(self, name: str | None, *, temporary: bool = False, client_id: str | None = None) -> None:
        self.name: str | None = name
        self.temporary: Final = temporary
        self.client_id: Final = client_id

    def attributes(self) -> dict[str, Any]:
        """Return the attributes for a span of this destination or source."""
        found: dict[str, Any] = {}
        if self.name is not None:
            found["messaging.destination.name"] = self.name
        if self.temporary:
            found["messaging.destination.temporary"] = True
        if self.client_id is not None:
            found["messaging.client.id"] = self.client_id
        return found


class Spans:
    """Makes spans, and carries their context.

    Args:
        tracer_provider: makes the spans; the global one if None.
        meter_provider: records the durations; the global one if None.
        propagator: encodes the context in messages.
        attributes: of every span.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
        propagator: TextMapPropagator,
        attributes: Mapping[str, Any],
    ) -> None:
        self._tracer = trace.get_tracer(_NAME, None, tracer_provider, _SCHEMA)
        self._durations = Durations(meter_provider)
        self._propagator = propagator
        self._attributes = dict(attributes)

    # -- context ----------------------------------------------------------------------------

    def origin(self, message: Message) -> Context:
        """Return the context in the message, without that of the current task."""
        return self._propagator.extract(extract_carrier(message), Context(), GETTER)

    @staticmethod
    def _links(origins: Iterable[tuple[Context, dict[str, Any]]]) -> list[Link]:
        contexts = [(_context_of(origin), attributes) for origin, attributes in origins]
        return [Link(context, attributes) for context, attributes in contexts if context.is_valid]

    def _facts(self, operation: str, kind: str, place: SpanTarget, **more: Any) -> dict[str, Any]:
        known = {name.replace("_", "."): value for name, value in more.items() if value is not None}
        return {
            "messaging.operation.name": operation,
            "messaging.operation.type": kind,
            **place.attributes(),
            **known,
            **self._attributes,
        }

    # -- the four operations ----------------------------------------------------------------

    @contextmanager
    def sending(self, message: Any, place: SpanTarget, operation: str = "send") -> Generator[Message]:
        """Make a span around a send; yield the message to send, with its context."""
        made = message if isinstance(message, Message) else Message(message)
        origin = _context_of(self.origin(made))
        facts = self._facts(operation, "send", place) | _message_facts(made)
        kind = SpanKind.CLIENT if origin.is_valid else SpanKind.PRODUCER
        links = [Link(origin)] if origin.is_valid else []
        with self._current(_title(operation, place), kind, facts, links):
            if not origin.is_valid and not made.message_format:
                fields: dict[str, str] = {}
                self._propagator.inject(fields, setter=SETTER)
                made = with_carrier(made, fields) if fields else made
            yield made

    @contextmanager
    def processing(self, message: Message, place: SpanTarget) -> Generator[Context]:
        """Make a span around the work that a message causes; yield the span's context."""
        origin = self.origin(message)
        facts = self._facts("process", "process", place) | _message_facts(message)
        ambient = trace.get_current_span().get_span_context().is_valid
        with self._current(
            _title("process", place),
            SpanKind.CONSUMER,
            facts,
            self._links([(origin, {})]),
            None if ambient else origin,
        ) as span:
            yield trace.set_span_in_context(span)

    def received(
        self,
        messages: Sequence[Message],
        place: SpanTarget,
        began: int,
        *,
        batch: bool,
        failure: BaseException | None = None,
    ) -> Context:
        """Make a span of a finished receive; return its context.

        Args:
            messages: the messages received.
            place: their source.
            began: nanoseconds since 1970.
            batch: whether it could receive several messages.
            failure: the exception that it raised instead of returning messages.
        """
        facts = self._facts("receive", "receive", place)
        each_facts = [_message_facts(message) for message in messages]
        if batch:
            facts["messaging.batch.message_count"] = len(messages)
        elif each_facts:
            facts |= each_facts[0]
        origins = [
            (self.origin(message), each if batch else {})
            for message, each in zip(messages, each_facts, strict=True)
        ]
        span = self._tracer.start_span(
            _title("receive", place),
            kind=SpanKind.CLIENT,
            attributes=facts,
            links=self._links(origins),
            start_time=began,
        )
        if failure is not None:
            _fail(span, failure)
        span.end()
        self._durations.record((time_ns() - began) / 1e9, facts, failure)
        return trace.set_span_in_context(span)

    @contextmanager
    def settling(
        self, operation: str, message: Message | None, place: SpanTarget, within: Context
    ) -> Generator[None]:
        """Make a span around the settlement of a received message.

        Args:
            operation: the name of the operation.
            message: the message, if known.
            place: its source.
            within: the parent if no span is current: the context of the span that processed or received it.
        """
        facts = self._facts(operation, "settle", place)
        links: list[Link] = []
        if message is not None:
            facts |= _message_facts(message)
            links = self._links([(self.origin(message), {})])
        ambient = trace.get_current_span().get_span_context().is_valid
        title = _title(operation, place)
        with self._current(title, SpanKind.CLIENT, facts, links, None if ambient else within):
            yield

    @contextmanager
    def _current(
        self,
        title: str,
        kind: SpanKind,
        facts: dict[str, Any],
        links: Sequence[Link],
        parent: Context | None = None,
    ) -> Generator[Span]:
        span = self._tracer.start_span(title, parent, kind, facts, links)
        began, failed = perf_counter(), None
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield span
        except BaseException as failure:
            failed = failure
            _fail(span, failure)
            raise
        finally:
            span.end()
            self._durations.record(perf_counter() - began, facts, failed)


def _context_of(context: Context) -> SpanContext:
    return trace.get_current_span(context).get_span_context()


def _title(operation: str, place: SpanTarget) -> str:
    return operation if place.temporary or place.name is None else f"{operation} {place.name}"


def _message_facts(message: Message) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if message.message_format:
        return facts
    try:
        ids = message.message_id, message.correlation_id
    except Exception:  # code that reads the message will get the error
        return facts
    for name, value in zip(("messaging.message.id", "messaging.message.conversation_id"), ids, strict=True):
        if value is not None:
            facts[name] = value.hex() if isinstance(value, bytes) else str(value)
    return facts


def _fail(span: Span, failure: BaseException) -> None:
    span.set_attribute("error.type", error_type(failure))
    span.set_status(StatusCode.ERROR, str(failure))
