"""ServiceBus: the emulator of a Service Bus namespace, in this process.

Knows which entities there are, and whose tokens are good; knows nothing of links or octets.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from trio_amqp10.container.nodes.deadline_timer import DeadlineTimer
from trio_amqp10.errors import LocalProtocolError

from .constants import SUBSCRIPTIONS
from .entity import Entity
from .entity_options import EntityOptions
from .entity_requests import EntityManagement
from .namespace import Namespace, NamespaceContainer
from .service_bus_connection import ServiceBusConnection
from .service_bus_topic import ServiceBusTopic
from .subscription_rules import SubscriptionRules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.message import Message

    from .entity_requests import Managed

__all__ = ["ServiceBus"]


class ServiceBus(Namespace):
    """Queues, topics and subscriptions as Azure Service Bus has them.

    Clients reach it as a development emulator: ``bus.container.serve("amqp://127.0.0.1:5672")``, with a connection
    string that says ``UseDevelopmentEmulator=true``; or from trio, in memory, by ``bus.container.connect()``. Addresses
    that nobody has added are not found; their case does not matter.

    Args:
        name: the container id that peers see.
        keys: by name, each a key and its rights, any of ``send``, ``receive``, ``create`` and ``transact``; the
            emulator's one key if None.
        wall_clock: seconds since 1970.

    Attributes:
        container: what serves it.
        entities: queues and subscriptions, by address; their ``len`` is how many messages they hold.
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
        """A queue, with its dead-letter queue ``<name>/$DeadLetterQueue``.

        Args:
            name: its address.
            options: its rules.

        Raises:
            LocalProtocolError: there is an entity of this name.
        """
        self._add(Entity(name, options or EntityOptions(), self._clock, self._deadline_timer))

    def add_topic(self, name: str) -> None:
        """A topic; without subscriptions what is sent to it is gone.

        Args:
            name: its address.

        Raises:
            LocalProtocolError: there is an entity of this name.
        """
        topic = ServiceBusTopic(name, self._clock, self._deadline_timer)
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
        """A subscription, ``<topic>/Subscriptions/<name>``, with its dead-letter queue.

        Args:
            topic: of which topic.
            name: among those of the topic.
            options: its rules.
            wants (Callable[[trio_amqp10.Message], bool] | None): a filter in Python: it gets what is sent to the topic, and returns True for what
                the subscription is to have; all of it if None. Of a message it sees the body and the properties. It is the
                filter of the rule ``$Default``, which clients may delete.
            rules: expressions in SQL by the names of their rules, in place of ``$Default``; they need the extra ``selector``.
                Clients may add others, and delete these.

        Raises:
            LocalProtocolError: there is no such topic, or there is an entity of this name; an expression cannot be read, or
                there are both ``wants`` and ``rules``.
        """
        if wants is not None and rules is not None:
            raise LocalProtocolError(
                "either wants, a function, or rules, expressions in SQL: a subscription has one of them"
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
        )
        self._add(entity)
        known.subscribe(entity)

    def _add(self, entity: Entity) -> None:
        self._publish(entity, entity)
        self.entities[entity.address] = entity
        if entity.graveyard is not None:
            self._add(entity.graveyard)

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
