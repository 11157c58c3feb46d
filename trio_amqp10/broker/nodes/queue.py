"""Queue: messages in order, each for one of the competing consumers (3.3).

Order and fairness
------------------

An arriving message is placed after all messages of the same or a higher priority (3.2.1). It is accepted once the queue holds
it. A held message is available, or leased to an outlet, until the lease is answered:

================  ==================================================================================
accepted          the message is gone
rejected          it dies, and that counts as an attempt (3.4.3): the peer finds it invalid, and would do so again
released          it is available again in its old place, unchanged
modified          it is available again in its old place; ``failed`` counts an attempt, ``undeliverable_here`` keeps it from
                  this link while that exists (``refusals``), and annotations are added to its own; it dies of too many attempts
lost              the default outcome of its source (3.5.3); without one, the same as a failed attempt, because it may have
                  been processed
================  ==================================================================================

After a failed attempt the policy may make a message wait before it is available again. Its receiver may choose the time, with
the annotation ``x-opt-delivery-time`` of ``modified``, as in RabbitMQ 4.3.

Messages that arrived together are held, then placed in their order, then accepted. In a queue with a bound each message is
placed and accepted before the next one is taken.

An outlet that is ready and finds no message waits in turn. So at any time no outlet waits, or no available message may go to
those that wait. A message that becomes available is offered to them first: to the outlets of the highest priority
(``SubscriptionTerms.priority``) round robin, then to those of the next.

A message larger than the peer of an outlet takes (2.7.3) is skipped for that outlet and stays for the others. If only such
messages are left for an outlet, its link ends with ``amqp:link:message-size-exceeded``; the same holds for a browser that has
seen all others. A message that an outlet cannot take for another reason (``NotTakenError``), e.g. because it has no form in its
protocol, stays for the others too; that is logged once for each message, and the outlet continues with the next. An outlet that
raises any other exception is ended, and its current message is given to another.

The queue decides which outlet gets which message; ``held_messages`` holds the messages, and ends them. ``deadletters`` describes
where dead messages go; ``available`` which messages are available and to which links; ``groups`` how messages of a group stay
together; ``policy`` the rules; and ``message_store`` what survives the process. Long work is divided (``turns``): a search for
messages that pass a filter, deliveries to a consumer, the expiry or removal of many messages, a purge. Consumers that were
not yet offered a message then search for themselves in a later turn.

After a restart most messages of a deep queue are in the store alone (``stored_rest``). A consumer or browser that finds none in
memory waits for the next page. What cannot wait reads it at once: ``pull``, and the search for a message that must make room.

Knows inlets and outlets; knows no links.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.broker.stores.base import StoreError
from trio_amqp10.core.errors import Condition, LocalProtocolError

from . import stored_rest
from .arrival_answers import accept, answer, refuse, refuse_durable
from .clock import Clock
from .consumers import QueueBrowser, QueueConsumer
from .entry import ANYONE, Entry, unpack_sequence
from .groups import Groups
from .held_messages import HeldMessages
from .message_origin import origin_of
from .node import Node, NotTakenError, Outlet, Peer, RefusedError, label
from .policy import LONGEST_DELAY, QueuePolicy
from .refusals import Refusals
from .turns import ENDLESS, each_in_turns, finish, guarded, paced, take_steps
from .watermark import Watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from trio_amqp10.broker.stores.base import Row
    from trio_amqp10.broker.stores.group_commit import Journal

    from .consumers import QueueReader
    from .content import Content, Death, Publication
    from .message_store import QueueStore
    from .node import Arrival, Inlet, SubscriptionTerms
    from .refusals import OutletKey
    from .stored_rest import StoredRest
    from .turns import Resumer, Turns

_log = logging.getLogger("trio_amqp10.container")

_STALE: Final = 64
"""The most remembered entries that may be outdated, beyond the number of messages.

When there are more, the outdated ones are removed.
"""
_PASSED_AT_ONCE: Final = 100
"""Messages that one consumer may fail to take before others get their turn."""
_UNTIMED: Final = 16
"""Messages that are taken between two looks at the clock."""
_RETRY: Final = 10.0
"""Seconds until a page that could not be read is read again."""
_DELIVERY_TIME: Final = "x-opt-delivery-time"
"""The annotation for the time of the next delivery, in milliseconds since 1970."""


class Queue(Node):
    """Holds messages until consumers take them, or they expire.

    Args:
        address: the address that links name.
        policy: its rules.
        kept_by: the things that keep a temporary queue alive: any of ``"maker"``, ``"links"`` and ``"messages"``; None for a
            queue that stays.
        on_unused: called when nothing keeps it alive, or it was not used for ``policy.expires`` seconds.
        clock: the clock by which messages expire.
        queue_store: stores durable messages; None for a queue that is lost with the process.

    Attributes:
        policy: as given; ``update`` changes it.
        held: its messages.
    """

    # Above 29 attributes Python shares the table of names no more, and the subscriptions of a topic are queues.
    __slots__ = (
        "_active",
        "_available",
        "_blocked",
        "_bounded",
        "_browsers",
        "_clock",
        "_closed",
        "_consumers",
        "_deadline_timer",
        "_groups",
        "_held_until",
        "_journal",
        "_kept_by",
        "_left_to_others",
        "_on_unused",
        "_origins",
        "_pages_at",
        "_paging",
        "_pulled",
        "_redirect",
        "_refusals",
        "_rest_expires",
        "_sweeps",
        "_unused_since",
        "_waiting",
        "has_maker",
        "held",
        "policy",
    )

    accepts_senders = accepts_receivers = applies_filters = leases_messages = releases_arrivals = True
    passes_over = True
    expires_at_head: bool = False
    """Whether a message expires only when all before it are gone.

    Otherwise each message expires in time.
    """
    capabilities: tuple[str, ...] = ("queue",)
    held_class: ClassVar[type[HeldMessages]] = HeldMessages

    def __init__(
        self,
        address: str,
        *,
        policy: QueuePolicy | None = None,
        kept_by: frozenset[str] | None = None,
        on_unused: Callable[[Queue], object] | None = None,
        clock: Clock | None = None,
        queue_store: QueueStore | None = None,
    ) -> None:
        super().__init__(address)
        self.policy: QueuePolicy = policy or QueuePolicy()
        self._bounded = self.policy.is_bounded
        self._clock = clock or Clock()
        self.held: HeldMessages = self.held_class(self, self._clock, queue_store)
        self.held.watermark = self.watermark
        self.has_maker: bool = False
        self._journal: Journal | None = None if queue_store is None else queue_store.journal
        """The journal of its container; None without a store."""
        self._closed = False
        self._kept_by = kept_by
        self._on_unused = on_unused
        self._origins: dict[Inlet, str] = {}
        self._available = self.held.available
        self._groups = Groups(self._available, self._dispatch)
        self._refusals = Refusals(self, self._available)
        self._consumers: dict[Outlet, QueueConsumer] = {}
        self._active: QueueConsumer | None = None
        self._browsers: dict[Outlet, QueueBrowser] = {}
        self._waiting: tuple[tuple[int, deque[QueueConsumer]], ...] = ()
        """Waiting consumers by priority, highest first, for each priority that had some."""
        self._pulled: dict[Entry, int] = {}
        """Messages leased by ``pull``, with the ``turn`` of that lease.

        Only in a queue with a single active consumer.
        """
        self._left_to_others: dict[Entry, None] = {}
        """Messages that a consumer could not take, and that were logged for that."""
        self._blocked: dict[Inlet, Callable[[Inlet], object]] = {}
        """Inlets that wait for room, exchanges' included, and the callback for each."""
        self._paging: dict[QueueReader, None] = {}
        """Consumers and browsers that wait for the next page."""
        self._pages_at = math.inf
        """When a page that could not be read is read again."""
        self._rest_expires = math.inf
        """When the first message expires of those that the store had at the start."""
        self._deadline_timer = self._clock.deadline_timer(self._next_due, self._sweep_later)
        self._sweeps = False
        """Whether expired messages are left that a later turn will remove."""
        self._unused_since: float | None = None
        self._held_until: float | None = None
        """Until when it takes and gives no messages; None if it does."""
        self._redirect: RefusedError | None = None
        """The refusal of all links, with the new place of the queue; None if it is here."""

    def update(self, policy: QueuePolicy) -> None:
        """Replace the rules; the messages stay.

        Raises:
            LocalProtocolError: as ``check_update``.
        """
        self.check_update(policy)
        self.policy = policy
        self._bounded = policy.is_bounded
        self._page_in_needed()
        self._on_room()
        self._begin_use()

    def check_update(self, policy: QueuePolicy) -> None:
        """Check that ``update`` can replace the rules by these.

        Raises:
            LocalProtocolError: ``exclusive``, ``single_active`` or ``grouped`` would change.
        """
        for name in ("exclusive", "single_active", "grouped"):
            if getattr(policy, name) != getattr(self.policy, name):
                raise LocalProtocolError(
                    f"{name} of {label(self)} cannot be changed: delete the queue and create it again"
                )

    # -- handing over to another place ------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether it takes no messages from senders, and gives none to consumers."""
        return self._held_until is not None

    def hold(self, seconds: float) -> None:
        """Take no messages from senders and give none to consumers, for some time.

        Senders wait as at a full queue. What AMQP 0-9-1 publishes through an exchange is still taken, because it cannot wait.
        Management can move and browse messages. A new call replaces the time of the last.

        Args:
            seconds: how long; 0 ends it now.
        """
        self._held_until = self._clock.now() + seconds
        if seconds > 0:
            self._deadline_timer.schedule(self._held_until)
        else:
            self._end_hold()

    def _end_hold(self) -> None:
        self._held_until = None
        self._unblock()
        turns = self.turns
        take_steps(turns, each_in_turns(turns, iter(list(self._consumers)), self._serve_again))

    def _serve_again(self, outlet: Outlet) -> None:
        if outlet in self._consumers:
            self.on_demand(outlet)

    def redirect(self, refusal: RefusedError | None) -> None:
        """End all links with this error, and refuse new ones and messages with it.

        Messages that a consumer had come back. Management can still move messages from here.

        Args:
            refusal: an error that names another place; None to accept links again.
        """
        self._redirect = refusal
        if refusal is not None:
            links: list[Inlet | Outlet] = [*self.inlets, *self.outlets]
            turns = self.turns
            take_steps(turns, each_in_turns(turns, iter(links), partial(self._send_away, refusal)))
            self._unblock()

    def _send_away(self, refusal: RefusedError, link: Inlet | Outlet) -> None:
        self.attempt(link, link.close, refusal.condition, refusal.description, refusal.info)

    def check_here(self) -> None:
        """Check that the queue has not moved to another place.

        Raises:
            RefusedError: it has; the error names the place.
        """
        if self._redirect is not None:
            raise self.refusal_of_room()

    def refusal_of_room(self) -> RefusedError:
        """Return why a message that came through another node is refused."""
        there = self._redirect
        if there is None:
            return RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} is full")
        return RefusedError(there.condition, there.description, there.info)

    # -- figures ----------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of messages held, leased ones included."""
        return self.held.length

    @property
    def octets(self) -> int:
        """The octets of the messages held."""
        return self.held.octets

    @property
    def figures(self) -> dict[str, int]:
        """How many messages arrived, were accepted, were refused, and died of each cause."""
        return self.held.figures

    @property
    def stores_messages(self) -> bool:
        return self.held.queue_store is not None

    @property
    def joins_commits(self) -> bool:
        return self._journal is not None or self.stores_messages

    @property
    def durable(self) -> bool:
        """Whether all its messages are stored, not only durable ones."""
        return self.held.queue_store is not None and self.held.queue_store.everything

    def stores(self, content: Content) -> bool:
        """Whether a new message is written to the store."""
        return self.held.queue_store is not None and self.held.queue_store.keeps(content)

    @property
    def available(self) -> int:
        """The number of messages that are available."""
        return len(self._available)

    @property
    def leased(self) -> int:
        """The number of messages that are leased."""
        return self.held.leased

    @property
    def consumer_count(self) -> int:
        """The number of outlets that remove messages; browsers do not count."""
        return len(self._consumers)

    @property
    def is_temporary(self) -> bool:
        """Whether it is deleted when nothing keeps it alive."""
        return self._kept_by is not None

    @property
    def turns(self) -> Turns:
        return self._clock.turns()

    def statistics(self) -> dict[str, int]:
        self.sweep_now()
        return super().statistics() | self.held.statistics()

    def totals(self) -> Mapping[str, int]:
        return self.held.totals()

    def sweep_now(self) -> None:
        """Call ``sweep`` if trio runs; otherwise there is no clock to expire by.

        While no connection is open no timer runs, so figures would include expired messages.
        """
        if trio.lowlevel.in_trio_run():
            self.sweep()

    def count_in(self, watermark: Watermark) -> None:
        super().count_in(watermark)
        self.held.count_in(watermark)
        if self.container is not None:
            self._journal = self.container.journal
        self._begin_use()  # It has just been added to a container.

    def withdraw(self) -> None:
        self._deadline_timer.cancel()  # It would delete messages that expire, and itself when it is unused.
        self.held.count_in(Watermark())

    def _begin_use(self) -> None:
        if trio.lowlevel.in_trio_run():
            self.touch()

    # -- in ---------------------------------------------------------------------------------

    def check_inlet(self, peer: Peer) -> None:
        self._check_open()
        super().check_inlet(peer)

    def add_inlet(self, inlet: Inlet) -> None:
        super().add_inlet(inlet)
        self._origins[inlet] = origin_of(inlet.peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        held = self.held
        # Expired messages must not take the room of new ones. (Lengths would cost a call for each message.)
        if held.deadlines.places or held.delayed.places:
            self.sweep()
        journal = None if held.queue_store is None else held.queue_store.journal
        origin = self._origins.get(inlet) or origin_of(inlet.peer)
        run: list[tuple[Entry, Arrival]] = []
        taken = 0
        try:
            while not self._closed:
                taken += 1
                # A commit takes all messages at once. Otherwise one sender must not take the turns of others.
                if not taken % _UNTIMED and not self._is_committing():
                    turns = self.turns
                    if turns.is_over():
                        turns.later(partial(self._take_more, inlet))
                        return
                if self._held_until is not None and not self._is_committing():
                    self._place_all(run)
                    self._blocked[inlet] = self.on_arrivals
                    return
                full = self._bounded and held.is_full()
                # A store that has caught up is tested here, to save a call for each message.
                if (full or (journal is not None and journal.crowded)) and self._must_wait(
                    full and self.policy.overflow == "wait"
                ):
                    self._place_all(run)  # These came before the messages that wait.
                    self._blocked[inlet] = self.on_arrivals
                    return
                arrival = inlet.take()
                if arrival is None:
                    self._blocked.pop(inlet, None)
                    return
                if (
                    full
                    and self.policy.overflow != "wait"
                    and not self._make_room(arrival.content.size)
                    and not inlet.is_committed
                ):
                    held.figures["refused"] += 1
                    self._turn_away(arrival.content, inlet)
                    refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} is full")
                    continue
                content = arrival.content
                if content.durable and self.refuses_durable:
                    self._place_all(run)  # They must be accepted before the link ends.
                    held.figures["refused"] += 1
                    refuse_durable(inlet, arrival, self.address)
                elif (entry := self._hold(content, origin, inlet, arrival)) is not None:
                    run.append((entry, arrival))
                    if self._bounded:
                        self._place_all(run)
        finally:
            self._place_all(run)

    def _take_more(self, inlet: Inlet) -> None:
        if inlet in self.inlets:
            self.attempt(inlet, self.on_arrivals, inlet)

    def _place_all(self, run: list[tuple[Entry, Arrival]]) -> None:
        """Place messages that arrived together, then accept them; empties ``run``."""
        placed = run.copy()
        run.clear()
        for entry, _ in placed:
            if not self._closed:
                self._place(entry)
        for _, arrival in placed:
            accept(arrival)

    def _must_wait(self, full: bool) -> bool:
        queue_store = self.held.queue_store
        if self._is_committing():
            return False  # A commit is one step and cannot wait.
        if queue_store is not None and queue_store.journal.crowded:
            queue_store.journal.when_roomy(self._unblock)
            return True
        return full

    def _is_committing(self) -> bool:
        """Whether the present messages belong to a transaction that is being written."""
        return self._journal is not None and self._journal.committing

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        self._check_open()
        return super().holders(inlet, arrival)

    def lacks_room_for(self, inlet: Inlet) -> bool:
        return inlet in self._blocked and self.makes_wait

    def check_room(self, messages: int, octets: int) -> None:
        self._check_open()
        # The last message is taken, whatever its size, if the ones before it leave any room. Their size is not known,
        # but it is at most ``octets - 1``.
        before = octets - 1 if messages > 1 else 0
        if self.policy.overflow == "wait" or not self.held.is_full(messages - 1, before):
            return
        self.sweep()
        if self.held.is_full(messages - 1, before) and not self._can_drop_for(messages - 1, before):
            raise RefusedError(
                Condition.RESOURCE_LIMIT_EXCEEDED, f"{self.address!r} has no room for {messages} messages"
            )

    def _can_drop_for(self, messages: int, octets: int) -> bool:
        """Whether one more message has room after so many, if others are dropped."""
        policy, available = self.policy, self._available
        if policy.overflow != "drop-oldest" or self.held.letters_wait:
            return False
        if policy.holds_nothing or policy.bound == "ready" or self.held.awaits_store:
            return True
        # Unless a consumer or a group takes them, the new messages can be dropped too.
        if not policy.grouped and not any(waiting for _, waiting in self._waiting):
            messages = octets = 0
        return not self.held.is_full(messages - len(available), octets - available.octets)

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._origins.pop(inlet, None)
        self._blocked.pop(inlet, None)
        self.check_used()

    def put(self, content: Content, origin: str | None) -> None:
        """Hold a message of this origin."""
        entry = self._hold(content, origin)
        if entry is not None:
            self._place(entry)

    def _hold(
        self,
        content: Content,
        origin: str | None,
        inlet: Inlet | None = None,
        arrival: Arrival | None = None,
    ) -> Entry | None:
        """Hold a message, which the caller must place next.

        Returns:
            None if it waits for the store or a commit: it is placed after that, and then ``arrival`` is answered, too.
        """
        held = self.held
        entry = held.enter(content, origin)
        # A durable message is not delivered before it is on disk; nor is one that follows it, to keep the order.
        if held.queue_store is not None and held.store(
            entry, partial(self._on_stored, entry, inlet, arrival)
        ):
            if arrival is not None and entry.queue_store is not None:
                arrival.record_acceptance()
            return None
        # This queue stores nothing, but another node of the transaction may: the message counts only if that succeeds.
        if self._journal is not None and held.queue_store is None and self._journal.committing:
            held.await_commit(self._journal, entry, partial(self._on_stored, entry, inlet, arrival))
            return None
        return entry

    def _place(self, entry: Entry) -> None:
        """Give a new message to a waiting consumer, or make it available."""
        if entry.deadline is not None or entry.group is not None or not self._dispatch(entry):
            self._offer(entry)

    def _on_stored(
        self, entry: Entry, inlet: Inlet | None, arrival: Arrival | None, failure: StoreError | None
    ) -> None:
        self.held.end_wait(entry, failure)
        if not self._closed:
            if failure is not None:
                self._on_change()
            else:
                if not self._leave_to_store(entry):
                    self._offer(entry)
                if self._bounded:
                    self._drop_excess(entry.size)
        if arrival is not None and inlet is not None:
            self.attempt(inlet, answer, inlet, arrival, failure)

    def _leave_to_store(self, entry: Entry) -> bool:
        """Leave a message to the store, behind the horizon or in a very deep queue."""
        held = self.held
        if entry.order <= self._available.horizon and not (
            # Most queues are shallow: tested here, to save a call for each message.
            (held.length > stored_rest.DEEP or held.octets > stored_rest.DEEP_OCTETS)
            and held.is_deep
            # What waits for a message that it can take must see this one.
            and not self._browsers
            and not any(waiting for _, waiting in self._waiting)
            and not self._keeps_all
            and held.begin_rest(entry)
        ):
            return False
        return held.page_out(entry)

    @property
    def is_full(self) -> bool:
        """Whether it takes no more without removing a message."""
        if not self._bounded or not self.held.is_full():
            return False
        self.sweep()
        return self.held.is_full()

    def gather(self, content: Content, origin: str | None, *, beyond: bool = False) -> bool:
        """Hold one more message; return False if there is no room and none can be made.

        With ``beyond``, a full queue that does not reject messages holds it too: for a transaction that is being committed.
        """
        if self._redirect is not None:
            return False
        if self.is_full and not self._make_room(content.size) and not (beyond and not self.policy.rejects):
            self._turn_away(content)
            return False
        self.put(content, origin)
        return True

    def _turn_away(self, content: Content, inlet: Inlet | None = None) -> None:  # noqa: ARG002
        """Send a rejected message to the dead-letter address, if the policy requires it.

        ``inlet`` is the link it came by; None if it came through another node.
        """
        if self.policy.overflow == "reject-dead-letter":
            self.held.turn_away(content)

    @property
    def makes_wait(self) -> bool:
        """Whether it is held, or full, and new messages must wait with their senders."""
        if self._held_until is not None:
            return not self._closed
        return self._bounded and self.policy.overflow == "wait" and not self._closed and self.is_full

    def when_roomy(self, inlet: Inlet, call: Callable[[Inlet], object]) -> None:
        """Call ``call(inlet)`` once there may be room, or the queue is deleted."""
        self._blocked[inlet] = call

    def forget_waiting(self, inlet: Inlet) -> None:
        """Cancel ``when_roomy``."""
        self._blocked.pop(inlet, None)

    def _make_room(self, size: int) -> bool:
        """Drop the oldest message if the policy permits that.

        Args:
            size: octets of the message that needs the room.

        Returns:
            Whether there is room.
        """
        while self.policy.overflow == "drop-oldest" and not self.held.letters_wait:
            entry = self._first_to_drop()
            if entry is None:
                # What waits for the store cannot be dropped yet: ``_on_stored`` drops the excess.
                return self.policy.holds_nothing or self.held.awaits_store
            self._remove_available(entry, "overflow")
            if not self.held.is_full():
                return True
            turns = self.turns
            if turns.is_over():  # Many small messages may have to make room for a large one.
                turns.later(partial(self._drop_excess, size))
                return True
        return False

    def _offer(self, entry: Entry) -> None:
        """Give a held message to a waiting consumer, or make it available."""
        if entry.deadline is not None:
            if not self.held.schedule(entry):
                self.held.end(entry, "expired")
                self._on_change()
                return
            self._deadline_timer.schedule(entry.deadline)
        if entry.group is not None:
            self._groups.enter(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        if self._browsers:
            self._show_to_browsers(entry)
        if self._bounded and self.policy.holds_nothing:
            self._drop_excess()
        self._on_change()

    def _show_to_browsers(self, entry: Entry) -> None:
        """Show a message to browsers, if it is available."""
        if entry.available:
            for browser in list(self._browsers.values()):
                self.attempt(browser.outlet, self._show, browser)

    def recover(self) -> None:
        """Restore the stored messages; only under trio, because messages may expire."""
        self.touch()
        if self.held.rest is not None:
            return  # Its messages are restored already: a broker that is added late restores all its queues.
        for entry, leased in self.held.recover():
            if not leased and entry.due is None:
                self._offer(entry)
                continue
            # A link has had the message since before the restart, or it waits for its next delivery. The peer of the
            # link will answer the lease.
            if entry.deadline is not None:
                self.held.schedule_leased(entry)
            if not leased:
                self._delay(entry, leased=False)
            elif entry.group is not None:
                self._groups.note_lease(entry.group, entry.outlet_key)
        self._page_in_head()

    # -- messages that are in the store alone -----------------------------------------------

    def _page_in_head(self) -> None:
        """Read the first messages, as many as the start may take."""
        self._page_in_needed()
        rest = self.held.rest
        if rest is None:
            return
        most = self.held.take_head()
        if most:
            self.page_in_now(most)
        if rest.expires is not None:
            self._rest_expires = self._clock.from_wall(rest.expires)
            self._deadline_timer.schedule(self._rest_expires)

    def _page_in_needed(self) -> None:
        """Read all messages now, if a rule of the queue needs them."""
        while (rest := self.held.rest) is not None and self._needs_all(rest):
            self.page_in_now()

    def _needs_all(self, rest: StoredRest) -> bool:
        """Whether a rule of the queue needs all its messages in memory."""
        # Only among messages of one priority is the oldest the first.
        return self._keeps_all or (self.policy.overflow == "drop-oldest" and rest.rank is None)

    @property
    def _keeps_all(self) -> bool:
        """Whether a rule of the queue needs its messages in memory, whatever they are."""
        return False

    def page_in_now(self, most: int | None = None) -> bool:
        """Read the next page of the store, and wait for it.

        Args:
            most: the most messages of the page; None for the usual number.

        Returns:
            Whether there may have been such a message. If not, all messages are in memory.

        Raises:
            StoreError: the store cannot be read.
        """
        rest = self.held.rest
        if rest is None:
            return False
        rows = rest.read(most)  # If that fails, a page that is being read still comes.
        finish(self._page_in(rows, rest.begin_page()))
        self._on_paged_in()
        return True

    def _fetch_page(self) -> None:
        """Begin to read the next page of the store, unless that is under way."""
        rest = self.held.rest
        if rest is None or rest.is_under_way or self._pages_at < math.inf:
            return
        page = rest.begin_page()
        try:
            rest.fetch(partial(self._on_page, page))
        except StoreError:
            rest.reading = None  # The store is closed, so the container is over.

    def _on_page(self, page: object, rows: Sequence[Row], failure: Exception | None) -> None:
        if failure is None:
            steps = guarded(self._page_in(rows, page), self._on_failed_page)
            take_steps(self.turns, steps, self._on_paged_in)
        else:
            self._on_failed_page(failure)

    def _on_failed_page(self, failure: Exception) -> None:
        _log.error("%r: a page of its messages cannot be read; it is tried again: %s", self, failure)
        if (rest := self.held.rest) is not None:
            rest.reading = None
            self._pages_at = self._clock.now() + _RETRY
            self._deadline_timer.schedule(self._pages_at)

    def _page_in(self, rows: Sequence[Row], page: object) -> Generator[None, None, None]:
        is_over = self.turns.is_over
        for entry in self.held.page_in(rows, page):
            if entry is not None:
                self._offer(entry)
            if is_over():
                yield

    def _on_paged_in(self) -> None:
        """Let readers that wait for a page look again; read the next if it is needed."""
        if self._closed:
            return
        waiting, self._paging = self._paging, {}
        turns = self.turns
        if waiting:
            looking = each_in_turns(turns, iter(sorted(waiting, key=_by_priority)), self._look_on)
            turns.later(partial(take_steps, turns, looking))
        rest = self.held.rest
        if rest is not None and rest.has_expired:
            self._fetch_page()
        if self.expires_at_head and self.held.deadlines.places:
            self._sweep_later()  # The first message may have expired.

    def _await_page(self, reader: QueueReader) -> bool:
        """Let a consumer or browser wait for the next page.

        Returns:
            False if all messages are in memory.
        """
        if self.held.rest is None:
            return False
        self._paging[reader] = None
        self._fetch_page()
        return True

    def end_available(self) -> int:
        """Let all available and delayed messages die, before the queue is deleted.

        A dead letter that is not accepted at once is lost with the queue.

        Returns:
            The number of messages.
        """
        return finish(self.end_available_in_steps())

    def end_available_in_steps(self) -> Generator[Resumer | None, None, int]:
        """Do the same as ``end_available`` in steps, which return the number of messages."""
        count = yield from self._remove_all(lambda entry: self.held.end(entry, "deleted"))
        dying = self.held.bound_for_death
        # The dead-letter address may take more letters in its next turn. Wait as long as it takes some each time.
        while dying:
            yield None
            before, dying = dying, self.held.bound_for_death
            if dying == before:
                break
        return count

    def purge(self) -> int:
        """Remove all available and delayed messages; return the number of messages."""
        return finish(self.purge_in_steps())

    def purge_in_steps(self) -> Generator[Resumer | None, None, int]:
        """Do the same as ``purge`` in steps; messages that arrive meanwhile stay."""
        count = 0
        if self.held.rest is not None:
            count = self.held.erase_rest()
            self._on_paged_in()
            self._on_room()
        return count + (yield from self._remove_all(self.held.forget))

    def _remove_all(self, end: Callable[[Entry], object]) -> Generator[Resumer | None, None, int]:
        is_over = self.turns.is_over
        count, sequence = 0, self.held.next_sequence()
        while not self._closed:
            entry = self._available.first_before(sequence)
            if entry is None:
                if self.page_in_now():
                    continue
                break
            self._available.remove(entry)
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            end(entry)
            count += 1
            if is_over():
                yield self._until_roomy()
        for entry in self.held.delayed.pop_due(math.inf):
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            end(entry)
            count += 1
            if is_over():
                yield self._until_roomy()
        return count

    def _until_roomy(self) -> Resumer | None:
        """Return what a step waits for: room in the journal, then another turn."""
        journal, later = self._journal, self.turns.later
        if journal is None or not journal.crowded:
            return None
        return lambda go_on: journal.when_roomy(partial(later, go_on))

    # -- out --------------------------------------------------------------------------------

    def check_outlet(
        self, peer: Peer, *, copying: bool, target: str | None, subscription_terms: SubscriptionTerms
    ) -> None:
        self._check_open()
        super().check_outlet(peer, copying=copying, target=target, subscription_terms=subscription_terms)
        if self.policy.exclusive and self._consumers and not copying:
            raise RefusedError(
                Condition.RESOURCE_LOCKED, f"{self.address!r} is exclusive and has a consumer already"
            )

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        wants = outlet.wants
        self._unused_since = None
        if outlet.copying:
            self._browsers[outlet] = QueueBrowser(outlet, wants)
            return
        consumer = self._consumers[outlet] = QueueConsumer(outlet, wants)
        if wants is not None:
            self._available.begin_search(consumer)
        if self._active is None and self.policy.single_active and not self._consumers_have_some:
            self._active = consumer

    def on_demand(self, outlet: Outlet) -> None:
        self.sweep()
        self.attempt(outlet, self._serve, outlet)

    def _serve(self, outlet: Outlet) -> None:
        browser = self._browsers.get(outlet)
        if browser is not None:
            self._show(browser)
            return
        consumer = self._consumers.get(outlet)
        if consumer is None:
            return
        if self._held_until is not None or (self.policy.single_active and consumer is not self._active):
            outlet.rest(0)
            return
        is_over = self.turns.is_over
        passed = 0
        if self._available.horizon < math.inf and self.held.is_low:
            self._fetch_page()
        while outlet.ready():
            entry = self._take(consumer, is_over)
            if entry is None:
                self._on_nothing(consumer)
                return
            try:
                leased = self._lease(entry, consumer)
            except NotTakenError:
                self._restore(entry)
                passed += 1
                if passed == _PASSED_AT_ONCE:
                    self._resume(consumer)
                    return
                continue
            if not leased:
                self._restore(entry)
                return
            if entry.group is not None:
                self._groups.settle(entry.group)
            if is_over() and outlet.ready():
                self._resume(consumer)
                return
        outlet.rest(self.available)

    def _take(self, consumer: QueueConsumer, is_over: Callable[[], bool]) -> Entry | None:
        """Take an available message for a consumer."""
        entry = self._available.take(consumer, is_over)
        # While a sweep is unfinished, expired messages are still available.
        while entry is not None and (self._sweeps or self.expires_at_head) and self._has_expired(entry):
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            self.held.end(entry, "expired")
            entry = self._available.take(consumer, is_over)
        if self.expires_at_head:
            for expired in self._expired_at_head():  # They have been behind this message.
                self._remove_available(expired, "expired")
        return entry

    def _has_expired(self, entry: Entry) -> bool:
        return entry.deadline is not None and entry.deadline <= self._clock.now()

    def pull(self, outlet: Outlet) -> bool:
        """Give the outlet one message; see ``Node.pull``.

        An outlet that only browses gets a copy of the first message. A message that the peer does not take, e.g. because it is too
        large (2.7.3), is skipped. With a filter, all available messages may be tested.
        """
        if self._closed or (self._held_until is not None and not outlet.copying):
            return False
        self.sweep()
        self.touch()
        try:
            return self._show_first(outlet) if outlet.copying else self._lease_first(outlet)
        except Exception:
            self.end_link(outlet)
            return False

    def _show_first(self, outlet: Outlet) -> bool:
        browser = QueueBrowser(outlet, outlet.wants)
        while True:
            entry = browser.find(self._available.all_blocks, ENDLESS.is_over)
            if entry is None:
                if self.page_in_now():
                    continue
                return False
            if self._give_copy(browser, entry):
                return True

    def _lease_first(self, outlet: Outlet) -> bool:
        with self.pulling(outlet) as consumer:
            return self.pull_next(consumer, ENDLESS.is_over)

    @contextmanager
    def pulling(self, outlet: Outlet) -> Generator[QueueConsumer]:
        """Make a consumer for ``pull_next``, which tests no message twice in the body.

        The outlet is no consumer of the queue; see ``Node.pull``.
        """
        consumer = QueueConsumer(outlet, outlet.wants)
        if consumer.search is not None:
            self._available.begin_search(consumer)
        try:
            yield consumer
        finally:
            self._available.searches.pop(consumer, None)

    def pull_next(self, consumer: QueueConsumer, is_over: Callable[[], bool]) -> bool:
        """Lease the next message that this consumer takes, now.

        Returns:
            Whether there was one. If not, and ``consumer.search.pauses``, the search has stopped because ``is_over``: call
            again.
        """
        while True:
            entry = self._take(consumer, is_over)
            if entry is None:
                if (consumer.search is None or not consumer.search.pauses) and self.page_in_now():
                    continue
                return False
            if self.policy.single_active:
                if len(self._pulled) > self.held.length + _STALE:
                    self._forget_pulled()
                self._pulled[entry] = entry.turn + 1
            try:
                leased = self._lease(entry, consumer)
            except NotTakenError:
                self._restore(entry)
                continue
            if not leased:
                self._restore(entry)
                return False
            if entry.group is not None:
                self._groups.settle(entry.group)
            return True

    @property
    def _consumers_have_some(self) -> bool:
        """Whether a consumer has a lease; leases of ``pull`` do not count."""
        if self._pulled:
            self._forget_pulled()
        return self.leased > len(self._pulled)

    def _forget_pulled(self) -> None:
        """Forget the pulled messages whose leases have ended."""
        for entry, turn in list(self._pulled.items()):
            if entry.ended or entry.available or entry.turn != turn:
                del self._pulled[entry]

    def _on_nothing(self, consumer: QueueConsumer) -> None:
        """Let a consumer wait that is ready and found no message."""
        outlet = consumer.outlet
        # The search stopped because its turn was over: there may be a message after all.
        if consumer.search is not None and consumer.search.pauses:
            self._resume(consumer)
            return
        if self._await_page(consumer):
            return
        too_large = consumer.too_large
        if too_large is not None:
            outlet.outgrow(too_large.length)
        outlet.rest(0)
        # ``rest`` and ``outgrow`` may have ended the link, or used its credit (drain, 2.6.7).
        if not consumer.waits and outlet in self.outlets and outlet.ready():
            consumer.waits = True
            self._queue_of(consumer.priority).append(consumer)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        browser = self._browsers.pop(outlet, None)
        if browser is not None:
            self._paging.pop(browser, None)
        consumer = self._consumers.pop(outlet, None)
        if consumer is not None:
            self._paging.pop(consumer, None)
            self._available.searches.pop(consumer, None)
            queue = self._queue_of(consumer.priority)
            if consumer.waits:
                consumer.waits = False
                queue.remove(consumer)
            if not queue:
                self._waiting = tuple(each for each in self._waiting if each[1] is not queue)
            if consumer is self._active:
                self._active = None
                self._on_change()
        if not self._closed:
            self.touch()
        self.check_used()

    def _queue_of(self, priority: int) -> deque[QueueConsumer]:
        """Return the consumers of this priority that wait."""
        for each, queue in self._waiting:
            if each == priority:
                return queue
        made = deque[QueueConsumer]()
        self._waiting = tuple(sorted([*self._waiting, (priority, made)], key=_priority, reverse=True))
        return made

    def _activate(self) -> None:
        """Make the next consumer active, once all leases of the last one have ended."""
        while self._active is None and self._consumers and not self._consumers_have_some:
            outlet, self._active = next(iter(self._consumers.items()))
            self.on_demand(outlet)

    def _dispatch(self, entry: Entry) -> bool:
        """Lease a message to the next waiting consumer that may have it.

        The consumers of one priority are in a deque. The first one is asked and moved to the end, whether it takes the message or not,
        so they take turns. A lower priority is asked only if no consumer of a higher one takes the message. ``tries`` is the number of
        consumers of this priority that were not asked yet: they are the first in the deque. If a link fails while it is asked, its
        consumer leaves the deque, and perhaps others with it. Then ``tries`` is the length of the deque again: a consumer may be asked
        twice, but none is left out.

        Returns:
            Whether the message was leased. If not, the caller makes it available, or shows it later with its group. False also if
            the turn is over: consumers that were not asked then search for themselves in a later turn, and find it.
        """
        if self._held_until is not None:
            return False
        asked = False
        for _, waiting in self._waiting:
            tries = len(waiting)
            while tries and waiting:
                # Testing a filter takes time, so only after that look whether the turn is over.
                if asked and self.turns.is_over():
                    self._ask_later(waiting, tries)
                    return False
                tries -= 1
                consumer = waiting[0]
                try:
                    # Its credit is used up or it cannot write now: it asks again by ``on_demand``.
                    if not consumer.outlet.ready():
                        consumer.waits = False
                        waiting.popleft()
                        continue
                    waiting.rotate(-1)
                    limit = consumer.limit
                    # Most consumers take any message: tested here, to save a call for each message.
                    takes_all = consumer.search is None and (limit is None or entry.length <= limit)
                    if not (takes_all and entry.eligibility is ANYONE) and not self._may_have(
                        consumer, entry
                    ):
                        asked = True
                        continue
                except Exception:  # The outlet or the filter failed.
                    self.end_link(consumer.outlet)
                    tries = len(waiting)
                    continue
                try:
                    if self._lease(entry, consumer):
                        return True
                except NotTakenError:  # This peer can never take the message, but another may.
                    if entry.group is not None:
                        self._groups.unleased(entry.group, entry)
                    continue
                # The outlet failed, and ``_lease`` has ended its link.
                if entry.group is not None:
                    self._groups.unleased(entry.group, entry)
                tries = len(waiting)
        return False

    def _ask_later(self, first: deque[QueueConsumer], tries: int) -> None:
        """Let waiting consumers that were not asked search in a later turn.

        These are the first ``tries`` consumers of ``first``, and all of lower priorities.
        """
        unasked: list[QueueConsumer] = []
        for _, waiting in self._waiting:
            if waiting is first:
                unasked += [waiting.popleft() for _ in range(tries)]
            elif unasked:
                unasked += waiting
                waiting.clear()
        for consumer in unasked:
            consumer.waits, consumer.resumes = False, True
        turns = self.turns
        looking = each_in_turns(turns, iter(unasked), self._look_on)
        turns.later(partial(take_steps, turns, looking))

    def _may_have(self, consumer: QueueConsumer, entry: Entry) -> bool:
        """Whether a waiting consumer may have the message, and takes it."""
        if entry.eligibility is not ANYONE and not entry.eligibility.admits(consumer.key):
            return False
        if consumer.search is None and (consumer.limit is None or entry.length <= consumer.limit):
            return True
        if consumer.takes(entry):
            return True
        # The message is too large for this peer. If no other consumer takes it, nothing else may be left for this
        # one, and its link must end: it looks again later.
        if consumer.has_passed(entry):
            self._resume(consumer)
        return False

    def _lease(self, entry: Entry, consumer: QueueConsumer) -> bool:
        """Lease a message to a consumer, and give it to the outlet.

        Returns:
            False if the outlet failed: its link is ended, and the message is neither available nor leased.

        Raises:
            NotTakenError: the peer cannot take the message, which is neither available nor leased. The consumer will not be
                offered it again.
        """
        entry.available = False
        entry.outlet_key = consumer.key
        entry.turn = turn = entry.turn + 1
        if entry.noted:
            self._available.forget_note(entry)
        if entry.group is not None:
            self._groups.leased(entry.group, entry, consumer.key)
        try:
            consumer.outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, entry)
        except NotTakenError as refusal:
            entry.turn -= 1  # It was not sent, so this was no delivery.
            self._pulled.pop(entry, None)
            self._available.begin_search(consumer)
            self._leave_to_others(entry, consumer, refusal)
            raise
        except Exception:
            # The outlet may fail after it has answered the lease. Then the message has gone its way already: it is
            # leased again (another turn), available, or gone.
            answered = entry.turn != turn or entry.available or entry.ended
            if not answered:
                entry.turn -= 1  # It was not sent, so this was no delivery.
            self.end_link(consumer.outlet)
            return answered
        if turn > 1:
            self.held.redelivered += 1
        return True

    def _leave_to_others(self, entry: Entry, reader: QueueReader, refusal: NotTakenError) -> None:
        """Remember a message that a reader cannot take; log it once for each message."""
        reader.note_not_taken(entry)
        known = self._left_to_others
        if len(known) > self.held.length + _STALE:
            known = self._left_to_others = {each: None for each in known if not each.ended}
        _log.log(
            logging.DEBUG if entry in known else logging.WARNING,
            "%r: message %d of %d octets stays for other consumers than %r, which cannot take it: %s",
            self,
            unpack_sequence(entry.order),
            entry.length,
            reader.outlet,
            refusal,
        )
        known[entry] = None

    def _give_copy(self, browser: QueueBrowser, entry: Entry) -> bool:
        """Copy a message to a browser; return False if its peer cannot take it."""
        try:
            browser.outlet.give(entry.aged(self._clock.now()) if entry.ages else entry.content, None)
        except NotTakenError as refusal:
            self._leave_to_others(entry, browser, refusal)
            return False
        return True

    def _restore(self, entry: Entry) -> None:
        """Offer a message again that could not be given, in its old place."""
        if self._closed:
            return
        if entry.group is not None:
            self._groups.returned(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        self._on_change()

    def _show(self, browser: QueueBrowser) -> None:
        outlet, is_over = browser.outlet, self.turns.is_over
        while outlet.ready():
            entry = browser.find(self._available.all_blocks, is_over)
            if entry is None:
                if browser.pauses:
                    self._resume(browser)
                    return
                if self._await_page(browser):
                    return
                too_large = browser.too_large
                if too_large is not None:
                    outlet.outgrow(too_large.length)
                outlet.rest(0)
                return
            self._give_copy(browser, entry)
            if is_over() and outlet.ready():
                self._resume(browser)
                return
        outlet.rest(self.available)

    def _resume(self, taker: QueueReader) -> None:
        """Continue a search in a later turn."""
        if not taker.resumes:
            taker.resumes = True
            turns = self.turns
            if turns is ENDLESS:
                taker.outlet.peer.start_soon(self._wait_and_look_on, taker)
            else:
                turns.later(partial(self._look_on, taker))

    async def _wait_and_look_on(self, taker: QueueReader) -> None:
        await trio.lowlevel.checkpoint()
        self._look_on(taker)

    def _look_on(self, taker: QueueReader) -> None:
        taker.resumes = False
        if taker.outlet in self.outlets:
            self.on_demand(taker.outlet)

    # -- back -------------------------------------------------------------------------------

    def redelivery_time(self, failures: int, annotations: Mapping[Any, Any] | None) -> float | None:
        """See ``EntryQueue.redelivery_time``."""
        asked = None if annotations is None else annotations.get(_DELIVERY_TIME)
        if isinstance(asked, int) and not isinstance(asked, bool):
            now = self._clock.now()
            due = min(self._clock.from_wall(asked), now + LONGEST_DELAY)
            return due if due > now else None
        delay = self.policy.delay_after(failures) if failures else 0
        return self._clock.now() + delay if delay else None

    def refuse(self, entry: Entry, key: object) -> None:
        """Keep a message from the receiver with this key while that exists (3.4.5)."""
        if not self._closed:
            self._refusals.add(entry, key)

    def forget_refusals_by(self, key: OutletKey) -> None:
        """Forget the refusals of a receiver that has ended.

        The messages may go to any other receiver, also to one of the same name.
        """
        self._refusals.forget(key)
        self._readmit_some()

    def forget_refusals_of(self, entry: Entry) -> None:
        """Forget the refusals of a message that is gone."""
        self._refusals.remove(entry)

    def _readmit_some(self) -> None:
        self._refusals.go_on()
        if self._refusals.unfinished:
            self._deadline_timer.schedule(self._clock.now())

    def may_grow(self, before: int, size: int) -> bool:
        """See ``EntryQueue.may_grow``."""
        limits = (outlet.max_message_size for outlet in self.outlets)
        return not any(limit is not None and before <= limit < size for limit in limits)

    def recount(self, entry: Entry, before: int) -> None:
        """See ``EntryQueue.recount``."""
        self.held.recount(entry, before)

    def put_back(self, entry: Entry) -> None:
        """Return a message to its old place after a lease, once it is due."""
        if self._closed:
            return
        self.held.returned += 1
        limit = self.policy.delivery_limit
        if limit is not None and entry.failures >= limit:
            self._end_leased(entry, "delivery-limit")
        # A message that expires while it is leased stays with its receiver, and dies only now (3.2.1).
        elif entry.deadline is not None and entry.deadline <= self._clock.now():
            self._end_leased(entry, "expired")
        elif entry.due is not None:
            self._delay(entry, leased=True)
        elif entry.group is not None:
            self._groups.returned(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        if self._bounded and self.policy.bound == "ready":
            self._drop_excess()
        self._on_change()

    def _delay(self, entry: Entry, *, leased: bool) -> None:
        """Let a message wait until it is due, after a lease or after a restart."""
        self._deadline_timer.schedule(self.held.delay(entry))
        if entry.group is not None:
            self._groups.delayed(entry.group, entry, leased=leased)

    def _end_delay(self, entry: Entry) -> None:
        """Make a delayed message available, which is due, or let it die if it has expired."""
        entry.due = None
        if entry.deadline is not None and entry.deadline <= self._clock.now():
            if entry.group is not None:
                self._groups.removed(entry.group, entry)
            self.held.end(entry, "expired")
        elif entry.group is not None:
            self._groups.due(entry.group, entry)
        elif not self._dispatch(entry):
            self._available.add(entry)
        self._show_to_browsers(entry)
        if self._bounded and self.policy.bound == "ready":
            self._drop_excess()
        self._on_change()

    def _drop_excess(self, size: int = 1) -> None:
        """Drop the oldest messages while there are more than the policy permits.

        Messages that the store has now exceed the bound if they arrived together, and returned ones if only available
        messages count.

        Args:
            size: octets of the last message that may exceed the limit: those of a new message, whatever its size.
        """
        while not self._closed and self.held.is_full(-1, -size) and self.policy.overflow == "drop-oldest":
            entry = self._first_to_drop()
            if entry is None or self.held.letters_wait:
                return
            if not self.held.is_full(-1, -size):  # That has read a page, and dropped messages of it.
                return
            self._remove_available(entry, "overflow")
            turns = self.turns
            if turns.is_over():
                turns.later(partial(self._drop_excess, size))
                return

    def _first_to_drop(self) -> Entry | None:
        """Return the message that dies if there is no room; None if none is available."""
        while (rest := self.held.rest) is not None and (
            rest.rank is None or self._available.lacks(rest.rank)
        ):
            self.page_in_now()
        return self._available.oldest()

    def drop(self, entry: Entry) -> None:
        """Remove a message that its receiver accepted."""
        if self._closed:
            return
        self.held.figures["accepted"] += 1
        if entry.group is not None:
            self._groups.ended(entry.group)
        self.held.forget(entry)
        self._on_change()

    def reject(self, entry: Entry, condition: str | None, description: str | None) -> None:
        """Let a message die that its receiver rejected."""
        if self._closed:
            return
        self._end_leased(entry, "rejected", condition, description)
        self._on_change()

    def _end_leased(
        self, entry: Entry, reason: Death, condition: str | None = None, description: str | None = None
    ) -> None:
        if entry.group is not None:
            self._groups.ended(entry.group)
        self.held.end(entry, reason, condition, description)

    def _remove_available(self, entry: Entry, reason: Death) -> None:
        self._available.remove(entry)
        if entry.group is not None:
            self._groups.removed(entry.group, entry)
        self.held.end(entry, reason)

    def _on_change(self) -> None:
        """Activate another consumer if that is possible now (``single_active``)."""
        if self._active is None and self.policy.single_active:
            self._activate()

    def on_gone(self, entry: Entry) -> None:  # noqa: ARG002
        """Use the room of a message that is gone."""
        self._on_room()

    def _on_room(self) -> None:
        if self._blocked:
            self._unblock()
        if self._kept_by is not None and not self.held.length:
            self.check_used()

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for inlet, call in blocked.items():
            self.attempt(inlet, call, inlet)

    # -- dead letters -----------------------------------------------------------------------

    def find_dead_letters(self, address: str) -> Node:
        """Return the node of the dead-letter address.

        Raises:
            RefusedError: there is no such node, or it is this queue.
        """
        if self.container is None:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is in no container")
        if address == self.address:
            raise RefusedError(Condition.NOT_ALLOWED, "a queue cannot be its own dead-letter address")
        return self.container.find(address).for_dead_letters()

    def publication_of(self, content: Content) -> Publication | None:
        """Return where a message was published to; None if that is not known."""
        return content.publication

    def to_dead_letter(
        self, content: Content, reason: Death, condition: str | None, description: str | None
    ) -> Content:
        """Return the dead letter of a message that died here."""
        return content.dead(
            self.address, reason, self._clock.wall(), condition=condition, description=description
        )

    # -- time -------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Remove expired messages and offer those that are due.

        Leased messages stay. A queue that was not used for too long is deleted.
        """
        held = self.held
        if (
            held.deadlines.places or held.delayed.places
        ):  # Lengths would cost two calls for each of many queues.
            turns = self.turns
            for entry in self._expired_at_head() if self.expires_at_head else self.held.expired():
                self._remove_available(entry, "expired")
                if turns.is_over():
                    self._sweep_later()
                    return
            for entry in self.held.delayed.pop_due(self._clock.now()):
                self._end_delay(entry)
                if turns.is_over():
                    self._sweep_later()
                    return
        if self._refusals.unfinished:
            self._readmit_some()
        if self._held_until is not None and self._held_until <= self._clock.now():
            self._end_hold()
        if self._pages_at < math.inf and self._pages_at <= self._clock.now():
            self._pages_at = math.inf
            self._fetch_page()
        if self._rest_expires < math.inf and self._rest_expires <= self._clock.now():
            self._rest_expires = math.inf
            if (rest := held.rest) is not None and rest.expires is not None:
                rest.has_expired = True
                self._fetch_page()
        if self._unused_since is not None and self._end_of_use() <= self._clock.now():
            self._go()

    def _expired_at_head(self) -> Iterator[Entry]:
        while (entry := self._available.head()) is not None and self._has_expired(entry):
            yield entry
        if entry is None and self.held.deadlines.places:  # What expires may be next behind the horizon.
            self._fetch_page()

    def _sweep_later(self) -> None:
        if not self._sweeps:
            self._sweeps = True
            self.turns.later(self._sweep_rest)

    def _sweep_rest(self) -> None:
        self._sweeps = False
        if not self._closed:
            self.sweep()
            self._deadline_timer.check()

    def touch(self) -> None:
        """Restart the time of ``policy.expires`` if there is no receiver; only under trio."""
        if self.policy.expires is not None and not self.outlets:
            self._unused_since = self._clock.now()
            self._deadline_timer.schedule(self._end_of_use())

    def _end_of_use(self) -> float:
        since, expires = self._unused_since, self.policy.expires
        return math.inf if since is None or expires is None else since + expires

    def _next_due(self) -> float:
        if self._sweeps:
            return math.inf  # A later turn continues the sweep, and then sets the timer.
        if self._refusals.unfinished:
            return self._clock.now()
        held_until = math.inf if self._held_until is None else self._held_until
        return min(
            *(self._next_expiry(), self.held.delayed.next(), self._end_of_use(), held_until),
            *(self._pages_at, self._rest_expires),
        )

    def _next_expiry(self) -> float:
        if not self.expires_at_head:
            return self.held.deadlines.next()
        head = self._available.head()
        return math.inf if head is None or head.deadline is None else head.deadline

    # -- the end ----------------------------------------------------------------------------

    def check_used(self) -> None:
        """Delete a temporary queue that nothing keeps alive."""
        if self._closed or self._kept_by is None:
            return
        reasons = {
            "maker": self.has_maker,
            "links": bool(self.inlets or self.outlets or self.attaching_links),
            "messages": self.held.length > 0,
        }
        if not any(reasons[name] for name in self._kept_by):
            self._go()

    def _go(self) -> None:
        self.close()
        if self._on_unused is not None:
            self._on_unused(self)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._unused_since = None
        self._deadline_timer.cancel()
        self._refusals.clear()
        self._paging.clear()
        turns = self.turns
        freeing = paced(turns, self.held.close())
        super().close()
        take_steps(turns, freeing)
        self._unblock()  # Inlets of exchanges that wait for room here can reach other queues.

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError(Condition.NOT_FOUND, f"{self.address!r} is deleted")
        self.check_here()

    def __repr__(self) -> str:
        return (
            f"<Queue {self.address!r} length={self.held.length} links={len(self.inlets) + len(self.outlets)}>"
        )


def _by_priority(reader: QueueReader) -> int:
    return -reader.outlet.subscription_terms.priority


def _priority(waiting: tuple[int, deque[QueueConsumer]]) -> int:
    return waiting[0]
