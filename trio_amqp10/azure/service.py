"""ServiceBus: a namespace of Service Bus in this process, for the tests of programs that use it.

Knows which entities there are, and whose tokens are good; knows nothing of links or octets.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trio_amqp10.container.alarm import Alarm
from trio_amqp10.container.claims import Claim, SasKeys, TokenOffer
from trio_amqp10.container.service import Container
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.tokens import path_of

from .conversation import BusConversation
from .entity import Entity
from .options import EntityOptions
from .requests import EntityManagement
from .topic import BusTopic
from .words import MANAGEMENT, SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.access import Access
    from trio_amqp10.container.node import Node
    from trio_amqp10.message import Message
    from trio_amqp10.peer.connection import Connection

    from .requests import Managed

__all__ = ["KEY", "KEY_NAME", "ServiceBus"]

KEY_NAME: Final = "RootManageSharedAccessKey"
KEY: Final = "SAS_KEY_VALUE"
"""What connection strings of the development emulator have."""

_ROOT: Final = {KEY_NAME: (KEY, "send receive create transact")}


class ServiceBus:
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
        self._topics: dict[str, BusTopic] = {}
        self._keys = dict(_ROOT if keys is None else keys)
        self._verify_sas = SasKeys(self._keys)
        self._namespace = _Namespace(name, wall_clock)
        self._clock = self._namespace.clock
        self._alarm = Alarm(self._next_deadline, self._sweep, self._namespace.call_at)
        self.container: Container = self._namespace
        self.container.add_cbs(self._verify, azure=True)

    # -- entities ---------------------------------------------------------------------------

    def add_queue(self, name: str, options: EntityOptions | None = None) -> None:
        """A queue, with its dead-letter queue ``<name>/$DeadLetterQueue``.

        Args:
            name: its address.
            options: its rules.

        Raises:
            LocalProtocolError: there is an entity of this name.
        """
        self._add(Entity(name, options or EntityOptions(), self._clock, self._alarm))

    def add_topic(self, name: str) -> None:
        """A topic; without subscriptions what is sent to it is gone.

        Args:
            name: its address.

        Raises:
            LocalProtocolError: there is an entity of this name.
        """
        topic = BusTopic(name, self._clock, self._alarm)
        self._publish(topic, topic)
        self._topics[name] = topic

    def add_subscription(
        self,
        topic: str,
        name: str,
        options: EntityOptions | None = None,
        *,
        wants: Callable[[Message], bool] | None = None,
    ) -> None:
        """A subscription, ``<topic>/Subscriptions/<name>``, with its dead-letter queue.

        Args:
            topic: of which topic.
            name: among those of the topic.
            options: its rules.
            wants: a filter, in place of rules in SQL: it gets what is sent to the topic, and returns True for what
                the subscription is to have; all of it if None. Of a message it sees the body and the properties.

        Raises:
            LocalProtocolError: there is no such topic, or there is an entity of this name.
        """
        known = self._topics.get(topic)
        if known is None:
            raise LocalProtocolError(f"no topic {topic!r}: add it first")
        entity = Entity(
            f"{topic}{SUBSCRIPTIONS}{name}",
            options or EntityOptions(),
            self._clock,
            self._alarm,
            takes=False,
        )
        self._add(entity)
        known.subscribe(entity, wants)

    def _add(self, entity: Entity) -> None:
        self._publish(entity, entity)
        self.entities[entity.address] = entity
        if entity.graveyard is not None:
            self._add(entity.graveyard)

    def _publish(self, node: Node, managed: Managed) -> None:
        self.container.add_node(node)
        self.container.add_node(EntityManagement(managed, self._namespace.post, self._alarm.check))

    @property
    def _timed(self) -> list[BusTopic | Entity]:
        return [*self._topics.values(), *self.entities.values()]

    def _next_deadline(self) -> float:
        return min((node.next_deadline() for node in self._timed), default=math.inf)

    def _sweep(self) -> None:
        for node in self._timed:
            node.sweep()

    # -- clients ----------------------------------------------------------------------------

    def connection_string(self, port: int, key_name: str = KEY_NAME) -> str:
        """What clients of Microsoft's are given to connect to it, served at this port of this machine.

        Args:
            port: where it is served, without TLS.
            key_name: which of the keys to use.

        Raises:
            LocalProtocolError: there is no such key.
        """
        if key_name not in self._keys:
            raise LocalProtocolError(f"no key {key_name!r}: one of {', '.join(self._keys)} is possible")
        return (
            f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName={key_name};"
            f"SharedAccessKey={self._keys[key_name][0]};UseDevelopmentEmulator=true;"
        )

    def _verify(self, offer: TokenOffer) -> Claim:
        claim = self._verify_sas(offer)
        return replace(claim, audience=self.container.resolve(claim.audience))


class _Namespace(Container):
    """The container, whose addresses may be written in any case."""

    def __init__(self, name: str | None, wall_clock: Callable[[], float]) -> None:
        super().__init__(name, strict=True, wall_clock=wall_clock, authorise=_permit)
        self.clock = self._clock
        self.post = self._post
        self.call_at = self._timers.call_at
        self._spellings: dict[str, str] = {}

    def add_node(self, node: Node) -> None:
        written = self._spellings.setdefault(node.address.casefold(), node.address)
        if written != node.address:
            raise LocalProtocolError(f"{self.nodes[written]!r} has that address already, in another case")
        super().add_node(node)

    def resolve(self, address: str) -> str:
        path = path_of(address) if "://" in address else address
        return self._spellings.get(path.casefold(), path or address)

    def _converse(self, connection: Connection) -> BusConversation:
        return BusConversation(self, connection)


def _permit(access: Access) -> bool:
    """What claims permit; and to ask something of an entity to those who may do anything there."""
    if access.action == "open" or access.claimed:
        return True
    address = access.address
    return (
        address is not None
        and address.endswith(MANAGEMENT)
        and any(claim.permits(action, address) for claim in access.claims for action in ("send", "receive"))
    )
