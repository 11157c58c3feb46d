"""``instrument``: have a connection or a container make spans."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

try:
    from opentelemetry import propagate
except ImportError as _missing:
    raise ImportError("trio_amqp10.otel needs OpenTelemetry: pip install 'trio-amqp10[otel]'") from _missing

from trio_amqp10.container.container import Container
from trio_amqp10.container.handlers import Answering
from trio_amqp10.message import Message

from .spans import Spans, SpanTarget
from .traced_links import TracedDelivery, kinds_for, message_of, place_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

    import trio_amqp10
    from trio_amqp10.container.nodes.node import Arrival, Node
    from trio_amqp10.peer.delivery import Delivery
    from trio_amqp10.peer.link_owner import LinkOwner

__all__ = ["Instrumentation", "instrument"]


class Instrumentation:
    """What ``instrument`` returns: spans that nobody else can make for you."""

    def __init__(self, spans: Spans, container_id: str) -> None:
        self._spans = spans
        self._container_id = container_id

    @contextmanager
    def process(self, delivery: Delivery) -> Generator[None]:
        """A span around what you do with a message that you have received: ``with tracing.process(delivery): ...``.

        It is a child of the span that is current, or else of the one that sent the message. What is sent
        inside belongs to it, and so does the settlement of the delivery. Of a stream that is yet coming in, nothing is
        known of who sent it.
        """
        message = message_of(delivery)
        place = place_of(cast("LinkOwner", delivery.link.owner))
        with self._spans.processing(message or Message(), place) as within:
            if isinstance(delivery, TracedDelivery):
                delivery.within = within
            yield

    @contextmanager
    def send(self, address: str, message: Any) -> Generator[Message]:
        """A span around a send that is none of a link, with the message to send in its stead.

        ``with tracing.send("orders", "tea") as message: await container.send("orders", message)``.
        """
        with self._spans.sending(message, SpanTarget(address, client_id=self._container_id)) as made:
            yield made

    async def around(self, node: Node, arrival: Arrival, work: Callable[[], Awaitable[Any]]) -> Any:
        """What ``Container.surround`` is given: each call of a handler is a span. Cancelled: so is the handler."""
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
    """Have the links of a connection, or the handlers of a container, make spans, and carry trace context in messages.

    How long each took is told beside that to the histograms ``messaging.client.operation.duration`` and
    ``messaging.process.duration``.

    Of a connection: each ``send``, ``transmit``, ``send_nowait`` and stream; each ``receive``, also by iteration; each
    ``accept``, ``reject``, ``release`` and ``modify``; on links opened from now on, by either end. Of a container: each call of
    the handler of a function or a consumer, its settlement and its reply, and what producers send; queues and topics
    pass context on untouched and make no spans. Called again, it replaces what it did before.

    Args:
        target: which.
        tracer_provider, meter_provider: the global ones if None.
        propagator: the global one if None: trace context and baggage of the W3C.
        system: ``messaging.system`` of each span and value: ``"servicebus"`` or ``"rabbitmq"``, where that is the peer.
        attributes: of each span and value besides, such as ``server.address``.
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
