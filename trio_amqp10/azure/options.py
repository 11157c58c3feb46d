"""EntityOptions: how long a queue or subscription locks, how often it delivers, how long it keeps.

Knows numbers; does not know how an entity keeps to them (``ledger``).
"""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.errors import LocalProtocolError

__all__ = ["EntityOptions"]


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
            raise LocalProtocolError(f"max_delivery_count={self.max_delivery_count}: at least 1 is possible")
