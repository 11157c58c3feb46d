"""The figures of a container for collectors of metrics, declared once.

Each has a name for Prometheus, and one for OpenTelemetry; each is read from a ``Survey``. A name begins with ``rabbitmq_`` if
the Prometheus plugin of RabbitMQ 4 has a metric of the same meaning, otherwise with ``amqp10_``. A figure of queues has one
value for each queue with a status of its own, with the label ``queue``, and one without that label for all others together, so
that the sum is right. Totals of queues exist for the former alone: the others come and go, and their sum would shrink.

Knows surveys; knows neither Prometheus nor OpenTelemetry.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from trio_amqp10.core.peer_rules import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trio_amqp10.broker.nodes.content import Death

    from .status import StoreStatus, Survey

Reading: TypeAlias = "tuple[Mapping[str, str], float]"
"""A value, and its labels by name."""

PROTOCOLS: Final[Mapping[str, str]] = {
    "AMQP 1.0": "amqp10",
    "AMQP 0-9-1": "amqp091",
    "AMQ Protocol 10.3": "amqp_10_3",
    "AMQP/Fast": "amqp_fast",
}
"""The label of each protocol; the first two are those of RabbitMQ."""

RULES: Final = tuple(setting.name for setting in fields(Strict))
"""The rules whose breach may be tolerated."""

_NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure of a container.

    Attributes:
        prometheus: its name there, without ``_total``; None if it has another form there.
        opentelemetry: its name there; None if it has another form there.
        kind: ``"counter"`` only grows, ``"gauge"`` does not.
        unit: the unit, as OpenTelemetry writes it.
        description: one sentence.
        labels: the names of its labels.
        read: returns its values in a survey.
    """

    prometheus: str | None
    opentelemetry: str | None
    kind: Literal["counter", "gauge"]
    unit: str
    description: str
    labels: tuple[str, ...] = ()
    read: Callable[[Survey], Iterable[Reading]]


# -- how they are read ----------------------------------------------------------------------


def _queues(name: str) -> Callable[[Survey], Iterator[Reading]]:
    def read(survey: Survey) -> Iterator[Reading]:
        for queue in survey.queues:
            yield {"queue": queue.address}, getattr(queue, name) or 0
        yield _NONE, getattr(survey.rest, name)

    return read


def _named(name: str) -> Callable[[Survey], Iterator[Reading]]:
    def read(survey: Survey) -> Iterator[Reading]:
        for queue in survey.queues:
            yield {"queue": queue.address}, getattr(queue, name)

    return read


def _deaths_of_queues(survey: Survey) -> Iterator[Reading]:
    for queue in survey.queues:
        for reason, count in queue.dead_letters.items():
            if count:  # Most queues have no dead letters, and their zeros would be a third of all values.
                yield {"queue": queue.address, "reason": reason}, count


def _deaths(survey: Survey) -> Iterator[Reading]:
    for reason, count in survey.messages.dead_letters.items():
        yield {"reason": reason}, count


def _deaths_by(reason: Death) -> Callable[[Survey], list[Reading]]:
    return lambda survey: [(_NONE, survey.messages.dead_letters[reason])]


def _messages(name: str) -> Callable[[Survey], list[Reading]]:
    return lambda survey: [(_NONE, getattr(survey.messages, name))]


def _container(name: str) -> Callable[[Survey], list[Reading]]:
    def read(survey: Survey) -> list[Reading]:
        value = getattr(survey.container, name)
        return [] if value is None else [(_NONE, value)]

    return read


def _store(name: str) -> Callable[[Survey], list[Reading]]:
    def read(survey: Survey) -> list[Reading]:
        store: StoreStatus | None = survey.container.store
        value = None if store is None else getattr(store, name)
        return [] if value is None else [(_NONE, value)]

    return read


def _total(name: str) -> Callable[[Survey], list[Reading]]:
    return lambda survey: [(_NONE, survey.container.totals.get(name, 0))]


def _survey(name: str) -> Callable[[Survey], list[Reading]]:
    return lambda survey: [(_NONE, getattr(survey, name))]


def _protocols(name: str) -> Callable[[Survey], Iterator[Reading]]:
    def read(survey: Survey) -> Iterator[Reading]:
        for protocol, totals in survey.protocols.items():
            yield {"protocol": PROTOCOLS.get(protocol, protocol)}, getattr(totals, name)

    return read


def _links(survey: Survey) -> Iterator[Reading]:
    for protocol, totals in survey.protocols.items():
        label = PROTOCOLS.get(protocol, protocol)
        yield {"protocol": label, "role": "sender"}, totals.senders
        yield {"protocol": label, "role": "receiver"}, totals.receivers


def _closed(survey: Survey) -> list[Reading]:
    return [(_NONE, survey.entered - sum(each.connections for each in survey.protocols.values()))]


def _all_queues(survey: Survey) -> list[Reading]:
    return [(_NONE, len(survey.queues) + survey.rest.queues)]


def _all_consumers(survey: Survey) -> list[Reading]:
    return [(_NONE, sum(queue.consumers for queue in survey.queues) + survey.rest.consumers)]


def _added_up(survey: Survey) -> list[Reading]:
    return [(_NONE, survey.rest.queues)]


def _tolerated(survey: Survey) -> Iterator[Reading]:
    totals = survey.container.totals
    for rule in RULES:
        yield {"rule": rule}, totals.get(f"tolerated_{rule}", 0)


def _refused(survey: Survey) -> Iterator[Reading]:
    for quota, count in survey.container.refused.items():
        yield {"quota": quota}, count


def _figure(
    kind: Literal["counter", "gauge"],
    prometheus: str | None,
    opentelemetry: str | None,
    unit: str,
    description: str,
    read: Callable[[Survey], Iterable[Reading]],
    *labels: str,
) -> Figure:
    return Figure(
        prometheus=prometheus,
        opentelemetry=opentelemetry,
        kind=kind,
        unit=unit,
        description=description,
        labels=labels,
        read=read,
    )


_gauge: Final = partial(_figure, "gauge")
_counter: Final = partial(_figure, "counter")


# -- the figures ----------------------------------------------------------------------------

_M: Final = "{message}"

_OF_QUEUES: Final = (
    _gauge(
        "rabbitmq_queue_messages",
        "amqp10.queue.messages",
        _M,
        "Messages that queues hold: ready, unacked and delayed ones, and dead letters on their way.",
        _queues("depth"),
        "queue",
    ),
    _gauge(
        "rabbitmq_queue_messages_bytes",
        "amqp10.queue.size",
        "By",
        "Octets of the messages that queues hold.",
        _queues("octets"),
        "queue",
    ),
    _gauge(
        "rabbitmq_queue_messages_ready",
        "amqp10.queue.ready",
        _M,
        "Messages that consumers can get now.",
        _queues("ready"),
        "queue",
    ),
    _gauge(
        "rabbitmq_queue_messages_ready_bytes",
        None,
        "By",
        "Octets of the messages that consumers can get now.",
        _queues("ready_octets"),
        "queue",
    ),
    _gauge(
        "rabbitmq_queue_messages_unacked",
        "amqp10.queue.unacked",
        _M,
        "Messages that consumers have, without an outcome.",
        _queues("unacked"),
        "queue",
    ),
    _gauge(
        "amqp10_queue_messages_delayed",
        "amqp10.queue.delayed",
        _M,
        "Messages that wait for their next delivery.",
        _queues("delayed"),
        "queue",
    ),
    _gauge(
        "rabbitmq_queue_consumers",
        "amqp10.queue.consumers",
        "{consumer}",
        "Links and consumers that take messages.",
        _queues("consumers"),
        "queue",
    ),
    _gauge(
        "amqp10_queue_oldest_message_age_seconds",
        "amqp10.queue.oldest_message.age",
        "s",
        "Age of the oldest ready message; 0 if none is ready.",
        _queues("oldest"),
        "queue",
    ),
    _counter(
        "rabbitmq_queue_messages_published",
        "amqp10.queue.arrived",
        _M,
        "Messages that a queue took in.",
        _named("arrived"),
        "queue",
    ),
    _counter(
        "amqp10_queue_messages_delivered",
        "amqp10.queue.delivered",
        _M,
        "Deliveries of a queue to consumers, repeated ones included.",
        _named("delivered"),
        "queue",
    ),
    _counter(
        "rabbitmq_queue_messages_acked",
        "amqp10.queue.acknowledged",
        _M,
        "Messages of a queue that consumers accepted.",
        _named("acknowledged"),
        "queue",
    ),
    _counter(
        "rabbitmq_queue_messages_redelivered",
        "amqp10.queue.redelivered",
        _M,
        "Deliveries of a queue that were not the first of their message.",
        _named("redelivered"),
        "queue",
    ),
    _counter(
        "amqp10_queue_messages_refused",
        "amqp10.queue.refused",
        _M,
        "Messages that a queue did not take.",
        _named("refused"),
        "queue",
    ),
    _counter(
        "amqp10_queue_dead_letters",
        "amqp10.queue.dead_letters",
        _M,
        "Messages that died in a queue, by reason.",
        _deaths_of_queues,
        "queue",
        "reason",
    ),
)

_OF_MESSAGES: Final = (
    _counter(
        "rabbitmq_global_messages_received",
        None,
        _M,
        "Messages that peers sent.",
        _total("messages_in"),
    ),
    _counter(
        "rabbitmq_global_messages_routed",
        "amqp10.messages.arrived",
        _M,
        "Messages that queues and subscriptions took in.",
        _messages("arrived"),
    ),
    _counter(
        "rabbitmq_global_messages_delivered",
        "amqp10.messages.delivered",
        _M,
        "Deliveries to consumers.",
        _messages("delivered"),
    ),
    _counter(
        "rabbitmq_global_messages_acknowledged",
        "amqp10.messages.acknowledged",
        _M,
        "Messages that consumers accepted.",
        _messages("acknowledged"),
    ),
    _counter(
        "rabbitmq_global_messages_redelivered",
        "amqp10.messages.redelivered",
        _M,
        "Deliveries that were not the first of their message.",
        _messages("redelivered"),
    ),
    _counter(
        "rabbitmq_global_messages_dead_lettered_rejected",
        None,
        _M,
        "Messages that consumers rejected.",
        _deaths_by("rejected"),
    ),
    _counter(
        "rabbitmq_global_messages_dead_lettered_expired",
        None,
        _M,
        "Messages that expired.",
        _deaths_by("expired"),
    ),
    _counter(
        "rabbitmq_global_messages_dead_lettered_delivery_limit",
        None,
        _M,
        "Messages that were delivered too often.",
        _deaths_by("delivery-limit"),
    ),
    _counter(
        "rabbitmq_global_messages_dead_lettered_maxlen",
        None,
        _M,
        "Messages that died because their queue was full.",
        _deaths_by("overflow"),
    ),
    _counter(
        "amqp10_messages_dead_lettered_deleted",
        None,
        _M,
        "Messages of deleted queues that became dead letters.",
        _deaths_by("deleted"),
    ),
    _counter(None, "amqp10.dead_letters", _M, "Messages that died, by reason.", _deaths, "reason"),
    _counter(
        "amqp10_messages_refused",
        "amqp10.messages.refused",
        _M,
        "Messages that queues and subscriptions did not take.",
        _messages("refused"),
    ),
    _counter(
        "amqp10_messages_unroutable",
        "amqp10.messages.unroutable",
        _M,
        "Messages that reached no queue from an exchange.",
        _messages("unroutable"),
    ),
)

_OF_NODES: Final = (
    _gauge("rabbitmq_queues", "amqp10.queues", "{queue}", "Queues.", _all_queues),
    _gauge(
        "amqp10_queues_added_up",
        None,
        "{queue}",
        "Queues whose figures are added up, without a label for each.",
        _added_up,
    ),
    _gauge(
        "rabbitmq_consumers",
        None,
        "{consumer}",
        "Links and consumers that take messages of queues.",
        _all_consumers,
    ),
    _gauge("amqp10_topics", "amqp10.topics", "{topic}", "Topics.", _survey("topics")),
    _gauge(
        "amqp10_subscriptions",
        "amqp10.subscriptions",
        "{subscription}",
        "Subscriptions to topics.",
        _survey("subscriptions"),
    ),
    _gauge(
        "amqp10_subscription_messages",
        "amqp10.subscription.messages",
        _M,
        "Messages that subscriptions hold.",
        _survey("backlog"),
    ),
    _gauge("amqp10_exchanges", "amqp10.exchanges", "{exchange}", "Exchanges.", _survey("exchanges")),
)

_OF_CONNECTIONS: Final = (
    _gauge(
        "rabbitmq_connections",
        "amqp10.protocol.connections",
        "{connection}",
        "Open connections, by protocol.",
        _protocols("connections"),
        "protocol",
    ),
    _gauge(
        "rabbitmq_channels",
        "amqp10.protocol.channels",
        "{channel}",
        "Sessions or channels, by protocol.",
        _protocols("channels"),
        "protocol",
    ),
    _gauge(
        "amqp10_links",
        "amqp10.protocol.links",
        "{link}",
        "Links, consumers and publishers, by protocol and by the role of this side.",
        _links,
        "protocol",
        "role",
    ),
    _gauge(
        "amqp10_connection_pending_bytes",
        None,
        "By",
        "Octets that wait to be written to peers, by protocol.",
        _protocols("waiting"),
        "protocol",
    ),
    _gauge(
        "amqp10_connection_unsettled",
        None,
        _M,
        "Deliveries to peers without an outcome, by protocol.",
        _protocols("unsettled"),
        "protocol",
    ),
    _counter(
        "rabbitmq_connections_opened",
        "amqp10.connections.opened",
        "{connection}",
        "Connections so far.",
        _survey("entered"),
    ),
    _counter(
        "rabbitmq_connections_closed",
        None,
        "{connection}",
        "Connections that are over.",
        _closed,
    ),
    _counter(
        "rabbitmq_connection_incoming_bytes",
        None,
        "By",
        "Octets read from peers, above TLS and WebSockets.",
        _total("octets_in"),
    ),
    _counter(
        "rabbitmq_connection_outgoing_bytes",
        None,
        "By",
        "Octets written to peers, above TLS and WebSockets.",
        _total("octets_out"),
    ),
    _counter(
        "amqp10_quota_refusals",
        "amqp10.quota.refusals",
        "{refusal}",
        "Refusals because of each quota.",
        _refused,
        "quota",
    ),
    _counter(
        "amqp10_tolerated_breaches",
        "amqp10.tolerated_breaches",
        "{breach}",
        "Breaches by peers of a rule of ``Strict`` that is not enforced, by rule.",
        _tolerated,
        "rule",
    ),
)

_OF_MEMORY_AND_STORE: Final = (
    _gauge(
        "amqp10_memory_messages_bytes",
        None,
        "By",
        "Octets that messages take in memory, those in the store included.",
        _container("octets"),
    ),
    _gauge(
        "amqp10_memory_limit_bytes",
        "amqp10.container.memory_limit",
        "By",
        "Octets of messages above which peers must wait.",
        _container("memory_limit"),
    ),
    _gauge(
        "amqp10_memory_throttled",
        None,
        "1",
        "1 while peers must wait because of the memory limit, otherwise 0.",
        _container("throttled"),
    ),
    _counter(
        "amqp10_memory_refused_messages",
        None,
        _M,
        "Messages that were refused because of the memory limit.",
        _container("refused_for_memory"),
    ),
    _gauge("amqp10_handlers", "amqp10.handlers", "{handler}", "Handlers at work.", _container("working")),
    _gauge(
        "amqp10_store_bytes",
        "amqp10.store.size",
        "By",
        "Octets that the store takes on disk.",
        _store("octets"),
    ),
    _counter(
        "amqp10_store_commits",
        "amqp10.store.commits",
        "{commit}",
        "Commits that succeeded.",
        _store("commits"),
    ),
    _counter(
        "amqp10_store_commit_seconds",
        "amqp10.store.commit.time",
        "s",
        "How long the successful commits took, together.",
        _store("commit_seconds"),
    ),
    _gauge(
        "amqp10_store_last_commit_seconds",
        "amqp10.store.last_commit.time",
        "s",
        "How long the last commit took.",
        _store("last_commit_seconds"),
    ),
    _counter(
        "amqp10_store_commit_failures",
        "amqp10.store.commit_failures",
        "{commit}",
        "Commits that failed.",
        _store("failures"),
    ),
    _gauge(
        "amqp10_store_rows_set_aside",
        "amqp10.store.rows_set_aside",
        "{row}",
        "Rows of the store that could not be read.",
        _store("rows_set_aside"),
    ),
)

FIGURES: Final = _OF_QUEUES + _OF_MESSAGES + _OF_NODES + _OF_CONNECTIONS + _OF_MEMORY_AND_STORE
"""All figures of a container."""
