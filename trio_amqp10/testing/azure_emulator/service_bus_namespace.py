"""ServiceBus: the emulator of a Service Bus namespace, in this process.

Knows the entities; knows nothing of tokens (the base class does), links or octets.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from trio_amqp10.broker.nodes.deadline_timer import DeadlineTimer
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .constants import DEAD_LETTER_QUEUE, DESCRIPTION, REASON, SUBSCRIPTIONS, TRANSFER
from .entity import Entity
from .entity_options import EntityOptions
from .entity_requests import EntityManagement
from .namespace import Namespace, NamespaceContainer
from .service_bus_connection import ServiceBusConnection
from .service_bus_topic import ServiceBusTopic
from .subscription_rules import SubscriptionRules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.broker.nodes.node import Node

    from .entity_requests import Managed
    from .stored_message import StoredMessage

_HOPS: Final = 4
"""The most entities that forward a message in a row."""


class ServiceBus(Namespace):
    """An emulator of Azure Service Bus: queues, topics and subscriptions.

    Clients use it like the development emulator: ``bus.container.serve("amqp://127.0.0.1:5672")``, with a connection
    string that contains ``UseDevelopmentEmulator=true``; or from trio, in memory, by ``bus.container.connect()``. An entity
    must be added before it is used; the case of addresses does not matter.

    Args:
        name: the container id.
        keys: by name, each a key and its rights, any of ``send``, ``receive``, ``create`` and ``transact``; the
            emulator's one key if None.
        wall_clock: a clock that returns seconds since 1970.

    Attributes:
        container: the container that serves it.
        entities: queues and subscriptions, by address; their ``len`` is the number of their messages.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        keys: Mapping[str, tuple[str, str]] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.entities: dict[str, Entity] = {}
        self._topics: dict[str, ServiceBusTopic] = {}
        container = NamespaceContainer(name, wall_clock, ServiceBusConnection)
        self._clock = container.clock
        self._post = container.post
        self._deadline_timer = DeadlineTimer(self._next_deadline, self._sweep, container.call_at)
        super().__init__(container, keys)

    # -- entities ---------------------------------------------------------------------------

    def add_queue(self, name: str, options: EntityOptions | None = None) -> None:
        """Add a queue, with its dead-letter queue ``<name>/$DeadLetterQueue``.

        Args:
            name: its address.
            options: its rules.

        Raises:
            LocalProtocolError: an entity of this name exists.
        """
        self._add(
            Entity(name, options or EntityOptions(), self._clock, self._deadline_timer, forward=self._forward)
        )

    def add_topic(self, name: str, options: EntityOptions | None = None) -> None:
        """Add a topic; a message that no subscription selects is discarded.

        Args:
            name: its address.
            options: its rules, of which only the time to live and those about duplicates count.

        Raises:
            LocalProtocolError: an entity of this name exists.
        """
        topic = ServiceBusTopic(name, self._clock, options or EntityOptions(), self._deadline_timer)
        self._publish(topic, topic)
        self._topics[name] = topic

    def add_subscription(
        self,
        topic: str,
        name: str,
        options: EntityOptions | None = None,
        *,
        wants: Callable[[Message], bool] | None = None,
        rules: Mapping[str, str] | None = None,
    ) -> None:
        """Add a subscription ``<topic>/Subscriptions/<name>``, with its dead-letter queue.

        Args:
            topic: the topic.
            name: the name among the subscriptions of the topic.
            options: its rules.
            wants (Callable[[trio_amqp10.Message], bool] | None): a filter in Python, the filter of the rule ``$Default``, which clients may
                delete. It is called with each message of the topic (body and properties only), and returns True if the subscription gets
                the message; None selects all messages.
            rules: SQL expressions by the names of their rules, instead of ``$Default``; they need the extra ``selector``.
                Clients may add other rules, and delete these.

        Raises:
            LocalProtocolError: the topic does not exist, or an entity of this name exists; an expression is not valid, or
                both ``wants`` and ``rules`` are given.
        """
        if wants is not None and rules is not None:
            raise LocalProtocolError(
                "wants and rules exclude each other: give either a function or SQL expressions"
            )
        known = self._topics.get(topic)
        if known is None:
            raise LocalProtocolError(f"no topic {topic!r}: add it first")
        entity = Entity(
            f"{topic}{SUBSCRIPTIONS}{name}",
            options or EntityOptions(),
            self._clock,
            self._deadline_timer,
            accepts_senders=False,
            rules=SubscriptionRules(self._clock, wants, rules),
            forward=self._forward,
        )
        self._add(entity)
        known.subscribe(entity)

    def _add(self, entity: Entity) -> None:
        self._publish(entity, entity)
        self.entities[entity.address] = entity
        if entity.graveyard is not None:
            self._add(entity.graveyard)
            if entity.options.forward_to or entity.options.forward_dead_lettered_messages_to:
                lasting = EntityOptions(lock_duration=entity.options.lock_duration)
                address = entity.address + TRANSFER
                self._add(
                    Entity(
                        address, lasting, self._clock, self._deadline_timer, dead=True, accepts_senders=False
                    )
                )

    def _forward(self, source: Entity, record: StoredMessage) -> None:
        """Move a message to the next entity, or to the transfer dead-letter queue."""
        name = source.address.removesuffix(DEAD_LETTER_QUEUE)
        target = self.container.nodes.get(self.container.resolve(source.options.forward_to or ""))
        moved = record.forwarded(name if name != source.address else None)
        try:
            if moved.hops > _HOPS:
                raise RefusedError(Condition.NOT_ALLOWED, f"a message is forwarded at most {_HOPS} times")
            if not isinstance(target, (Entity, ServiceBusTopic)) or not target.accepts_senders:
                raise RefusedError(Condition.NOT_FOUND, f"no queue or topic {source.options.forward_to!r}")
            target.check(moved)
        except RefusedError as refusal:
            record.change({REASON: str(refusal.condition), DESCRIPTION: refusal.description})
            self.entities[name + TRANSFER].receive(record)
        else:
            target.receive(moved)

    def _publish(self, node: Node, managed: Managed) -> None:
        self.container.add_node(node)
        self.container.add_node(EntityManagement(managed, self._post, self._deadline_timer.check))

    @property
    def _timed(self) -> list[ServiceBusTopic | Entity]:
        return [*self._topics.values(), *self.entities.values()]

    def _next_deadline(self) -> float:
        return min((node.next_deadline() for node in self._timed), default=math.inf)

    def _sweep(self) -> None:
        for node in self._timed:
            node.sweep()
