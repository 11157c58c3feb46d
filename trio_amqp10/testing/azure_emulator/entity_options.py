"""EntityOptions and HubOptions: the rules of entities and event hubs.

Knows the values; ``entity_messages`` and ``partition_log`` apply them.
"""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.number_fields import check_numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityOptions:
    """The rules of a queue or a subscription, with the names of Service Bus.

    Args:
        lock_duration: seconds that a lock on a message, or on a session, lasts.
        max_delivery_count: deliveries after which a message that was not completed becomes a dead letter.
        default_message_time_to_live: the most seconds that a message lives; None for the time that its sender sets.
        dead_lettering_on_message_expiration: whether an expired message becomes a dead letter; otherwise it is deleted.
        requires_session: whether each message has a session (its ``group-id``), and a receiver takes one session at a time.

        requires_duplicate_detection: whether a message whose message-id was sent before, within the time below, is accepted and
            dropped.
        duplicate_detection_history_time_window: the seconds for which a message-id is remembered.
        forward_to: the queue or topic to which each message is moved on; None for none. At most four such moves are possible in a
            row; what cannot be moved goes to ``<name>/$Transfer/$DeadLetterQueue``. No receiver can attach.
        forward_dead_lettered_messages_to: the same for the dead-letter queue.
        max_message_size_in_kilobytes: the largest message, or batch of messages, that senders may send; by default that of the
            Standard tier. Entities of the Premium tier have 1,024 to 102,400.

    For a topic, only the time to live, the two about duplicates and the size count.

    Raises:
        LocalProtocolError: a number is too small, or ``forward_to`` is given with ``requires_session``.
    """

    lock_duration: float = 60.0
    max_delivery_count: int = 10
    default_message_time_to_live: float | None = None
    dead_lettering_on_message_expiration: bool = False
    requires_session: bool = False
    requires_duplicate_detection: bool = False
    duplicate_detection_history_time_window: float = 600.0
    forward_to: str | None = None
    forward_dead_lettered_messages_to: str | None = None
    max_message_size_in_kilobytes: int = 256

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in (
            "lock_duration",
            "default_message_time_to_live",
            "duplicate_detection_history_time_window",
        ):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise LocalProtocolError(f"{name}={seconds}: expected more than 0 seconds")
        if self.max_delivery_count < 1:
            raise LocalProtocolError(f"max_delivery_count={self.max_delivery_count}: expected at least 1")
        if self.max_message_size_in_kilobytes < 1:
            raise LocalProtocolError(
                f"max_message_size_in_kilobytes={self.max_message_size_in_kilobytes}: expected at least 1"
            )
        if self.requires_session and self.forward_to is not None:
            raise LocalProtocolError(
                f"forward_to={self.forward_to!r}: an entity that requires sessions cannot forward"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class HubOptions:
    """The rules of an event hub.

    They have the names of Event Hubs, except ``max_events`` and ``max_message_size``.

    Args:
        partition_count: the number of partitions; their ids are ``"0"``, ``"1"`` and so on.
        consumer_groups: the consumer groups besides ``$Default``.
        message_retention: seconds that an event is kept; None for no limit.
        max_events: the most events that each partition keeps; above it the oldest are deleted.
        max_message_size: octets of the largest event, or batch of events, that producers may send; by default that of all tiers
            but Dedicated.

    Raises:
        LocalProtocolError: a number is too small, or a consumer group has no name.
    """

    partition_count: int = 2
    consumer_groups: tuple[str, ...] = ()
    message_retention: float | None = None
    max_events: int = 100_000
    max_message_size: int = 1_048_576

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("partition_count", "max_events", "max_message_size"):
            if getattr(self, name) < 1:
                raise LocalProtocolError(f"{name}={getattr(self, name)}: expected at least 1")
        if self.message_retention is not None and not self.message_retention > 0:
            raise LocalProtocolError(
                f"message_retention={self.message_retention}: expected more than 0 seconds"
            )
        if isinstance(self.consumer_groups, str) or not all(self.consumer_groups):
            raise LocalProtocolError(f"consumer_groups={self.consumer_groups!r}: expected a tuple of names")
