"""Lockable messages of an entity, and the lock of one receiver, a lease.

Knows what each answer of a receiver means to the messages; does not know what these do.
"""

from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import Lease

from .constants import DESCRIPTION, REASON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.timer_heap import Timer

    from .entity_messages import EntityMessages
    from .stored_message import StoredMessage

__all__ = ["ACTIVE", "DEFERRED", "SCHEDULED", "LockableMessage", "MessageLock"]

ACTIVE: Final = 0
DEFERRED: Final = 1
SCHEDULED: Final = 2


class LockableMessage:
    """A message that is held here.

    Attributes:
        record: the message.
        state: one of the three.
        lock: who has it, or None.
        expires: when its time is over, on the clock; infinite for never.
        timer: calls for that, or for the time at which it is scheduled; None for neither.
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
        """Whether a receiver can have it now."""
        return self.state == ACTIVE and self.lock is None

    @property
    def size(self) -> int:
        """Octets of it for a receiver, at most."""
        return len(self.record.render(self.state, 0))

    def render(self) -> bytes:
        """The octets of it for a receiver."""
        return self.record.render(self.state, None if self.lock is None else self.lock.wall)


class MessageLock(Lease):
    """One receiver has this message for itself; a lease, and what its token stands for.

    Attributes:
        token: names it; its octets in the order of .NET are the delivery-tag.
        held: the message.
        expires_at: when it ends, on the clock; infinite where it ends with its session.
        wall: the same in milliseconds since 1970, or None.
    """

    __slots__ = ("_messages", "expires_at", "held", "token", "wall")

    def __init__(self, messages: EntityMessages, held: LockableMessage) -> None:
        self._messages = messages
        self.token: Final = uuid.uuid4()
        self.held: LockableMessage = held
        self.expires_at: float = math.inf
        self.wall: int | None = None

    # -- as a lease: each raises RefusedError where it is lost --------------------------------

    def accepted(self) -> None:
        self._messages.complete(self)

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        said = dict(info or {})
        reason, why = said.pop(REASON, condition), said.pop(DESCRIPTION, description)
        self._messages.bury(self, reason, why, said)

    def released(self) -> None:
        self._messages.abandon(self, failed=False)

    def modified(
        self,
        *,
        failed: bool,  # noqa: ARG002 - an abandoned delivery counts as failed, also where the client does not say so
        undeliverable_here: bool,
        annotations: Mapping[Any, Any] | None,
    ) -> None:
        if undeliverable_here:
            self._messages.defer(self, annotations)
        else:
            self._messages.abandon(self, annotations)

    def lost(self) -> None:
        """The link is gone. The lock stays: its holder may come back with the token."""
