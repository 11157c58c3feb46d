"""Lockable messages of an entity, and the lock of one receiver, which is a lease.

Translates the outcome of a receiver; ``entity_messages`` applies it.
"""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.nodes.node import Lease

from .constants import DESCRIPTION, REASON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.core.timer_heap import Timer

    from .entity_messages import EntityMessages
    from .stored_message import StoredMessage

ACTIVE: Final = 0
DEFERRED: Final = 1
SCHEDULED: Final = 2


class LockableMessage:
    """A message in an entity.

    Attributes:
        record: the message.
        state: active, deferred or scheduled.
        lock: the lock on it, or None.
        expires: when it expires, by the clock; infinite if never.
        timer: the timer for the expiry, or for the scheduled time; None if there is none.
    """

    __slots__ = ("expires", "lock", "record", "state", "timer")

    def __init__(self, record: StoredMessage, state: int) -> None:
        self.record: Final = record
        self.state: int = state
        self.lock: MessageLock | None = None
        self.expires: float = math.inf
        self.timer: Timer[LockableMessage] | None = None

    @property
    def is_free(self) -> bool:
        """Whether a receiver can get the message now."""
        return self.state == ACTIVE and self.lock is None

    @property
    def size(self) -> int:
        """The octets of the message for a receiver, without the time of a lock."""
        return len(self.record.render(self.state, 0))

    def render(self, *, tagged: bool = True) -> bytes:
        """Return the octets of the message for a receiver.

        Args:
            tagged: whether the receiver gets the lock-token as the delivery-tag; otherwise it is a delivery-annotation.
        """
        lock = self.lock
        if lock is None:
            return self.record.render(self.state)
        return self.record.render(self.state, lock.wall, None if tagged else lock.token)


class MessageLock(Lease):
    """A lock on a message: the lease of a receiver, or the holder of the token.

    Attributes:
        token: the id of the lock; its octets in .NET's order are the delivery-tag.
        held: the message.
        expires_at: when the lock ends, by the clock; infinite if it ends with its session.
        wall: the same in milliseconds since 1970, or None.
    """

    __slots__ = ("_messages", "expires_at", "held", "token", "wall")

    def __init__(self, messages: EntityMessages, held: LockableMessage) -> None:
        self._messages = messages
        self.token: Final = uuid.uuid4()
        self.held: LockableMessage = held
        self.expires_at: float = math.inf
        self.wall: int | None = None

    # -- as a lease: each raises RefusedError if the lock has ended ---------------------------

    def accepted(self) -> None:
        self._messages.complete(self)

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        changes = dict(info or {})
        reason, why = changes.pop(REASON, condition), changes.pop(DESCRIPTION, description)
        self._messages.bury(self, reason, why, changes)

    def released(self) -> None:
        self._messages.abandon(self, failed=False)

    def modified(
        self,
        *,
        failed: bool,  # noqa: ARG002 - an abandoned delivery always counts as failed
        undeliverable_here: bool,
        annotations: Mapping[Any, Any] | None,
    ) -> None:
        if undeliverable_here:
            self._messages.defer(self, annotations)
        else:
            self._messages.abandon(self, annotations)

    def lost(self) -> None:
        """Keep the lock after the link has ended: the peer may still settle by its token."""
