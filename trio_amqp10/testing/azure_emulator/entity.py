"""Entity: a queue, subscription or dead-letter queue of Service Bus, as a node.

``entity_messages`` has its messages and their states. A receiver in mode ``second`` learns whether its outcome was applied: if
its lock is lost, the delivery is rejected with ``com.microsoft:message-lock-lost``.

Knows inlets and outlets; knows no links.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp10.message import Message
from trio_amqp10.broker.nodes.node import Inlet, Node, Outlet, Peer, RefusedError
from trio_amqp10.core.errors import Condition

from .batch_unpacking import take_in, unpack
from .constants import DEAD_LETTER_QUEUE, SESSION_LOCK_LOST
from .duplicate_detection import DuplicateDetection
from .entity_messages import EntityMessages
from .entity_options import EntityOptions
from .message_sessions import MessageSessions, SessionWaiter
from .stored_message import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.deadline_timer import DeadlineTimer
    from trio_amqp10.broker.nodes.node import SubscriptionTerms

    from .message_locks import LockableMessage
    from .message_sessions import SessionLock
    from .subscription_rules import SubscriptionRules


class Entity(Node):
    """A node that holds messages, which receivers lock.

    Args:
        address: the address for links.
        options: the rules of the entity.
        clock: the clock for locks and expiry.
        deadline_timer: the timer that calls ``sweep`` at ``next_deadline``.
        dead: whether this is a dead-letter queue, which has no dead-letter queue itself.
        accepts_senders: whether peers may send to it.
        rules: for a subscription, the rules that select messages of its topic; otherwise None.
        forward: moves a message from an entity to the one that its options name; needed if they name one.

    Attributes:
        rules: as given.
        messages: the messages that it holds.
        sessions: the locked sessions, and the receivers that wait for a session.
        graveyard: its dead-letter queue, or None.
    """

    accepts_receivers = True
    may_refuse_outcomes = True

    def __init__(
        self,
        address: str,
        options: EntityOptions,
        clock: Clock,
        deadline_timer: DeadlineTimer,
        *,
        dead: bool = False,
        accepts_senders: bool = True,
        rules: SubscriptionRules | None = None,
        forward: Callable[[Entity, StoredMessage], None] | None = None,
    ) -> None:
        super().__init__(address)
        self.max_message_size: int | None = options.max_message_size_in_kilobytes * 1024
        self.rules = rules
        self.accepts_senders = accepts_senders
        self.options = options
        self.sessions: Final = MessageSessions(options.lock_duration, clock)
        self.graveyard: Entity | None = None
        if not dead:
            lasting = EntityOptions(
                lock_duration=options.lock_duration, forward_to=options.forward_dead_lettered_messages_to
            )
            self.graveyard = Entity(
                address + DEAD_LETTER_QUEUE,
                lasting,
                clock,
                deadline_timer,
                dead=True,
                accepts_senders=False,
                forward=forward,
            )
        self.messages: EntityMessages = EntityMessages(options, clock, self._on_available, self.graveyard)
        self._duplicates = DuplicateDetection(options, clock)
        self._forward = forward
        self._deadline_timer = deadline_timer
        self._clock = clock
        self._waiting: dict[Outlet, str | None] = {}
        self._session_locks: dict[Outlet, SessionLock] = {}

    # -- in ---------------------------------------------------------------------------------

    def on_arrivals(self, inlet: Inlet) -> None:
        self.sweep()
        take = partial(take_records, check=self.check, receive=self.receive)
        while (arrival := inlet.take()) is not None:
            take_in(arrival, take)

    def check(self, record: StoredMessage) -> None:
        """Raise ``RefusedError`` if the entity cannot hold the message."""
        if self.options.requires_session and record.session is None:
            raise RefusedError(
                Condition.NOT_ALLOWED, f"{self.address!r} requires sessions: set the group-id of each message"
            )

    def receive(self, record: StoredMessage) -> int:
        """Store a message, and return its sequence number."""
        earlier = self._duplicates.earlier(record)
        if earlier is not None:
            return earlier
        number = self.messages.enqueue(record)
        self._duplicates.note(record, number)
        self._deadline_timer.check()
        return number

    # -- out --------------------------------------------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)
        if self.options.forward_to is not None:
            raise RefusedError(
                Condition.NOT_ALLOWED,
                f"{self.address!r} forwards its messages to {self.options.forward_to!r}: receive them there",
            )
        if copying:
            raise RefusedError(
                Condition.NOT_IMPLEMENTED, "browsing by a link is not supported: send a peek request"
            )

    def bind_session(self, outlet: Outlet, lock: SessionLock) -> None:
        """Connect an outlet, before it is added, to the session that was locked for it."""
        lock.outlet = outlet
        self._session_locks[outlet] = lock
        self._deadline_timer.check()

    def on_demand(self, outlet: Outlet) -> None:
        self.sweep()
        if outlet in self.outlets:
            self.attempt(outlet, self._serve, outlet, self._lane_of(outlet))

    def _lane_of(self, outlet: Outlet) -> str | None:
        lock = self._session_locks.get(outlet)
        return None if lock is None else lock.session

    def _serve(self, outlet: Outlet, lane: str | None) -> None:
        while outlet.ready():
            held = self.messages.take(lane, outlet.max_message_size)
            if held is None:
                left = self.messages.first(lane)
                if left is not None:
                    outlet.outgrow(left.size)
                outlet.rest(0)
                if outlet in self.outlets:
                    self._waiting.setdefault(outlet, lane)
                return
            self._give(outlet, held)
        self._waiting.pop(outlet, None)
        outlet.rest(self.messages.available(lane))

    def _give(self, outlet: Outlet, held: LockableMessage) -> None:
        lock = self.messages.lock(held)
        try:
            outlet.give(Message.from_payload(held.render()), lock, lock.token.bytes_le)
        except Exception:
            self.end_link(outlet)
            with suppress(RefusedError):  # the lock has ended in the meantime
                lock.released()
        self._deadline_timer.check()

    def _on_available(self, lane: str | None) -> None:
        if self.options.forward_to is None or self._forward is None:
            self._offer_to_one(lane)
            return
        held = self.messages.take(lane)
        assert held is not None
        self.messages.lock(held).accepted()  # the next entity has it
        self._forward(self, held.record)

    def _offer_to_one(self, lane: str | None) -> None:
        """Give a newly available message to the first waiting receiver that can take it."""
        if self.options.requires_session and lane not in self.sessions:
            self._match()
            return
        for outlet, wanted in list(self._waiting.items()):
            if wanted != lane or outlet not in self._waiting:
                continue
            del self._waiting[outlet]
            try:
                if self._offer(outlet, lane):
                    return
            except Exception:
                self.end_link(outlet)

    def _offer(self, outlet: Outlet, lane: str | None) -> bool:
        """Give the next message to a waiting receiver; return False if it cannot take it."""
        if not outlet.ready():
            return False
        held = self.messages.take(lane, outlet.max_message_size)
        if held is not None:
            self._give(outlet, held)
        elif (
            self.messages.first(lane) is not None
        ):  # the message is too large for this receiver; look again, in case another receiver takes it
            outlet.peer.start_soon(self._look_again, outlet)
        if outlet in self.outlets and outlet.ready():
            self._waiting[outlet] = lane  # after all other waiting receivers
        return held is not None

    async def _look_again(self, outlet: Outlet) -> None:
        await trio.lowlevel.checkpoint()
        self.on_demand(outlet)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        self._waiting.pop(outlet, None)
        limit = outlet.max_message_size
        if limit is not None and not any(each.max_message_size == limit for each in self.outlets):
            self.messages.forget_limit(limit)
        lock = self._session_locks.pop(outlet, None)
        if lock is not None:
            self.release(lock, failed=False)

    # -- sessions ---------------------------------------------------------------------------

    def seek(self, seeker: SessionWaiter) -> None:
        """Give the receiver the next unlocked session with messages, now or later."""
        self.sweep()
        self.sessions.seekers.append(seeker)
        self._match()
        self._deadline_timer.check()

    def _match(self) -> None:
        seekers = self.sessions.seekers
        while seekers:
            free = next((lane for lane in self.messages.lanes if lane not in self.sessions), None)
            if free is None:
                return
            seekers.popleft().found(free)

    def release(self, lock: SessionLock, *, failed: bool) -> None:
        """End the lock of a session, and give the session to a waiting receiver."""
        if self.sessions.end(lock):
            self.messages.release_session(lock.session, failed=failed)
            self._match()

    # -- time -------------------------------------------------------------------------------

    def sweep(self) -> None:
        """End the locks on sessions, waits and messages whose time is over."""
        for lock in self.sessions.ended():
            self.release(lock, failed=True)
            if lock.outlet is not None:
                text = f"the lock on the session {lock.session!r} has ended"
                self.attempt(lock.outlet, lock.outlet.close, SESSION_LOCK_LOST, text)
        now = self._clock.now()
        for seeker in [each for each in self.sessions.seekers if each.expires_at <= now]:
            self.sessions.seekers.remove(seeker)
            seeker.given_up()
        self.messages.sweep()

    def next_deadline(self) -> float:
        """Return when ``sweep`` may have work; infinite if never."""
        return min(self.messages.next_deadline(), self.sessions.next_deadline())

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"messages": len(self.messages), "locked": self.messages.locked}

    def __len__(self) -> int:
        """Return the number of messages in any state."""
        return len(self.messages)


def take_records(
    message: Message, check: Callable[[StoredMessage], object], receive: Callable[[StoredMessage], object]
) -> None:
    """Store one message, or all messages of a batch, or none if one is refused."""
    records = [StoredMessage(each) for each in unpack(message)]
    for record in records:
        check(record)
    for record in records:
        receive(record)
