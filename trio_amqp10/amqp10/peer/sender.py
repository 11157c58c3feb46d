"""The sending end of a link: credit, send, outcome (2.6.7, 2.6.12)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import trio

from trio_amqp10.amqp10.message import Message, encode_message
from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.net.errors import GoneError, TimedOutError

from .delivery import Outcome, OutgoingDelivery, Transactional, check_transaction, raise_unless_accepted
from .errors import DeliveryInDoubtError
from .link import Link
from .link_opening import LinkOpening, check_relay
from .link_options import check_address, check_source
from .statistics import sending_figures
from .stream_sender import StreamSender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp10.engine.outgoing_transfers import Outgoing
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.spec.transactions import TransactionalState

    from .link_carriers import LinkConnection, LinkSession
    from .link_options import SenderOptions
    from .statistics import SenderStatistics


def not_sent(sender: Sender, seconds: float, outage: str = "") -> TimedOutError:
    """Return the error of a call that could not send its message in time.

    ``outage`` is the reason of another link that the call needs.
    """
    lacking = "room in the session" if sender.credit else "credit"
    why = outage or sender.why_suspended() or f": no {lacking} from {sender.node!r}"
    return TimedOutError(f"not sent within {seconds:g} s{why}", sent=False)


class Sender(Link["SenderLink"]):
    """Sends messages to a node of the peer. Any number of tasks may use it."""

    __slots__ = ("_blocked",)
    stream_class: ClassVar[type[StreamSender]] = StreamSender

    def __init__(self, session: LinkSession, link: SenderLink) -> None:
        super().__init__(session, link)
        self._blocked = 0  # tasks that wait to send

    @property
    def address(self) -> str | None:
        """The address of the node at the peer.

        For a dynamic node, the address that the peer has chosen.
        """
        return getattr(self.remote.target, "address", None)

    def statistics(self) -> SenderStatistics:
        """Return figures of the link: its state, and totals since it was opened."""
        figures = sending_figures(self._link, self.node, waiting=self.blocked)
        figures["messages"] = self.deliveries  # of former attachments too
        figures["unsettled"] = self.unsettled
        return figures

    @property
    def unsettled(self) -> int:
        """The deliveries that were sent and are not settled.

        Deliveries of former attachments count too.
        """
        terminus = self._resumable_terminus
        return self._link.unsettled if terminus is None else len(terminus.unsettled)

    @property
    def blocked(self) -> int:
        """The number of tasks that wait until they can send."""
        return self._blocked

    @property
    def draining(self) -> bool:
        """Whether the receiver wants its credit used or given back now (2.6.7)."""
        return self._link.drain

    async def send(
        self,
        message: Any,
        *,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> Outcome | None:
        """Send a message and wait until the peer has accepted it.

        Waits while the peer grants no credit, for example because a queue is full.

        Args:
            message: bytes, str, any AMQP value, or a ``Message``.
            tag: the delivery tag, at most 32 octets, unique among unsettled deliveries; generated if None.
            settled: do not wait for an outcome: at most once (on a link whose settle mode allows it).
            transaction: send as a part of it: other receivers get the message after its commit (4.4.1).

        Returns:
            The accepted outcome; None if the delivery was sent settled.

        Raises:
            DeliveryRejectedError, DeliveryReleasedError, DeliveryModifiedError: the message was not accepted.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link has ended; if the message
                was already on its way, it is unknown whether it arrived.
            TransactionRolledBackError: the transaction was lost with its connection.
            LocalProtocolError: the message cannot be encoded; nothing was sent.

        Cancelled: the outcome is unknown. If it matters, use ``transmit``, and await the outcome of its
        delivery.
        """
        delivery: OutgoingDelivery | None = None
        if not (settled or transaction is not None or self.is_written):
            await self._conn.pace.checkpoint()
            if self._link.sendable() and not self._link.drain:
                delivery = self._conn.pump.write_at_once(partial(self.send_nowait, message, tag=tag))
        if delivery is None:
            delivery = await self.transmit(message, tag=tag, settled=settled, transaction=transaction)
        outcome = await delivery.outcome()
        raise_unless_accepted(outcome, delivery)
        return outcome

    async def transmit(
        self,
        message: Any,
        *,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> OutgoingDelivery:
        """Wait for credit and room, send, and return without waiting for the outcome.

        With a store in a file it returns when the message is written to the file. If the file cannot be
        written, the failure is logged, and the message is sent anyway.

        Raises: as ``send``, but for the outcomes.

        Cancelled: nothing was sent.
        """
        payload = encode_message(message)
        message_format = message.message_format if isinstance(message, Message) else 0
        await self._conn.pace.checkpoint()
        state = None if transaction is None else check_transaction(transaction).state_on(self)
        while (delivery := self._link.send(payload, settled, tag, message_format, state)) is None:
            state = await self._until_sendable_in(transaction)
        if transaction is not None:
            transaction.posted(cast("OutgoingDelivery", delivery))
        link = self._link
        if link.drain and not self._blocked:
            link.drained()
        if self._resumable_state is not None and self._resumable_state.is_written:
            await self._resumable_state.flushed()
        return delivery  # type: ignore[return-value]  # the connection makes deliveries of our class

    def stream(
        self,
        length: int | None = None,
        *,
        message: Message | None = None,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> StreamSender:
        """Send a message that is larger than memory, block by block.

        Use it as ``async with sender.stream() as body: await body.send_all(block)``.

        Args:
            length: octets of the body, if known: then the body is one data section; otherwise each block is
                one.
            message: a ``Message`` without a body, for the sections around the body.
            tag, settled, transaction: as for ``send``. A transaction can end only after its streams.

        Raises: nothing before it is entered; then as ``transmit``.
        """

        async def begin(octets: bytes, size: int, message_format: int) -> Outgoing:
            return await self._begin(octets, size, settled, tag, message_format, transaction)

        return self.stream_class(self, begin, length, message)

    async def _begin(
        self,
        octets: bytes,
        size: int,
        settled: bool,
        tag: bytes | None,
        message_format: int,
        transaction: Transactional | None,
    ) -> Outgoing:
        await self._conn.pace.checkpoint()
        self._link.check_size(size)
        state = None if transaction is None else check_transaction(transaction).state_on(self)
        while (out := self._link.begin(octets, settled, tag, message_format, state)) is None:
            state = await self._until_sendable_in(transaction)
        if transaction is not None:
            transaction.posted(cast("OutgoingDelivery", out.delivery))
        link = self._link
        if link.drain and not self._blocked:
            link.drained()
        return out

    def send_nowait(
        self,
        message: Any,
        *,
        tag: bytes | None = None,
        settled: bool = False,
        transaction: Transactional | None = None,
    ) -> OutgoingDelivery:
        """Send without waiting.

        Raises:
            trio.WouldBlock: there is no credit, or no room; nothing was sent. Others as ``transmit``.
        """
        payload = encode_message(message)
        message_format = message.message_format if isinstance(message, Message) else 0
        state = None if transaction is None else check_transaction(transaction).state_on(self)
        delivery = self._link.send(payload, settled, tag, message_format, state)
        if delivery is None:
            self.check_alive()
            raise trio.WouldBlock
        if transaction is not None:
            transaction.posted(cast("OutgoingDelivery", delivery))
        return cast("OutgoingDelivery", delivery)

    def has_room_for(self, messages: int) -> bool:
        """Whether so many messages have credit and room.

        It may be read in another thread. The answer is out of date as soon as the state of the link changes.
        """
        link = self._link
        return (
            link.credit >= messages
            and link.session.windows.remote_incoming_window >= messages
            and not self._blocked
            and link.sendable()
        )

    def check_size(self, payload: bytes) -> None:
        """Raise ``MessageSizeError`` if the peer does not accept so large a payload."""
        self._link.check_size(len(payload))

    def send_payload(self, payload: bytes, settled: bool, message_format: int) -> OutgoingDelivery | None:
        """Send an encoded message without waiting.

        Return None if there is no credit or no room.

        Raises: as ``transmit``.
        """
        delivery = self._link.send(payload, settled, None, message_format)
        if delivery is None:
            self.check_alive()
        return delivery  # type: ignore[return-value]  # as in ``transmit``

    @property
    def is_written(self) -> bool:
        """Whether ``transmit`` waits until a store has written the message to a file."""
        return self._resumable_state is not None and self._resumable_state.is_written

    async def wait_sendable(self) -> None:
        """Wait until ``send_nowait`` can send.

        While ``draining`` holds, the receiver waits for messages for all of its credit, or for the credit:
        call ``give_back`` when you have no messages.

        Raises: as ``transmit``. Cancelled: nothing has happened.
        """
        await self._until_sendable(trio.lowlevel.checkpoint)

    async def _until_sendable_in(self, transaction: Transactional | None) -> TransactionalState | None:
        """Wait until a message can be sent, and return the state for its transfer."""
        try:
            await self._until_sendable()
        except GoneError:
            if transaction is not None:
                transaction.raise_if_lost()
            raise
        self._conn.pace.blocked()
        return None if transaction is None else transaction.state_on(self)  # it may have ended meanwhile

    async def _until_sendable(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Wait until a message can be sent.

        While a task waits here, credit is not given back to a receiver that drains: the task will use it.
        """
        self._blocked += 1
        try:
            if first is not None:
                await first()
            while not self._link.sendable():
                self.check_alive()
                self._link.await_sendable()
                await self.wait()
        except BaseException:
            self._blocked -= 1
            link = self._link
            if link.drain and not self._blocked:
                link.drained()
            raise
        self._blocked -= 1

    def give_back(self) -> None:
        """Give unused credit back to a receiver that is ``draining`` (2.6.7).

        Needed only after ``wait_sendable`` and ``send_nowait``; the other methods do it. Does nothing if the
        receiver does not drain.
        """
        self._link.drained()

    async def wait_written(self) -> None:
        """Wait until all frames of each begun message are written, or the link ended.

        Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        while self._link.in_progress and not self.closed:
            await self.wait()

    async def flush(self) -> None:
        """Wait until no delivery of this link is unsettled.

        Raises:
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the link ended before.

        Cancelled: nothing is lost; call it again.
        """
        await trio.lowlevel.checkpoint()
        while self.unsettled:
            self.check_alive()
            self._link.watch_unsettled = True
            await self.wait()
        self._link.watch_unsettled = False
        if self._link.in_doubt:
            self.check_alive()

    async def settle_up(self) -> None:
        """Wait until all deliveries are settled, for at most ``close_timeout`` seconds.

        Cancelled: nothing has happened; the link can be used on.
        """
        # A receiver must forget unsettled deliveries when the link is closed (2.6.6), and a message that it has not
        # processed yet would be lost without an error. So wait for the outcomes, as long as a close may take.
        with trio.move_on_after(self._conn.close_timeout):
            while self.unsettled and not self.closed:
                self._link.watch_unsettled = True
                await self.wait()

    def wake(self) -> None:
        super().wake()
        if self._link.drain and not self._blocked:
            self._link.drained()

    def _new_end(self, session: LinkSession) -> SenderLink:
        return session.engine.sender(self.name)

    def _is_reduced(self) -> bool:
        link = self._link
        link.watch_unsettled = True
        return (link.resending is None or link.resending.done) and not link.unsettled

    def raise_if_outcome_lost(self, delivery: OutgoingDelivery) -> None:
        """Raise if no outcome of this delivery can arrive any more.

        As ``Link.raise_if_outcome_lost``, and ``DeliveryInDoubtError`` if the peer has forgotten the delivery
        without an outcome.
        """
        terminus = self._resumable_terminus
        if terminus is not None:
            for sent in terminus.in_doubt:
                if sent.delivery is delivery:
                    message = Message.from_payload(sent.payload, sent.message_format)
                    raise DeliveryInDoubtError(delivery, message)
        super().raise_if_outcome_lost(delivery)

    @property
    def resumed(self) -> list[OutgoingDelivery]:
        """The unsettled deliveries of former attachments, oldest first.

        For a program that has not kept them.
        """
        terminus = self._resumable_terminus
        if terminus is None:
            return []
        return cast("list[OutgoingDelivery]", terminus.deliveries())

    async def _before_detach(self) -> None:
        await self.wait_written()

    def __repr__(self) -> str:
        return f"<Sender {self.address!r} {self._link.state.name} credit={self.credit} unsettled={self.unsettled}>"


class _Opening(LinkOpening[Sender]):
    __slots__ = ()

    _role = Role.SENDER

    def _check(self) -> None:
        if self._options.anonymous:
            check_relay(self._connection)

    def _make(self, session: LinkSession, name: str) -> Sender:
        made: Sender = session.connection.kinds.sender(session, session.engine.sender(name))
        return made


def open_sender(
    connection: LinkConnection, options: SenderOptions, session: LinkSession | None = None
) -> LinkOpening[Sender]:
    """Return a sender that is not attached yet.

    Its session is ``session``, or one that the options or the connection choose.

    Raises:
        LocalProtocolError: options that no attach can carry.
    """
    check_address(options.address)
    check_source(options.source)
    link_options = options.for_link(
        connection.recovering,
        None,
        options.address,
        own_session=options.own_session,
        anonymous=options.address is None and options.target is None,
    )
    return _Opening(connection, session, link_options)
