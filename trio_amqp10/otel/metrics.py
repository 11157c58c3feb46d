"""Metrics of connections and containers, read from their statistics.

If the conventions for messaging (1.44) have a name, it is used; the other names begin with ``amqp10.``. No work is done for
them per message: see ``amqp10.peer.statistics``. ``spans`` records the durations of operations.
"""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Observation

from trio_amqp10.amqp10.peer.statistics import TOTALS
from trio_amqp10.amqp10.server.connection import Amqp10Connection
from trio_amqp10.container.container import Container

from .collection import Collection
from .container_figures import ContainerFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import trio_amqp10


_SCHEMA: Final = "https://opentelemetry.io/schemas/1.44.0"
_NAME: Final = "trio_amqp10"
_ATTEMPTS: Final = 10

_IN: Final = {"network.io.direction": "receive"}
_OUT: Final = {"network.io.direction": "transmit"}
_SENDER: Final = {"amqp10.link.role": "sender"}
_RECEIVER: Final = {"amqp10.link.role": "receiver"}

_Rows = tuple[tuple[str, dict[str, str]], ...]

_COUNTERS: Final[tuple[tuple[str, str, str, _Rows], ...]] = (
    (
        "messaging.client.sent.messages",
        "{message}",
        "Messages sent, including those that were sent again.",
        (("messages_out", {"messaging.operation.name": "send"}),),
    ),
    (
        "messaging.client.consumed.messages",
        "{message}",
        "Messages received.",
        (("messages_in", {"messaging.operation.name": "receive"}),),
    ),
    ("amqp10.io", "By", "Octets, above TLS and WebSockets.", (("octets_in", _IN), ("octets_out", _OUT))),
    ("amqp10.frames", "{frame}", "Frames of AMQP.", (("frames_in", _IN), ("frames_out", _OUT))),
    (
        "amqp10.container.refused",
        "{message}",
        "Messages that containers refused because they hold too much.",
        (("refused_for_memory", {}),),
    ),
    (
        "amqp10.transports",
        "{transport}",
        "Transports so far: one for each connection, and one for each time that it was restored.",
        (("transports", {}),),
    ),
)

_GAUGES: Final[tuple[tuple[str, str, str, _Rows], ...]] = (
    ("amqp10.connections", "{connection}", "Connections that are open.", (("connections", {}),)),
    ("amqp10.sessions", "{session}", "Sessions.", (("sessions", {}),)),
    ("amqp10.links", "{link}", "Links, by our role.", (("senders", _SENDER), ("receivers", _RECEIVER))),
    (
        "amqp10.link.credit",
        "{message}",
        "Messages that may be sent on all links together.",
        (("credit_out", _SENDER), ("credit_in", _RECEIVER)),
    ),
    (
        "amqp10.link.unsettled",
        "{message}",
        "Deliveries that are not settled.",
        (("unsettled_out", _SENDER), ("unsettled_in", _RECEIVER)),
    ),
    (
        "amqp10.link.buffered",
        "{message}",
        "Deliveries that wait to be received by the program.",
        (("buffered", _RECEIVER),),
    ),
    ("amqp10.link.blocked", "{task}", "Tasks that wait to send.", (("blocked", _SENDER),)),
    ("amqp10.io.pending", "By", "Octets that wait to be written.", (("waiting", {}),)),
    ("amqp10.container.held", "By", "Octets that the messages of containers take.", (("held_octets", {}),)),
    (
        "amqp10.container.throttled",
        "{container}",
        "Containers that accept no more messages because they hold too much.",
        (("throttled", {}),),
    ),
)


class Metrics:
    """Instruments that sum the figures of all watched connections and containers.

    A watched container also has instruments for its queues, messages and store: see ``container.management.figures``.

    Args:
        meter_provider: the global one if None.
        system: ``messaging.system``: ``"servicebus"`` or ``"rabbitmq"``, if the peer is one of these.
        attributes: further attributes of each value, such as ``server.address``.
        queues: patterns of the queues of containers that have values of their own, e.g. ``["orders*"]``; at most 500 of each
            container do. All other queues are added up.

    Make one for each provider: a second one would make the same instruments again.
    """

    def __init__(
        self,
        *,
        meter_provider: metrics.MeterProvider | None = None,
        system: str = "amqp",
        attributes: Mapping[str, Any] | None = None,
        queues: Sequence[str] = (),
    ) -> None:
        self._attributes = {"messaging.system": system, **(attributes or {})}
        self._watched: dict[trio_amqp10.Connection | Container, None] = {}
        self._past: Counter[str] = Counter()
        self._sums = Collection(self._sum_up)
        self._lock = Lock()  # the exporter collects in another thread
        meter = metrics.get_meter(_NAME, "", meter_provider, _SCHEMA)
        for name, unit, description, rows in _COUNTERS:
            meter.create_observable_counter(name, [self._reading(name, rows)], unit, description)
        for name, unit, description, rows in _GAUGES:
            meter.create_observable_up_down_counter(name, [self._reading(name, rows)], unit, description)
        self._figures = ContainerFigures(meter, self._attributes, queues)

    def watch(self, target: trio_amqp10.Connection | Container) -> None:
        """Include a connection, or all accepted connections of a container, in the sums.

        A closed connection is removed automatically, and its totals are kept. A container stays until ``forget``.
        """
        with self._lock:
            self._let_go()
            self._watched[target] = None
            if isinstance(target, Container):
                self._figures.watch(target)

    def forget(self, target: trio_amqp10.Connection | Container) -> None:
        """Stop watching; the totals are kept. Do nothing if ``target`` is not watched."""
        with self._lock:
            self._leave(target)

    def _leave(self, target: trio_amqp10.Connection | Container) -> None:
        if target in self._watched:
            del self._watched[target]
            if isinstance(target, Container):
                self._figures.forget(target)
            self._past += Counter({name: _figures(target)[name] for name in (*TOTALS, "refused_for_memory")})

    def _let_go(self) -> None:
        for target in list(self._watched):
            if not isinstance(target, Container) and target.closed and target.pump.finished.is_set():
                self._leave(target)

    def _reading(self, name: str, rows: _Rows) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> list[Observation]:
            with self._lock:
                sums = self._sums.reading_for(name)
            return [Observation(sums[figure], self._attributes | labels) for figure, labels in rows]

        return read

    def _sum_up(self) -> Counter[str]:
        self._let_go()
        sums = Counter(self._past)
        for target in self._watched:
            sums.update(_figures(target))
        return sums


def _figures(target: trio_amqp10.Connection | Container) -> Counter[str]:
    """Return all figures of a target.

    Another thread may change the target meanwhile; then try again.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return _figures_now(target)
        except RuntimeError:  # a dict changed its size during iteration
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("not reached")  # pragma: no cover


def _figures_now(target: trio_amqp10.Connection | Container) -> Counter[str]:
    if not isinstance(target, Container):
        return _of_connection(target)
    sums = Counter(target.past)
    sums["held_octets"] += target.watermark.octets
    sums["refused_for_memory"] += target.watermark.refused
    sums["throttled"] += target.watermark.high
    for peer in target.connected:
        if isinstance(peer, Amqp10Connection):
            sums.update(_of_connection(peer.connection))
        else:
            sums.update(_integers(peer.statistics()))
            sums["connections"] += not peer.closed
    return sums


def _of_connection(connection: trio_amqp10.Connection) -> Counter[str]:
    found = _integers(connection.statistics())
    found["connections"] = not connection.is_gone
    for session in connection.sessions:
        figures = session.statistics()
        found["unsettled_in"] += figures["unsettled_in"]
        found["unsettled_out"] += figures["unsettled_out"]
    for link in connection.links:
        of_link = link.statistics()
        if of_link["role"] == "sender":
            found["credit_out"] += of_link["credit"]
            found["blocked"] += of_link["waiting"]
        else:
            found["credit_in"] += of_link["credit"]
            found["buffered"] += of_link["buffered"]
    return found


def _integers(statistics: Mapping[str, Any]) -> Counter[str]:
    return Counter({name: value for name, value in statistics.items() if isinstance(value, int)})
