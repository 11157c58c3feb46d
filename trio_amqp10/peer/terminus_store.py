"""What a program keeps of a link between its attachments, and where (2.6.5, 3.5).

A link remembers when somebody can come back to it: it was opened with a ``store``, or asks the peer
by an expiry policy to remember too. Stores keep termini by who the two peers are and what the link
is called. Knows no engine state but the terminus itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from trio_amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus, Terminus
from trio_amqp10.spec.messaging import ExpiryPolicy, Source, Target, TerminusDurability
from trio_amqp10.spec.transport import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.errors import AmqpError
    from trio_amqp10.spec.transport import Attach

    from .link_options import LinkOptions

__all__ = [
    "NOTHING_KEPT",
    "LinkKey",
    "MemoryTerminusStore",
    "ResumableLinkState",
    "Retention",
    "TerminusStore",
    "new_terminus",
]


class LinkKey(NamedTuple):
    """Which link, and which end of it: names are unique between two containers, in one direction (2.6.1)."""

    container_id: str
    remote_container_id: str
    name: str
    role: bool


class TerminusStore(ABC):
    """Where termini are kept; one store may keep those of many links and connections."""

    @abstractmethod
    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """The terminus of this key, or the one that ``make`` makes, which is kept from now on.

        Cancelled: nothing has changed.
        """

    @abstractmethod
    async def discard(self, key: LinkKey) -> None:
        """The link was closed for good: forget it. Nothing happens if it is not known.

        Cancelled: it is forgotten, or not; call it again.
        """

    async def flushed(self) -> None:
        """Wait until all that was done to termini so far is kept: at once, where a store does not write it anywhere.

        What is done meanwhile, for other links, is not waited for.

        Cancelled: it is kept all the same.
        """
        await trio.lowlevel.checkpoint()


class MemoryTerminusStore(TerminusStore):
    """Keeps termini for as long as the process lives."""

    def __init__(self) -> None:
        self._termini: dict[LinkKey, Terminus] = {}

    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """As ``TerminusStore.open``. Cancelled: nothing has changed."""
        await trio.lowlevel.checkpoint()
        terminus = self._termini.get(key)
        if terminus is None:
            terminus = self._termini[key] = make()
        return terminus

    async def discard(self, key: LinkKey) -> None:
        """As ``TerminusStore.discard``. Cancelled: nothing has changed."""
        await trio.lowlevel.checkpoint()
        self._termini.pop(key, None)

    def __len__(self) -> int:
        return len(self._termini)


class Retention(NamedTuple):
    """What both ends are asked to keep of a link, and for how long (3.5.4 to 3.5.6)."""

    durable: TerminusDurability = TerminusDurability.NONE
    expiry_policy: str = ExpiryPolicy.SESSION_END
    timeout: int = 0

    @property
    def survives(self) -> bool:
        """Whether anything is left to come back to after a detach."""
        return self.timeout > 0 or self.expiry_policy in (ExpiryPolicy.NEVER, ExpiryPolicy.CONNECTION_CLOSE)

    def source(self, address: str | None) -> Source:
        return Source(
            address=address, durable=self.durable, expiry_policy=self.expiry_policy, timeout=self.timeout
        )

    def target(self, address: str | None) -> Target:
        return Target(
            address=address, durable=self.durable, expiry_policy=self.expiry_policy, timeout=self.timeout
        )


NOTHING_KEPT: Final = Retention()


class ResumableLinkState:
    """A link's terminus, and what is needed to attach again with it.

    Attributes:
        terminus: what is unsettled.
        options: what the attach says.
        remote: what the peer's attach said before.
        apart: whether that is to be on a session of its own, as it may have ended the one that it was on.
        damage: why the peer ended it, or its session, last.
        failure: why attaching it again was given up.
        on_lost: called when it, or the connection, was lost.
        on_restored: called when it was attached again.
        left: unsettled deliveries when it was attached last because a map was incomplete; None if it was not.
    """

    __slots__ = (
        "_key",
        "_store",
        "apart",
        "damage",
        "failure",
        "left",
        "on_lost",
        "on_restored",
        "options",
        "remote",
        "terminus",
    )

    def __init__(self, terminus: Any, options: LinkOptions, store: TerminusStore, key: LinkKey) -> None:
        self.terminus: Any = terminus
        self.options: LinkOptions = options
        self.left: int | None = None
        self.remote: Attach | None = None
        self.apart: bool = False
        self.damage: AmqpError | None = None
        self.failure: AmqpError | None = None
        self.on_lost: Callable[[], object] | None = None
        self.on_restored: Callable[[], object] | None = None
        self._store = store
        self._key = key

    @property
    def is_written(self) -> bool:
        """Whether it is to survive the process."""
        return self.terminus is not None and self.terminus.unsettled_store is not None

    async def flushed(self) -> None:
        """Wait until all that was done so far is kept; not to be cancelled."""
        with trio.CancelScope(shield=True):
            await self._store.flushed()

    async def discard(self) -> None:
        """The link is closed. Cancelled: the store may still know it."""
        await self._store.discard(self._key)


def new_terminus(role: bool, *, resend: bool) -> Terminus:
    """Nothing is known of the link yet."""
    return SenderTerminus(resend=resend) if role is Role.SENDER else ReceiverTerminus()
