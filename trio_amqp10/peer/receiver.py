"""The receiving end of a link: give credit, take deliveries in order (2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import trio

from trio_amqp10.engine.delivery import RELEASED, is_terminal
from trio_amqp10.engine.octet_bound import OctetBound
from trio_amqp10.engine.states import LinkState
from trio_amqp10.engine.unsettled_state import UNBOUND
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import Role

from .credit import CreditWindow, PrefetchWindow
from .errors import FilterNotSupportedError
from .link import Link
from .link_lifecycle import LinkPhase
from .link_opening import LinkOpening
from .link_options import LinkOptions, check_address, check_dynamic, check_source
from .statistics import receiving_figures

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterable

    from trio_amqp10.engine.receiver import ReceiverLink

    from .delivery import Delivery, Transactional
    from .link_carriers import LinkConnection, LinkSession
    from .link_options import ReceiverOptions
    from .statistics import ReceiverStatistics

__all__ = ["Receiver", "open_receiver"]

DEFAULT_CREDIT = 100
STREAMING_CREDIT = 10
"""Each may be large, and the next is wanted when this one is read."""

BOUNDED_CREDIT = 1000
"""Where octets are what counts."""

_ATTACHED = LinkState.ATTACHED


class Receiver(Link["ReceiverLink"]):
    """Receives messages from a node of the peer. Any number of tasks may use it.

    Iterating (``async for delivery in receiver``) ends when the peer detaches, ends or closes
    without an error, or when we close; with an error or a lost transport it raises.
    """

    __slots__ = ("_later", "_octet_bound", "_readers", "_window")

    def __init__(
        self,
        session: LinkSession,
        link: ReceiverLink,
        credit: int,
        *,
        streaming: bool = False,
        octets: int | None = None,
        prefetch: int | None = None,
    ) -> None:
        super().__init__(session, link)
        self._readers: WeakKeyDictionary[trio.lowlevel.Task, Delivery] | None = None
        self._octet_bound: OctetBound | None = None
        if streaming:
            self._readers = WeakKeyDictionary()
            link.stream()
        if octets is not None:
            self._octet_bound = OctetBound(octets, session.connection.engine.limits.max_frame_size)
            link.limit(self._octet_bound)
        self._window = CreditWindow(credit)
        if prefetch is not None:
            self._window = PrefetchWindow(prefetch)
            self._window.count(link, self._top_up)
        self._later = 0  # what credit was granted, or taken back, while the link was lost

    @property
    def _queue(self) -> deque[Delivery]:
        return cast("deque[Delivery]", self._link.queue)

    @property
    def address(self) -> str | None:
        """Where messages come from: as the peer resolved it, for a dynamic node."""
        return getattr(self.remote.source, "address", None)

    @property
    def available(self) -> int:
        """Messages that the sender last said are waiting for credit."""
        return self._link.available

    @property
    def buffered(self) -> int:
        """Deliveries that have come and were not handed out yet."""
        return len(self._queue)

    def statistics(self) -> ReceiverStatistics:
        """What has come since it was opened, and where it stands: live figures by name."""
        figures = receiving_figures(self._link, self.node)
        figures["messages"] = self.deliveries  # as it was attached before, too
        return figures

    @property
    def unsettled(self) -> int:
        """Deliveries that have come and are not settled, handed out or not."""
        return len(self._link.tags)

    # -- credit -----------------------------------------------------------------------------

    def start(self, options: LinkOptions) -> None:
        """Write the attach, and the first credit right behind it."""
        link = self._link
        super().start(options)
        if self._octet_bound is not None:
            self._octet_bound.held = sum(len(one.payload) for one in link.queue)  # of before
            self._top_up()
        elif self._window.size:
            self._window.fill(link)

    def attach_to(self, session: LinkSession) -> None:
        old = self._link
        granted = old.credit + self._later
        if self._window.size or old.drain or old.flow_properties:
            granted = self._later  # kept topped up; or given back; or for a transaction, which is no more
        self._later = 0
        super().attach_to(session)
        if granted > 0 and not self._window.size:
            self._link.set_credit(granted)

    def grant(self, credit: int, *, transaction: Transactional | None = None) -> None:
        """Let the sender send ``credit`` more messages (for ``credit=0``, where nothing is granted otherwise).

        Args:
            credit: how many.
            transaction: acquire them as part of it: a rollback takes them back, whether they have an
                outcome or not (4.4.3). They can be settled as part of the same transaction only.

        Raises:
            LocalProtocolError: not a number of messages, or the transaction cannot have them.
            LinkDetachedError, trio.ClosedResourceError, ...: the link is gone.
        """
        if credit <= 0:
            raise LocalProtocolError(f"grant({credit}): expected a number of messages, at least 1")
        self.check_alive()
        if transaction is not None:
            if self._window.size:
                raise LocalProtocolError(
                    "a receiver that grants credit by itself would acquire more than asked for: open it with credit=0"
                )
            transaction.acquire(self)
        if self.is_suspended:
            self._later += credit
        else:
            self._link.set_credit(self._link.credit + credit)

    def acquire_in(self, txn_id: bytes | None) -> None:
        """Name the transaction that messages are acquired in from the next flow on; None for none (4.4.3)."""
        self._link.flow_properties = None if txn_id is None else {"txn-id": txn_id}

    def acquired_in(self, txn_id: bytes) -> list[Delivery]:
        """What was acquired in this transaction and not handed out yet."""
        return [one for one in self._queue if getattr(one.remote_state, "txn_id", None) == txn_id]

    def drop(self, deliveries: list[Delivery]) -> None:
        """These are not to be handed out: the sender has taken them back."""
        dropped = set(map(id, deliveries))
        kept = [one for one in self._queue if id(one) not in dropped]
        self._lessen(one for one in self._queue if id(one) in dropped)
        self._queue.clear()
        self._queue.extend(kept)

    def _top_up(self) -> None:
        """Keep credit granted for what the window and the octets have room for."""
        if self._octet_bound is not None:
            self._top_up_octets(self._octet_bound)
        elif self._window.is_low(self._link):
            self._window.fill(self._link)

    def _top_up_octets(self, bound: OctetBound) -> None:
        """The same, for as many messages as there is likely to be room for."""
        link = self._link
        wanted = min(self._window.size - len(self._queue), bound.messages())
        if (
            wanted > 0
            and link.credit <= wanted // 2
            and link.state in (LinkState.ATTACHED, LinkState.ATTACH_SENT)
        ):
            link.set_credit(wanted)

    def _lessen(self, deliveries: Iterable[Delivery]) -> None:
        """These are not in the queue any more."""
        if self._octet_bound is not None:
            for delivery in deliveries:
                self._octet_bound.went(len(delivery.payload))
            self._link.session.refill_if_due()

    async def drain(self) -> list[Delivery]:
        """Have the sender use up the credit or give it back; returns what it still sent (2.6.7).

        From then on credit is zero, until ``grant`` gives more.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError, trio.ClosedResourceError: the link is gone.

        Cancelled: the drain goes on, and what it brings is there for ``receive``.
        """
        await self.use_up()
        drained = list(self._queue)
        self._queue.clear()
        self._lessen(drained)
        return drained

    async def use_up(self) -> None:
        """As ``drain``, but what comes stays here for ``receive``.

        Raises: as ``drain``. Cancelled: the drain goes on.
        """
        self.check_alive()
        self._window.size = 0
        link = self._link
        if self.is_suspended:
            self._later = -link.credit  # it went with the link, and is not to come back with it
        else:
            link.set_credit(link.credit, drain=True)
        await trio.lowlevel.checkpoint()
        while self._link.drain and self._link.credit:
            self.check_alive()
            with self._conn.expecting(f"the drain of link {self.name!r}"):  # each time that something came
                await self.wait()
        self.check_alive()

    # -- deliveries -------------------------------------------------------------------------

    async def receive(self) -> Delivery:
        """The next delivery. With ``credit=0`` and nothing granted, grants for this one.

        Raises:
            LinkDetachedError: the peer detached, with or without an error.
            SessionEndedError, ConnectionClosedError: what carried the link is gone.
            trio.ClosedResourceError: we closed it.

        Cancelled: no delivery is lost.
        """
        await self._conn.pace.checkpoint()
        while not (self._link.queue and (self._link.state is _ATTACHED or self._still_good())):
            self.check_alive()
            await self._wait_for_delivery()
        return self._take()

    async def receive_many(self, most: int) -> list[Delivery]:
        """At least one delivery, and up to ``most`` if as many are here already.

        Raises: as ``receive``. Cancelled: no delivery is lost.
        """
        deliveries = [await self.receive()]
        while len(deliveries) < most and self._queue:
            deliveries.append(self._take())
        return deliveries

    def receive_nowait(self) -> Delivery:
        """The next delivery, if it is here.

        Raises:
            trio.WouldBlock: none is.
            Others as ``receive``.
        """
        if self._queue and (self._link.state is _ATTACHED or self._still_good()):
            return self._take()
        self.check_alive()
        raise trio.WouldBlock

    def __aiter__(self) -> Receiver:
        return self

    async def __anext__(self) -> Delivery:
        await self._conn.pace.checkpoint()
        while not (self._link.queue and (self._link.state is _ATTACHED or self._still_good())):
            if self.closed:
                cause = None if self.life is LinkPhase.CLOSED else self.cause()
                if cause is None:
                    raise StopAsyncIteration
                raise cause
            await self._wait_for_delivery()
        return self._take()

    def _take(self) -> Delivery:
        if self._readers is not None:
            self._leave_unread()
        link = self._link
        queue = link.queue
        delivery = queue.popleft()
        if self._octet_bound is not None:
            self._lessen((delivery,))  # type: ignore[arg-type]  # (as below)
            self._top_up_octets(self._octet_bound)
        elif link.credit + len(queue) <= self._window.half and self._window.is_low(link):
            self._window.fill(link)
        return delivery  # type: ignore[return-value]  # the connection makes deliveries of our class

    def _still_good(self) -> bool:
        """Drop deliveries of a link that is gone: the sender will send them again, but for settled ones.

        Those of a link that may come back wait for that.
        """
        if self._resumable_terminus is not None:
            return self.life is LinkPhase.CLOSED or bool(self._queue[0].settled)
        kept = [delivery for delivery in self._queue if delivery.settled]
        self._queue.clear()
        self._queue.extend(kept)
        return bool(kept)

    def reading(self, delivery: Delivery | None) -> None:
        assert self._readers is not None
        task = trio.lowlevel.current_task()
        if delivery is None:
            self._readers.pop(task, None)
        else:
            self._readers[task] = delivery

    def _leave_unread(self) -> None:
        """Whoever wants the next delivery reads no more of the last one, if that has its outcome.

        What it left unread would close the window to all that follows.
        """
        if self._readers is not None:
            left = self._readers.pop(trio.lowlevel.current_task(), None)
            if left is not None and (left.settled or is_terminal(left.state)):
                left.discard()

    async def _wait_for_delivery(self) -> None:
        self._leave_unread()
        link = self._link
        if (
            not self._window.size
            and link.credit <= self.waiting
            and not (link.drain and link.credit)
            and link.state is LinkState.ATTACHED
        ):
            link.set_credit(self.waiting + 1)
        await self.wait()
        self._conn.pace.blocked()

    def wake(self) -> None:
        self._top_up()
        super().wake()

    # -- attach and close -------------------------------------------------------------------

    def _take_up(self) -> None:
        awaited = len(self._resumable_terminus.awaited)
        if awaited and self._link.state is LinkState.ATTACHED:
            # What is to be resumed needs credit like anything else, and nobody may be asking for more.
            self._link.set_credit(self._link.credit + awaited)

    def _new_end(self, session: LinkSession) -> ReceiverLink:
        link = session.engine.receiver(self.name)
        if self._octet_bound is not None:
            link.limit(self._octet_bound)
        if self._readers is not None:
            link.stream()
        if isinstance(self._window, PrefetchWindow):
            self._window.count(link, self._top_up)
        if self._link.terminus is None:
            for delivery in self._queue:
                if delivery.settled and delivery.complete:  # it came at most once, and will not come again
                    link.enqueue(delivery)
        return link

    def check_answer(self, options: LinkOptions) -> None:
        """The same, and look for each filter that was asked for: what the peer leaves out it does not apply (3.5.3).

        Raises:
            GuaranteeNotSupportedError: as for any link.
            FilterNotSupportedError: a filter is needed, and not in place.
        """
        super().check_answer(options)
        asked = None if options.source is None else options.source.filter
        if not asked or options.filters == "optional":
            return
        told: dict[Any, Any] = getattr(self.remote.source, "filter", None) or {}
        # By name: a peer may write the descriptor as a number, or say which value it chose.
        missing = [str(name) for name, wish in asked.items() if wish is not None and told.get(name) is None]
        if missing:
            raise FilterNotSupportedError(
                f"link {self.name!r}: the peer does not apply {', '.join(map(repr, missing))} of the filters that were asked "
                'for; filters="optional" receives without them (3.5.3)'
            )

    def _is_reduced(self) -> bool:
        terminus = self._link.terminus
        if terminus is None or terminus.awaited:
            return False
        return all(delivery.delivery_id == UNBOUND for delivery in terminus.unsettled.values())

    def _give_back(self) -> None:
        link = self._link
        self._window.size = 0
        if link.state is LinkState.ATTACHED:
            if link.credit:
                link.set_credit(0)
            while self._queue:
                delivery = self._queue.popleft()
                if not delivery.settled:
                    link.session.settlement.dispose(delivery, RELEASED)

    def __repr__(self) -> str:
        return f"<Receiver {self.address!r} {self._link.state.name} credit={self.credit} buffered={self.buffered}>"


class _Opening(LinkOpening[Receiver]):
    __slots__ = ("_credit", "_octets", "_prefetch", "_streaming")

    _role = Role.RECEIVER

    def __init__(
        self,
        connection: LinkConnection,
        session: LinkSession | None,
        credit: int,
        options: LinkOptions,
        streaming: bool,
        octets: int | None,
        prefetch: int | None,
    ) -> None:
        super().__init__(connection, session, options)
        self._credit = credit
        self._octets = octets
        self._prefetch = prefetch
        self._streaming = streaming

    def _make(self, session: LinkSession, name: str) -> Receiver:
        link, kind = session.engine.receiver(name), session.connection.kinds.receiver
        made: Receiver = kind(
            session,
            link,
            self._credit,
            streaming=self._streaming,
            octets=self._octets,
            prefetch=self._prefetch,
        )
        return made


def open_receiver(
    connection: LinkConnection, options: ReceiverOptions, session: LinkSession | None = None
) -> LinkOpening[Receiver]:
    """A receiver that is yet to be attached, on a session, or on one that the options or the connection choose.

    Raises:
        LocalProtocolError: options that no attach can carry, or that make no sense together.
    """
    check_address(options.address)
    check_dynamic(options.source)
    check_source(options.source)
    if options.filters not in ("required", "optional"):
        raise LocalProtocolError(f"filters={options.filters!r}: 'required' and 'optional' are possible")
    streaming, own_session = options.streaming, options.own_session
    credit, octets, prefetch = options.credit, options.credit_octets, options.prefetch
    check_prefetch(prefetch, credit, octets)
    if octets is not None:
        if streaming or session is not None or own_session is False or credit == 0 or octets <= 0:
            raise LocalProtocolError(
                f"credit_octets={octets}: a number of octets above 0, for a receiver with a session of its own "
                "that grants credit by itself, and is not streaming"
            )
        own_session = True
        credit = BOUNDED_CREDIT if credit is None else credit
    if credit is None:
        # What was prefetched at most once is lost with the link, so nothing is, unless asked for.
        credit = 0 if options.guarantee == "at-most-once" else default_credit(streaming)
    if credit < 0:
        raise LocalProtocolError(f"credit={credit}: expected a number of messages; 0 for none but by grant()")
    said = options.for_link(
        connection.recovering,
        options.address,
        None,
        own_session=True if own_session is None and streaming and session is None else own_session,
        max_message_size=options.max_message_size,
        filters=options.filters,
    )
    return _Opening(connection, session, credit, said, streaming, octets, prefetch)


def check_prefetch(prefetch: int | None, credit: int | None, octets: int | None = None) -> None:
    """Refuse a bound on unsettled deliveries that is none, or beside one on deliveries that wait.

    Raises:
        LocalProtocolError: it is below 1, or ``credit`` or ``credit_octets`` is given too.
    """
    if prefetch is None:
        return
    if prefetch < 1:
        raise LocalProtocolError(
            f"prefetch={prefetch}: expected a number of unsettled deliveries, at least 1"
        )
    if credit is not None or octets is not None:
        raise LocalProtocolError(
            "prefetch bounds what is unsettled, credit what waits here: give one of the two"
        )


def default_credit(streaming: bool) -> int:
    """What is kept granted where nothing else is said."""
    return STREAMING_CREDIT if streaming else DEFAULT_CREDIT
