"""The number of messages that the links of one channel may bring.

It is the prefetch of ``basic_qos``.

kombu bounds the unsettled messages of a channel, whatever their number of consumers; AMQP 1.0 grants credit to each link. So each link
gets the free part of the window as credit, and less whenever a message comes on another. A message that was under way meanwhile is
released at once: another worker gets it.

Used in trio's thread only. Knows links and credit, and nothing of kombu.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.core.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.amqp10.peer.receiver import Receiver

BUFFERED: Final = 500
"""Messages of one link that wait for the program, if no window bounds them."""


def attempt(call: Callable[[], object]) -> None:
    """Call ``call()``; ignore that the link is over.

    The peer gives the messages of such a link to others.
    """
    with suppress(AmqpError, trio.ClosedResourceError):
        call()


class Window:
    """The bound on the unsettled messages of a channel.

    Attributes:
        size: messages; 0 for no bound.
        unsettled: messages that have come and have no outcome.
    """

    def __init__(self) -> None:
        self.size: int = 0
        self.unsettled: int = 0
        self._sources: dict[Source, None] = {}

    def add(self, source: Source) -> None:
        """Count the messages of ``source``, and grant it credit."""
        self._sources[source] = None

    def resize(self, size: int) -> None:
        """Change the bound; messages that exceed a smaller one stay."""
        self.size = size
        self.adjust()

    def count(self) -> None:
        """Count a message that came without a source."""
        self.unsettled += 1
        self.adjust()

    def settled(self) -> None:
        """Note that a message has got its outcome."""
        self.unsettled -= 1
        self.adjust()

    def adjust(self) -> None:
        """Grant each link the credit that it should have."""
        for source in self._sources:
            source.adjust()

    def takes(self, source: Source) -> bool:
        """Count a message that came; return False if it exceeds the bound."""
        if self.size and self.unsettled >= self.size:
            return False
        self.unsettled += 1
        if len(self._sources) > 1:
            self.adjust()
        else:
            source.adjust()
        return True


class Source:
    """A link that brings messages to a channel.

    Args:
        receiver: the link, opened with ``credit=0``.
        window: the window of the channel; None if the messages are settled when they come. Those that are not are then accepted.
        deliver: called with this source and each message.
        lost: called with the exception that ended the link.

    Attributes:
        is_open: whether messages are wanted.
        failure: the exception that ended the link, or None.
    """

    def __init__(
        self,
        receiver: Receiver,
        window: Window | None,
        deliver: Callable[[Source, Delivery], object],
        lost: Callable[[Source, Exception], object],
    ) -> None:
        self.is_open: bool = False
        self.failure: Exception | None = None
        self._receiver = receiver
        self._window = window
        self._deliver = deliver
        self._lost = lost
        self._came = 0  # written in trio's thread
        self._taken = 0  # written in the program's thread
        if window is not None:
            window.add(self)

    @property
    def is_bounded(self) -> bool:
        """Whether the window of the channel bounds its messages."""
        return self._window is not None and self._window.size > 0

    def _room(self) -> int:
        if not self.is_open:
            return 0
        if self._window is not None and self._window.size:
            return max(0, self._window.size - self._window.unsettled)
        return max(0, BUFFERED - (self._came - self._taken))

    def adjust(self) -> None:
        """Grant as much credit as there is room, if the difference is worth a frame."""
        receiver = self._receiver
        credit = max(0, self._room() - receiver.buffered)
        size = self._window.size if self.is_bounded and self._window is not None else BUFFERED
        if credit < receiver.credit or credit - receiver.credit >= max(1, size // 4):
            attempt(partial(receiver.set_credit, credit))

    def open(self, is_open: bool) -> None:
        """Begin or end to want messages; report the end of the link if they are wanted."""
        self.is_open = is_open
        if is_open and self.failure is not None:
            self._lost(self, self.failure)
        else:
            self.adjust()

    def take(self) -> bool:
        """Note in the program's thread that it has a message.

        Return whether ``adjust`` must be called in trio's thread.
        """
        self._taken += 1
        return not self._taken % (BUFFERED // 4) and not self.is_bounded

    async def run(self) -> None:
        """Deliver messages until the link ends. Cancelled: no message is lost."""
        receiver = self._receiver
        try:
            while True:
                try:
                    delivery = receiver.receive_nowait()
                except trio.WouldBlock:
                    await receiver.wait()
                    continue
                if self._window is None and not delivery.settled:
                    attempt(delivery.accept)  # the peer does not know of snd-settle-mode settled (2.7.3)
                if self._window is None or self._window.takes(self):
                    self._came += 1
                    self._deliver(self, delivery)
                else:
                    attempt(delivery.release)
        except (AmqpError, trio.ClosedResourceError) as failure:
            self.failure = failure
            self._lost(self, failure)


def settle(window: Window, outcome: Callable[..., object], **arguments: Any) -> None:
    """Give an outcome, and make room in the window."""
    attempt(lambda: outcome(**arguments))
    window.settled()
