"""The state that a program keeps of a link between its attachments (2.6.5, 3.5).

The state is kept if the link can be resumed: it was opened with a ``store``, or asks the peer by an expiry
policy to keep its terminus too. Stores identify a terminus by the two containers and the name of the link.
Knows no state of the engine but the terminus itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus, Terminus
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, Target, TerminusDurability
from trio_amqp10.amqp10.spec.transport import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.spec.transport import Attach
    from trio_amqp10.core.errors import AmqpError

    from .link_options import LinkOptions


class LinkKey(NamedTuple):
    """The identity of one end of a link.

    Names are unique between two containers, in one direction (2.6.1).
    """

    container_id: str
    remote_container_id: str
    name: str
    role: bool


class TerminusStore(ABC):
    """Stores link termini, of any number of links and connections."""

    @abstractmethod
    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """Return the terminus of ``key``, or a new one of ``make``, stored from now on.

        Cancelled: nothing has changed.
        """

    @abstractmethod
    async def discard(self, key: LinkKey) -> None:
        """Forget a link that was closed for good. Do nothing if it is not known.

        Cancelled: it is forgotten or not; call it again.
        """

    async def flushed(self) -> None:
        """Wait until all changes of termini so far are stored.

        Returns at once if the store writes nothing. Later changes, of other links, are not waited for.

        Cancelled: the changes are stored anyway.
        """
        await trio.lowlevel.checkpoint()


class MemoryTerminusStore(TerminusStore):
    """Stores termini in memory, for as long as the process lives."""

    def __init__(self) -> None:
        self._termini: dict[LinkKey, Terminus] = {}

    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """Return the terminus of ``key``, as ``TerminusStore.open``.

        Cancelled: nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        terminus = self._termini.get(key)
        if terminus is None:
            terminus = self._termini[key] = make()
        return terminus

    async def discard(self, key: LinkKey) -> None:
        """Forget a link, as ``TerminusStore.discard``.

        Cancelled: nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        self._termini.pop(key, None)

    def __len__(self) -> int:
        return len(self._termini)


class Retention(NamedTuple):
    """The state of a link that both ends should keep, and for how long (3.5.4-3.5.6)."""

    durable: TerminusDurability = TerminusDurability.NONE
    expiry_policy: str = ExpiryPolicy.SESSION_END
    timeout: int = 0

    @property
    def survives(self) -> bool:
        """Whether both ends keep something after a detach."""
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
    """The terminus of a link, and the data for attaching the link again.

    Attributes:
        terminus: the unsettled deliveries, or None.
        options: the options of the attach.
        remote: the peer's last attach.
        apart: whether the link must have a session of its own, because it may have ended the last one.
        damage: the last error by which the peer ended the link or its session.
        failure: the reason why the link could not be attached again.
        on_lost: called when the link, or its connection, was lost.
        on_restored: called when the link was attached again.
        left: the number of unsettled deliveries when the link was last attached again because an unsettled
            map was incomplete; None if it was not (2.7.3).
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
        """Whether the terminus is stored outside of this process."""
        return self.terminus is not None and self.terminus.unsettled_store is not None

    async def flushed(self) -> None:
        """Wait until all changes so far are stored; cannot be cancelled."""
        with trio.CancelScope(shield=True):
            await self._store.flushed()

    async def discard(self) -> None:
        """Forget a closed link. Cancelled: the store may still know it."""
        await self._store.discard(self._key)


def new_terminus(role: bool, *, resend: bool) -> Terminus:
    """Return an empty terminus, for a link that is not known yet."""
    return SenderTerminus(resend=resend) if role is Role.SENDER else ReceiverTerminus()
