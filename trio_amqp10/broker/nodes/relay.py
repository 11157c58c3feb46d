"""Messages without a link of their own: routed by ``to``, or sent from within.

``Feed`` is an inlet that is filled by calls; ``Relay`` is the node of the anonymous terminus ("Using the Anonymous Terminus
for Message Routing"); ``post`` sends a message of the service itself.

Knows messages; knows no links.
"""

# Arrivals and inlets of this process ignore some arguments of their interfaces.
# ruff: noqa: ARG002

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.core.errors import Condition, RemoteProtocolError

from .arrival_answers import refuse, release
from .node import Arrival, Inlet, Node, Peer, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .content import Content

_MOST_IN_HAND: Final = 100
"""Messages that a relay has taken from one peer, and that no node has taken yet."""

_MOST_LINES: Final = 32
"""Addresses that a relay remembers for one peer; beyond it, idle ones are dropped."""

Route = Callable[[str], Node]


class Feed:
    """An inlet that is filled in this process."""

    __slots__ = ("_arrivals", "_on_gone", "_on_taken", "pair", "peer")

    def __init__(
        self,
        peer: Peer,
        on_taken: Callable[[], object] | None = None,
        on_gone: Callable[[], object] | None = None,
    ) -> None:
        self.peer: Final = peer
        self.pair: object = self
        self._arrivals: deque[Arrival] | None = None  # None if empty: an empty deque takes 0.7 KiB.
        self._on_taken = on_taken
        self._on_gone = on_gone

    def push(self, arrival: Arrival) -> None:
        """Add a message; the caller calls ``node.on_arrivals`` next."""
        if self._arrivals is None:
            self._arrivals = deque()
        self._arrivals.append(arrival)

    @property
    def is_committed(self) -> bool:
        """False: no transaction."""
        return False

    def take(self) -> Arrival | None:
        arrivals = self._arrivals
        if arrivals is None:
            return None
        arrival = arrivals.popleft()
        if not arrivals:
            self._arrivals = None
        if self._on_taken is not None:
            self._on_taken()
        return arrival

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        if self._on_gone is not None:
            self._on_gone()
        while (arrival := self.take()) is not None:
            release(arrival)

    def __len__(self) -> int:
        return 0 if self._arrivals is None else len(self._arrivals)


# From within the service ------------------------------------------------------------------------


class ReleasedError(RefusedError):
    """The node released a message that was sent from within.

    An exchange does so from which no binding leads to a queue.
    """

    def __init__(self) -> None:
        super().__init__(Condition.PRECONDITION_FAILED, "released: it was not processed")


class _Posted:
    """An arrival whose sender waits in this process."""

    __slots__ = ("_answered", "content", "refusal", "settled", "state")

    tag = b""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.settled = False
        self.state: Any = None
        self.refusal: RefusedError | None = None
        self._answered = trio.Event()

    @property
    def message(self) -> Any:
        return self.content.as_message()

    def record_acceptance(self) -> None:
        """Do nothing: the sender does not outlive the process."""

    def accept(self) -> None:
        self._answer("accepted")

    def reject(self, condition: str = Condition.INTERNAL_ERROR, description: str | None = None) -> None:
        self.refusal = RefusedError(condition, description or "rejected")
        self._answer("rejected")

    def release(self) -> None:
        self.refusal = ReleasedError()
        self._answer("released")

    def modify(self, **changes: Any) -> None:
        self.release()

    def keep(self) -> bool:
        """Return False: the sender must be answered."""
        return False

    def _answer(self, state: str) -> None:
        self.state = state
        self.settled = True
        self._answered.set()

    async def wait(self) -> None:
        await self._answered.wait()


async def post(node: Node, content: Content, peer: Peer) -> None:
    """Send ``content`` to ``node`` for ``peer``, and wait until it is accepted.

    Raises:
        RefusedError: the node did not accept it; ``ReleasedError`` if it was released.

    Cancelled: the node may have it or not.
    """
    node.check_inlet(peer)
    feed = Feed(peer)
    posted = _Posted(content)
    node.add_inlet(feed)
    try:
        feed.push(posted)
        node.on_arrivals(feed)
        await posted.wait()
    finally:
        node.remove_inlet(feed)
    if posted.refusal is not None:
        raise posted.refusal


# Routed by `to` ---------------------------------------------------------------------------------


class _Lines:
    """The feeds of one peer of the relay: one for each address it sent to recently."""

    __slots__ = ("busy", "feeds", "in_hand")

    def __init__(self) -> None:
        self.feeds: dict[str, tuple[Feed, Node]] = {}
        self.in_hand = 0
        self.busy = False


class Relay(Node):
    """Forwards each message to the node that its ``to`` names."""

    accepts_senders = True

    def __init__(self, route: Route) -> None:
        super().__init__("")
        self._route = route
        self._lines: dict[Inlet, _Lines] = {}

    def add_inlet(self, inlet: Inlet) -> None:
        super().add_inlet(inlet)
        self._lines[inlet] = _Lines()

    def on_arrivals(self, inlet: Inlet) -> None:
        lines = self._lines.get(inlet)
        if lines is None or lines.busy:
            return
        lines.busy = True
        try:
            while lines.in_hand < _MOST_IN_HAND:
                arrival = inlet.take()
                if arrival is None:
                    return
                self._hand_on(inlet, lines, arrival)
        finally:
            lines.busy = False

    def _hand_on(self, inlet: Inlet, lines: _Lines, arrival: Arrival) -> None:
        try:
            address = _address(arrival.content)
            feed, node = lines.feeds.get(address) or self._open_line(inlet, lines, address)
        except (RefusedError, RemoteProtocolError) as refusal:
            if arrival.settled:  # The sender wants no answer, so only the link can be refused.
                inlet.close(refusal.condition, refusal.description, {"delivery-tag": arrival.tag})
            else:
                refuse(arrival, refusal.condition, refusal.description)
            return
        lines.in_hand += 1
        feed.push(arrival)
        node.on_arrivals(feed)

    def destination(self, content: Content) -> Node:
        return self._route(_address(content)).destination(content)

    def _open_line(self, inlet: Inlet, lines: _Lines, address: str) -> tuple[Feed, Node]:
        if len(lines.feeds) >= _MOST_LINES:
            for old in [old for old, (feed, _) in lines.feeds.items() if not feed]:
                self._close_line(lines, old)
        node = self._route(address)
        node.check_inlet(inlet.peer)

        def taken() -> None:
            lines.in_hand -= 1
            self.on_arrivals(inlet)

        feed = Feed(inlet.peer, taken, lambda: lines.feeds.pop(address, None))
        lines.feeds[address] = feed, node
        node.add_inlet(feed)
        return feed, node

    def _close_line(self, lines: _Lines, address: str) -> None:
        feed, node = lines.feeds.pop(address, (None, None))
        if feed is not None and node is not None:  # Closing another line may have removed this node.
            node.remove_inlet(feed)

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        lines = self._lines.pop(inlet, None)
        if lines is not None:
            for address in list(lines.feeds):
                self._close_line(lines, address)


def _address(content: Content) -> str:
    if content.to is None:
        raise RefusedError(Condition.NOT_FOUND, "the message has no `to`, which the anonymous relay needs")
    return content.to
