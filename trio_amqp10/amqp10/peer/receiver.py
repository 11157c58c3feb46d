"""The receiving end of a link: grant credit, receive deliveries in order (2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import trio

from trio_amqp10.amqp10.engine.delivery import RELEASED, is_terminal
from trio_amqp10.amqp10.engine.octet_bound import OctetBound
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.engine.unsettled_state import UNBOUND
from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.errors import TimedOutError, time_limit

from .credit import CreditWindow, PrefetchWindow
from .delivery import check_transaction
from .errors import FilterNotSupportedError
from .link import Link
from .link_lifecycle import LinkPhase
from .link_opening import LinkOpening
from .link_options import LinkOptions, check_address, check_source
from .statistics import receiving_figures

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterable

    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

    from .delivery import Delivery, Transactional
    from .link_carriers import LinkConnection, LinkSession
    from .link_options import ReceiverOptions
    from .statistics import ReceiverStatistics

DEFAULT_CREDIT = 100
STREAMING_CREDIT = 10
"""The default credit of a streaming receiver.

Each message may be large, and the next one is needed only after this one was read.
"""

BOUNDED_CREDIT = 1000
"""The default credit with ``credit_octets``, which bounds octets instead."""

_ATTACHED = LinkState.ATTACHED


def no_message(receiver: Receiver, seconds: float) -> TimedOutError:
    """Return the error of a call that has waited for a message for so many seconds."""
    return TimedOutError(f"no message from {receiver.node!r} within {seconds:g} s{receiver.why_suspended()}")


class Receiver(Link["ReceiverLink"]):
    """Receives messages from a node of the peer. Any number of tasks may use it.

    An iteration (``async for delivery in receiver``) ends when the peer detaches, ends or closes without an
    error, or when this end closes; after an error or a lost transport it raises.
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
        self._later = 0  # credit that was granted (or drained, if negative) while the link was lost

    @property
    def _queue(self) -> deque[Delivery]:
        return cast("deque[Delivery]", self._link.queue)

    @property
    def address(self) -> str | None:
        """The address of the node at the peer.

        For a dynamic node, the address that the peer has chosen.
        """
        return getattr(self.remote.source, "address", None)

    @property
    def available(self) -> int:
        """The messages that wait for credit, as the sender last reported."""
        return self._link.available

    @property
    def buffered(self) -> int:
        """The deliveries that have arrived and were not received by the program yet."""
        return len(self._queue)

    def statistics(self) -> ReceiverStatistics:
        """Return figures of the link: its state, and totals since it was opened."""
        figures = receiving_figures(self._link, self.node)
        figures["messages"] = self.deliveries  # of former attachments too
        return figures

    @property
    def unsettled(self) -> int:
        """The deliveries that have arrived and are not settled.

        Buffered deliveries count too.
        """
        return len(self._link.tags)

    # -- credit -----------------------------------------------------------------------------

    def start(self, options: LinkOptions) -> None:
        """Write the attach, and the first credit directly after it."""
        link = self._link
        super().start(options)
        if self._octet_bound is not None:
            self._octet_bound.held = sum(len(one.payload) for one in link.queue)  # from a former attachment
            self._top_up()
        elif self._window.size:
            self._window.fill(link)

    def attach_to(self, session: LinkSession) -> None:
        granted = self._kept_credit() + self._later
        self._later = 0
        super().attach_to(session)
        if granted > 0 and not self._window.size:
            self._link.set_credit(granted)

    def _kept_credit(self) -> int:
        """Return the credit of the present attachment that the next one gets again.

        It gets none that is topped up automatically, was drained, or was for a transaction, which the loss has rolled back.
        """
        old = self._link
        return 0 if self._window.size or old.drain or old.flow_properties else old.credit

    def grant(self, credit: int, *, transaction: Transactional | None = None) -> None:
        """Let the sender send ``credit`` more messages; for receivers with ``credit=0``.

        Args:
            credit: the number of messages.
            transaction: acquire the messages as a part of it: a rollback gives them back, with an outcome or
                not (4.4.3). They can be settled as a part of the same transaction only.

        Raises:
            LocalProtocolError: ``credit`` is below 1 or no int, or the transaction cannot acquire on this link.
            LinkDetachedError, trio.ClosedResourceError, ...: the link ended.
        """
        if type(credit) is not int or credit <= 0:
            raise LocalProtocolError(f"grant({credit!r}): expected a number of messages, at least 1")
        self.check_alive()
        if transaction is not None:
            check_transaction(transaction)
            if self._window.size:
                raise LocalProtocolError(
                    "a receiver with automatic credit would acquire too many messages: open it with credit=0"
                )
            transaction.acquire(self)
        if self.is_suspended:
            self._later += credit
        else:
            self._link.set_credit(self._link.credit + credit)

    def set_credit(self, credit: int) -> None:
        """Let the sender send exactly so many more messages.

        This replaces the credit that was granted before. For receivers with ``credit=0``. Messages that are under way still arrive (2.6.7).

        Args:
            credit: the number of messages; 0 for none.

        Raises:
            LocalProtocolError: ``credit`` is negative, or no int.
            LinkDetachedError, trio.ClosedResourceError, ...: the link ended.
        """
        if type(credit) is not int or credit < 0:
            raise LocalProtocolError(f"set_credit({credit!r}): expected a number of messages, at least 0")
        self.check_alive()
        if self.is_suspended:
            self._later = credit - self._kept_credit()
        else:
            self._link.set_credit(credit)

    def acquire_in(self, txn_id: bytes | None) -> None:
        """Acquire the next messages in this transaction; None for no transaction (4.4.3)."""
        self._link.flow_properties = None if txn_id is None else {"txn-id": txn_id}

    def acquired_in(self, txn_id: bytes) -> list[Delivery]:
        """Return the buffered deliveries that were acquired in this transaction."""
        return [one for one in self._queue if getattr(one.remote_state, "txn_id", None) == txn_id]

    def drop(self, deliveries: list[Delivery]) -> None:
        """Remove these deliveries from the buffer: the sender has taken them back."""
        dropped = set(map(id, deliveries))
        kept = [one for one in self._queue if id(one) not in dropped]
        self._lessen(one for one in self._queue if id(one) in dropped)
        self._queue.clear()
        self._queue.extend(kept)

    def _top_up(self) -> None:
        """Grant credit for the free room of the window, or of the octets."""
        if self._octet_bound is not None:
            self._top_up_octets(self._octet_bound)
        elif self._window.is_low(self._link):
            self._window.fill(self._link)

    def _top_up_octets(self, bound: OctetBound) -> None:
        """Grant credit for as many messages as probably fit into the free octets."""
        link = self._link
        wanted = min(self._window.size - len(self._queue), bound.messages())
        if (
            wanted > 0
            and link.credit <= wanted // 2
            and link.state in (LinkState.ATTACHED, LinkState.ATTACH_SENT)
        ):
            link.set_credit(wanted)

    def _lessen(self, deliveries: Iterable[Delivery]) -> None:
        """Count the octets of deliveries that left the buffer as free."""
        if self._octet_bound is not None:
            for delivery in deliveries:
                self._octet_bound.went(len(delivery.payload))
            self._link.session.refill_if_due()

    async def drain(self) -> list[Delivery]:
        """Let the sender use up the credit or give it back; return the buffer (2.6.7).

        The deliveries that the sender still sent are among the returned ones. The credit is zero afterwards,
        until ``grant``.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError, trio.ClosedResourceError: the link
                ended.

        Cancelled: the drain goes on, and its deliveries are buffered for ``receive``.
        """
        await self.use_up()
        drained = list(self._queue)
        self._queue.clear()
        self._lessen(drained)
        return drained

    async def use_up(self) -> None:
        """Drain as ``drain`` does, but leave the deliveries in the buffer.

        Raises: as ``drain``. Cancelled: the drain goes on.
        """
        self.check_alive()
        self._window.size = 0
        link = self._link
        if self.is_suspended:
            self._later = (
                -self._kept_credit()
            )  # the credit was lost with the link, and must not be granted again
        else:
            link.set_credit(link.credit, drain=True)
        await trio.lowlevel.checkpoint()
        while self._link.drain and self._link.credit:
            self.check_alive()
            # The time limit begins again whenever a delivery comes.
            with self._conn.expecting(f"the drain of the link {self.title}"):
                await self.wait()
        self.check_alive()

    # -- deliveries -------------------------------------------------------------------------

    async def receive(self, *, timeout: float | None = None) -> Delivery:  # noqa: ASYNC109
        """Return the next delivery. With ``credit=0`` and no credit, grant for this one.

        Args:
            timeout: seconds to wait at most; None for any time.

        Raises:
            TimedOutError: no delivery came within ``timeout``; none is lost. It is a ``trio.TooSlowError``.
            LinkDetachedError: the peer detached, with or without an error.
            SessionEndedError, ConnectionClosedError: the session or connection of the link ended.
            trio.ClosedResourceError: this end closed the link.

        Cancelled: no delivery is lost.
        """
        if timeout is not None:
            with time_limit(timeout, lambda: no_message(self, timeout)):
                return await Receiver.receive(self)  # not that of a subclass, which called this one
        await self._conn.pace.checkpoint()
        while not (self._link.queue and (self._link.state is _ATTACHED or self._still_good())):
            self.check_alive()
            await self._wait_for_delivery()
        return self._take()

    async def receive_many(self, most: int) -> list[Delivery]:
        """Wait for a delivery; return it with more from the buffer, up to ``most``.

        Raises: as ``receive``; and ``LocalProtocolError``: ``most`` is less than 1, or no int.

        Cancelled: no delivery is lost.
        """
        if type(most) is not int or most < 1:
            raise LocalProtocolError(f"receive_many({most!r}): expected a number of messages, at least 1")
        deliveries = [await self.receive()]
        while len(deliveries) < most and self._queue:
            deliveries.append(self._take())
        return deliveries

    def put_back(self, *deliveries: Delivery) -> None:
        """Put deliveries back into the buffer, first: the program did not take them."""
        self._queue.extendleft(reversed(deliveries))
        if self._octet_bound is not None:
            self._octet_bound.held += sum(len(one.payload) for one in deliveries)
        super().wake()

    def receive_nowait(self) -> Delivery:
        """Return the next delivery from the buffer.

        Raises:
            trio.WouldBlock: the buffer is empty. Others as ``receive``.
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
        """Drop the unsettled buffered deliveries of a link that has ended.

        The sender will send them again; settled ones are kept. A link that may be resumed keeps all. Return
        whether the next delivery may be received.
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
        """Discard the rest of the delivery that this task has read, if it has an outcome.

        The task wants the next delivery, and unread octets would close the window for all that follow.
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
            # Resumed deliveries need credit too (2.6.13), and the program may not grant any.
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
                if delivery.settled and delivery.complete:
                    # It was sent at most once, so the sender will not send it again.
                    link.enqueue(delivery)
        return link

    def check_answer(self, options: LinkOptions) -> None:
        """Compare the peer's attach with the options: settle modes and filters.

        A filter that the peer does not confirm is not applied (3.5.3).

        Raises:
            GuaranteeNotSupportedError: as for any link.
            FilterNotSupportedError: a required filter is not applied.
        """
        super().check_answer(options)
        asked = None if options.source is None else options.source.filter
        if not asked or options.filters == "optional":
            return
        confirmed: dict[Any, Any] = getattr(self.remote.source, "filter", None) or {}
        # Compare the names only: a peer may write the descriptor as a number, or choose a value itself.
        missing = [
            str(name) for name, wish in asked.items() if wish is not None and confirmed.get(name) is None
        ]
        if missing:
            raise FilterNotSupportedError(
                f"the link {self.title}: the peer does not apply {', '.join(map(repr, missing))} of the filters that were asked "
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
    """Return a receiver that is not attached yet.

    Its session is ``session``, or one that the options or the connection choose.

    Raises:
        LocalProtocolError: options that no attach can carry, or that contradict each other.
    """
    check_address(options.address)
    check_source(options.source)
    if options.filters not in ("required", "optional"):
        raise LocalProtocolError(f"filters={options.filters!r}: expected 'required' or 'optional'")
    streaming, own_session = options.streaming, options.own_session
    credit, octets, prefetch = options.credit, options.credit_octets, options.prefetch
    check_prefetch(prefetch, credit, octets)
    if octets is not None:
        if streaming or session is not None or own_session is False or credit == 0 or octets <= 0:
            raise LocalProtocolError(
                f"credit_octets={octets}: expected a number above 0, for a receiver with a session of its own "
                "and automatic credit, without streaming"
            )
        own_session = True
        credit = BOUNDED_CREDIT if credit is None else credit
    if credit is None:
        # With at most once, buffered messages are lost with the link, so none are sent ahead by default.
        credit = 0 if options.guarantee == "at-most-once" else default_credit(streaming)
    if credit < 0:
        raise LocalProtocolError(
            f"credit={credit}: expected a number of messages, or 0 to grant credit only by grant()"
        )
    link_options = options.for_link(
        connection.recovering,
        options.address,
        None,
        own_session=True if own_session is None and streaming and session is None else own_session,
        max_message_size=options.max_message_size,
        filters=options.filters,
    )
    return _Opening(connection, session, credit, link_options, streaming, octets, prefetch)


def check_prefetch(prefetch: int | None, credit: int | None, octets: int | None = None) -> None:
    """Raise if ``prefetch`` is too small or was given together with another bound.

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
            "prefetch bounds the unsettled deliveries, credit and credit_octets the buffered ones: give prefetch or the others"
        )


def default_credit(streaming: bool) -> int:
    """Return the credit of a receiver whose options give none."""
    return STREAMING_CREDIT if streaming else DEFAULT_CREDIT
