"""EntityOptions: lock duration, delivery limit and time-to-live of an entity.

HubOptions: into how many parts an event hub falls, who reads it, how long it keeps.

Knows numbers; does not know who keeps to them (``entity_messages``, ``partition_log``).
"""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.errors import LocalProtocolError

__all__ = ["EntityOptions", "HubOptions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityOptions:
    """What a queue or a subscription is told when it is made; the names are those of Service Bus.

    Args:
        lock_duration: seconds that a receiver has a message, or a session, for itself.
        max_delivery_count: deliveries after which a message that was not completed is dead.
        default_message_time_to_live: seconds that a message lives at most; None for as long as it says itself.
        dead_lettering_on_message_expiration: whether what expires goes to the dead-letter queue; else it is gone.
        requires_session: whether messages have a session (their ``group-id``), and receivers take one at a time.

    Raises:
        LocalProtocolError: a number that is too small.
    """

    lock_duration: float = 60.0
    max_delivery_count: int = 10
    default_message_time_to_live: float | None = None
    dead_lettering_on_message_expiration: bool = False
    requires_session: bool = False

    def __post_init__(self) -> None:
        for name in ("lock_duration", "default_message_time_to_live"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise LocalProtocolError(f"{name}={seconds}: more than 0 seconds are possible")
        if self.max_delivery_count < 1:
            raise LocalProtocolError(f"max_delivery_count={self.max_delivery_count}: expected at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class HubOptions:
    """What an event hub is told when it is made; the names are those of Event Hubs, but for the last.

    Args:
        partition_count: how many partitions it has; their ids are ``"0"``, ``"1"`` and so on.
        consumer_groups: those that may receive from it, beside ``$Default``.
        message_retention: seconds that an event is kept; None for any time.
        max_events: how many events each partition keeps; with more, the oldest go.

    Raises:
        LocalProtocolError: a number that is too small, or a consumer group without a name.
    """

    partition_count: int = 2
    consumer_groups: tuple[str, ...] = ()
    message_retention: float | None = None
    max_events: int = 100_000

    def __post_init__(self) -> None:
        for name in ("partition_count", "max_events"):
            if getattr(self, name) < 1:
                raise LocalProtocolError(f"{name}={getattr(self, name)}: expected at least 1")
        if self.message_retention is not None and not self.message_retention > 0:
            raise LocalProtocolError(
                f"message_retention={self.message_retention}: more than 0 seconds are possible"
            )
        if isinstance(self.consumer_groups, str) or not all(self.consumer_groups):
            raise LocalProtocolError(f"consumer_groups={self.consumer_groups!r}: expected a tuple of names")
