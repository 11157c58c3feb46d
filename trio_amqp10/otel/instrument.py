"""``instrument``: let a connection or a container make spans."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

try:
    from opentelemetry import propagate
except ImportError as _missing:
    raise ImportError("trio_amqp10.otel needs OpenTelemetry: pip install 'trio-amqp10[otel]'") from _missing

from trio_amqp10.amqp10.message import Message
from trio_amqp10.container.container import Container
from trio_amqp10.container.handlers import Answering

from .spans import Spans, SpanTarget
from .traced_links import TracedDelivery, kinds_for, message_of, span_target_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

    import trio_amqp10
    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.amqp10.peer.link_callbacks import LinkOwner
    from trio_amqp10.broker.nodes.node import Arrival, Node


class Instrumentation:
    """The result of ``instrument``: spans that a program must make itself."""

    def __init__(self, spans: Spans, container_id: str) -> None:
        self._spans = spans
        self._container_id = container_id

    @contextmanager
    def process(self, delivery: Delivery) -> Generator[None]:
        """Make a span around the work on a received message.

        Use it as ``with tracing.process(delivery): ...``. The span is a child of the current span, or, if there is none, of the span
        that sent the message. Messages sent inside, and the settlement of the delivery, belong to it. While a stream is still
        arriving, the span that sent it is unknown.
        """
        message = message_of(delivery)
        place = span_target_of(cast("LinkOwner", delivery.link.owner))
        with self._spans.processing(message or Message(), place) as within:
            if isinstance(delivery, TracedDelivery):
                delivery.within = within
            yield

    @contextmanager
    def send(self, address: str, message: Any) -> Generator[Message]:
        """Make a span around a send without a link; yield the message to send.

        ``with tracing.send("orders", "tea") as message: await container.send("orders", message)``.
        """
        with self._spans.sending(message, SpanTarget(address, client_id=self._container_id)) as made:
            yield made

    async def around(self, node: Node, arrival: Arrival, work: Callable[[], Awaitable[Any]]) -> Any:
        """Make a span around a handler's call; this is given to ``Container.surround``.

        Cancelled: the handler is cancelled too.
        """
        message = arrival.message
        with self._spans.processing(
            message, SpanTarget(node.address, client_id=self._container_id)
        ) as within:
            if isinstance(arrival, TracedDelivery):
                arrival.within = within
            result = await work()
            reply_to = message.reply_to if isinstance(node, Answering) else None
            if reply_to is not None:
                place = SpanTarget(reply_to, temporary=True, client_id=self._container_id)
                with self._spans.sending(result, place, "reply") as reply:
                    return reply
            return result


def instrument(
    target: trio_amqp10.Connection | Container,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    propagator: TextMapPropagator | None = None,
    system: str = "amqp",
    attributes: Mapping[str, Any] | None = None,
) -> Instrumentation:
    """Let a connection or a container make spans, and carry context in messages.

    The durations are recorded in the histograms ``messaging.client.operation.duration`` and
    ``messaging.process.duration``.

    For a connection there is a span for each ``send``, ``transmit``, ``send_nowait`` and stream; each ``receive``, also by
    iteration; each ``accept``, ``reject``, ``release`` and ``modify``; on links opened from now on, by either end. For a container
    there is one for each call of the handler of a function or a consumer, its settlement and its reply, and for each message that a
    producer sends; queues and topics pass on the context unchanged and make no spans. A second call replaces the first.

    Args:
        target: the connection or container.
        tracer_provider, meter_provider: the global ones if None.
        propagator: the global one if None: trace context and baggage of the W3C.
        system: ``messaging.system`` of each span and value: ``"servicebus"`` or ``"rabbitmq"``, if the peer is one of these.
        attributes: further attributes of each span and value, such as ``server.address``.
    """
    spans = Spans(
        tracer_provider,
        meter_provider,
        propagator or propagate.get_global_textmap(),
        {"messaging.system": system, **(attributes or {})},
    )
    if isinstance(target, Container):
        made = Instrumentation(spans, target.name)
        target.amqp10.kinds = kinds_for(spans)
        target.surround(made.around)
        return made
    target.use(kinds_for(spans))
    return Instrumentation(spans, target.container_id)
