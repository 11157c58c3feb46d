"""Link endpoints: attach, credit, transfers out and in, detach (2.6).

A link knows its session and its deliveries. It does not know what a message says, nor which
node stands behind its address; an ``owner`` is woken when there is something to look at.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ..errors import Condition, LocalProtocolError
from ..spec.transport import Role, Attach, Detach, Error, Flow, ReceiverSettleMode, SenderSettleMode, Transfer
from ..frames import FRAME_HEADER_SIZE
from ..wire.encode import encode
from .delivery import IncomingDelivery, OutgoingDelivery, Touchable
from .fast import WHOLE_OVERHEAD, transfer_head, write_transfer
from .incoming import Incoming
from .serial import MASK, add, distance
from .states import LINK, Lifecycle, LinkState, Step

if TYPE_CHECKING:
    from .session import Session

__all__ = ["Link", "ReceiverLink", "SenderLink"]

_FAR = 0x7FFFFFFF
_ATTACHED = LinkState.ATTACHED


class Link(Lifecycle):
    """What both ends of a link have in common.

    Attributes:
        name: unique for this pair of containers and direction (2.6.1).
        role: ``Role.SENDER`` or ``Role.RECEIVER``: ours.
        remote: the peer's attach, once read.
        answered: whether our attach came second (False: the peer began this link, or nobody yet).
        credit: deliveries that may still be sent.
        delivery_count: deliveries sent so far, wrapped; None until the sender has said it.
        snd_settle_mode, rcv_settle_mode: as negotiated, once both have attached (2.7.3).
        owner: woken when credit, deliveries or settlements came.
        error: why the link is gone, where an error ended it.
    """

    __slots__ = (
        "answered",
        "credit",
        "delivery_count",
        "drain",
        "error",
        "handle",
        "name",
        "owner",
        "rcv_settle_mode",
        "remote",
        "remote_handle",
        "session",
        "snd_settle_mode",
        "told",
    )

    _table = LINK
    _scope = "link"

    role: bool

    def __init__(self, session: Session, name: str) -> None:
        self.state = LinkState.DETACHED
        self.session = session
        self.name = name
        self.handle = -1
        self.remote_handle: int | None = None
        self.remote: Attach | None = None
        self.answered = False
        self.credit = 0
        self.delivery_count: int | None = None
        self.drain = False
        self.snd_settle_mode: int = SenderSettleMode.MIXED
        self.rcv_settle_mode: int = ReceiverSettleMode.FIRST
        self.owner: Touchable | None = None
        self.error: Error | None = None
        self.told = False

    def __repr__(self) -> str:
        role = "receiver" if self.role is Role.RECEIVER else "sender"
        return f"<{role} {self.name!r} {self.state.name} credit={self.credit}>"

    # -- attach -----------------------------------------------------------------------------

    def attach(
        self,
        *,
        source: Any = None,
        target: Any = None,
        snd_settle_mode: int = SenderSettleMode.MIXED,
        rcv_settle_mode: int = ReceiverSettleMode.FIRST,
        max_message_size: int | None = None,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: tuple[str, ...] = (),
        desired_capabilities: tuple[str, ...] = (),
    ) -> None:
        """Attach this end, as the first or as the answer (2.6.3).

        Raises:
            LocalProtocolError: it is attached already, or the attach does not fit a frame.
        """
        self._may(Step.SEND_ATTACH)
        handle = self.session.free_handle()
        body = encode(
            Attach(
                name=self.name,
                handle=handle,
                role=self.role,
                snd_settle_mode=SenderSettleMode(snd_settle_mode),
                rcv_settle_mode=ReceiverSettleMode(rcv_settle_mode),
                source=source,
                target=target,
                initial_delivery_count=self.delivery_count,
                max_message_size=max_message_size,
                properties=properties,
                offered_capabilities=offered_capabilities,
                desired_capabilities=desired_capabilities,
            )
        )
        self.session.write_body(body)
        self.step(Step.SEND_ATTACH)
        self.handle = handle
        self.answered = self.remote is not None
        self.session.bind(self)
        if self.role is Role.SENDER:
            self.snd_settle_mode = snd_settle_mode
        else:
            self.rcv_settle_mode = rcv_settle_mode
        self._on_bound()

    def on_attach(self, attach: Attach) -> None:
        """The peer's attach, first or second."""
        self.step(Step.RECV_ATTACH)
        self.remote = attach
        self.remote_handle = attach.handle
        # Each end's own word is the actual mode; the other end's is what it would like (2.7.3).
        if self.role is Role.SENDER:
            self.rcv_settle_mode = attach.rcv_settle_mode
        else:
            self.snd_settle_mode = attach.snd_settle_mode

    def refuse(self, error: Error) -> None:
        """Answer an attach that cannot be had: attach without a terminus, then detach (2.6.3)."""
        role_is_sender = self.role is Role.SENDER
        remote = self.remote
        self.attach(
            source=None if role_is_sender or remote is None else remote.source,
            target=None if not role_is_sender or remote is None else remote.target,
        )
        self.detach(error=error)

    # -- detach -----------------------------------------------------------------------------

    def detach(self, *, closed: bool = True, error: Error | None = None) -> None:
        """Detach; ``closed`` ends the link for good (2.6.6). Nothing happens where it is over already.

        What was queued and not yet sent on this link is dropped.
        """
        if self.state is LinkState.ATTACH_RCVD:
            self.attach()
        if not self.allows(Step.SEND_DETACH):
            return
        self.session.flush()
        self._abort()
        self.session.write_body(encode(Detach(handle=self.handle, closed=closed, error=error)))
        self.step(Step.SEND_DETACH)
        if self.error is None:
            self.error = error
        self.session.unbind(self)

    def fail(self, condition: Condition, description: str) -> None:
        """The peer broke a rule on this link: detach with the error, and tell the adapter."""
        error = Error(condition=condition.value, description=f"{self.name!r}: {description}")
        self.detach(error=error)
        self.session.connection.emit_detached(self, True, error)

    def on_detach(self, detach: Detach) -> None:
        """The peer's detach: answered at once, unless it is the answer."""
        if self.state is LinkState.ATTACH_RCVD:
            self.attach()
        self.step(Step.RECV_DETACH)
        if self.error is None:
            self.error = detach.error
        self.detach(closed=detach.closed)
        self.session.unbind(self)

    def lost(self) -> None:
        """The session or the connection is gone."""
        self.step(Step.LOST)
        self.wake()

    def wake(self) -> None:
        """Have the owner look at this link once the present octets are read."""
        if self.owner is not None:
            self.session.connection.touch(self.owner)

    # -- flow -------------------------------------------------------------------------------

    def write_flow(self, *, echo: bool = False) -> None:
        """Write where this link stands, now."""
        session = self.session
        windows = session.windows
        session.write_body(
            encode(
                Flow(
                    next_incoming_id=windows.next_incoming_id,
                    incoming_window=windows.incoming_window,
                    next_outgoing_id=windows.next_outgoing_id,
                    outgoing_window=windows.outgoing_window,
                    handle=self.handle,
                    delivery_count=self.delivery_count,
                    link_credit=self.credit,
                    available=self._available(),
                    drain=self.drain,
                    echo=echo,
                )
            )
        )

    def _available(self) -> int | None:
        return None

    def _on_bound(self) -> None:
        pass

    def _abort(self) -> None:
        pass

    def on_flow(self, flow: Flow) -> None:
        """The peer's view of this link (2.6.7)."""
        raise NotImplementedError

    def _may(self, step: Step) -> None:
        """Raise what ``step`` would raise, and stay."""
        if not self.allows(step):
            self.step(step)


class SenderLink(Link):
    """The end that sends: it waits for credit, and counts what it has sent.

    Attributes:
        available: messages waiting for credit, told to the receiver in each flow; or None.
        unsettled: deliveries sent and not settled.
        watch_unsettled: wake the owner when ``unsettled`` falls to zero.
    """

    __slots__ = ("_head", "_next_tag", "_partial", "available", "unsettled", "waiting", "watch_unsettled")

    role = Role.SENDER

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self.delivery_count = 0
        self.available: int | None = None
        self.unsettled = 0
        self.watch_unsettled = False
        self.waiting = False
        self._next_tag = 0
        self._head = b""
        self._partial: tuple[bytes, int, bytes] | None = None

    def _available(self) -> int | None:
        return self.available

    def _on_bound(self) -> None:
        self._head = transfer_head(self.session.channel, self.handle)

    def on_flow(self, flow: Flow) -> None:
        # A receiver that has not read our attach yet counts from our first delivery.
        base = 0 if flow.delivery_count is None else flow.delivery_count
        if flow.link_credit is not None:
            limit = add(base, min(flow.link_credit, _FAR))
            self.credit = max(0, distance(limit, self.delivery_count or 0))
        self.drain = flow.drain
        self.wake()

    def sendable(self) -> bool:
        """Whether ``send`` would put a message on its way now."""
        session = self.session
        return (
            self.credit > 0
            and self._partial is None
            and session.windows.remote_incoming_window > 0
            and session.connection.has_room()
            and self.state is _ATTACHED
        )

    def await_sendable(self) -> None:
        """Have the owner woken when ``sendable`` may have become true."""
        if not self.waiting:
            self.waiting = True
            self.session.hungry.append(self)

    def send(
        self,
        payload: bytes,
        settled: bool = False,
        tag: bytes | None = None,
        message_format: int = 0,
        state: Any = None,
    ) -> OutgoingDelivery:
        """Put one message on its way; what does not fit the window now follows as it opens.

        Args:
            payload: the encoded sections, whole.
            settled: forget it at once; overridden by a settle mode that leaves no choice.
            tag: at most 32 octets, unique among the link's unsettled ones; made here if None.
            state: sent with the first transfer, e.g. a transactional state (4.4).

        Raises:
            LocalProtocolError: not ``sendable``, or a tag that is too long.
        """
        if not self.sendable():
            raise LocalProtocolError(f"cannot send on {self!r}: wait until it is sendable")
        if self.snd_settle_mode != SenderSettleMode.MIXED:
            settled = self.snd_settle_mode == SenderSettleMode.SETTLED
        session = self.session
        connection = session.connection
        delivery_id = session.next_delivery_id
        size = WHOLE_OVERHEAD + len(payload)
        if tag is None:
            number = self._next_tag
            self._next_tag = (number + 1) & MASK
            made = number.to_bytes(4, "big")
        else:
            if len(tag) > 32:
                raise LocalProtocolError(f"delivery tag of {len(tag)} octets: at most 32 are allowed (2.8.7)")
            number, made = -1, tag
        delivery = connection.outgoing_class(self, delivery_id, made, settled)
        if number >= 0 and size <= connection.peer_frame_size and message_format == 0 and state is None:
            connection.write_frame(write_transfer(self._head, size, delivery_id, number, settled), payload)
            session.windows.sent()
        else:
            self._send_parts(delivery, payload, message_format, state)
        session.next_delivery_id = (delivery_id + 1) & MASK
        self.credit -= 1
        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK
        if not settled:
            self.unsettled += 1
            session.settlement.outgoing[delivery_id] = delivery
        return delivery

    def _send_parts(
        self, delivery: OutgoingDelivery, payload: bytes, message_format: int, state: Any
    ) -> None:
        room = self.session.connection.peer_frame_size - FRAME_HEADER_SIZE
        for more in (False, True):
            head = encode(
                Transfer(
                    handle=self.handle,
                    delivery_id=delivery.delivery_id,
                    delivery_tag=delivery.tag,
                    message_format=message_format,
                    settled=delivery.settled,
                    more=more,
                    state=state,
                )
            )
            if not more and len(head) + len(payload) <= room:
                self.session.write_body(head, payload)
                self.session.windows.sent()
                return
        if len(head) >= room:
            raise LocalProtocolError(
                f"{Condition.FRAME_SIZE_TOO_SMALL}: the transfer alone takes {len(head)} octets of the peer's {room + 8}"
            )
        self._partial = (payload, 0, head)
        self.session.partials[self] = None
        self.send_part()

    def send_part(self) -> None:
        """One more frame of the delivery in progress; the caller has checked window and room."""
        assert self._partial is not None
        payload, offset, head = self._partial
        take = self.session.connection.peer_frame_size - FRAME_HEADER_SIZE - len(head)
        if offset and len(payload) - offset <= take:
            head = encode(Transfer(handle=self.handle, more=False))
        chunk = payload[offset : offset + take]
        self.session.write_body(head, chunk)
        self.session.windows.sent()
        offset += len(chunk)
        if offset < len(payload):
            self._partial = (payload, offset, encode(Transfer(handle=self.handle, more=True)))
            return
        self.drop_partial()
        self.wake()

    def _abort(self) -> None:
        if self._partial is not None and self.state is _ATTACHED:
            self.session.write_body(encode(Transfer(handle=self.handle, more=False, aborted=True)))
            self.session.windows.sent()

    @property
    def in_progress(self) -> bool:
        """Whether a message has begun and not yet wholly gone out."""
        return self._partial is not None

    def drop_partial(self) -> None:
        """No delivery is in progress any more: it is complete, or the link is gone."""
        self._partial = None
        self.session.partials.pop(self, None)

    def drained(self) -> None:
        """Nothing more to send: use up the credit that the receiver wants back (2.6.7)."""
        if self.drain:
            self.delivery_count = add(self.delivery_count or 0, self.credit)
            self.credit = 0
            self.session.owe_flow(self)


class ReceiverLink(Link):
    """The end that receives: it gives credit, and queues whole deliveries.

    Attributes:
        queue: complete deliveries that nobody has taken yet.
        available: what the sender last said is waiting for credit.
        max_message_size: octets of one message that we take, or None.
    """

    __slots__ = ("_forgiven", "available", "incoming", "max_message_size", "queue")

    role = Role.RECEIVER

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self.queue: deque[IncomingDelivery] = deque()
        self.available = 0
        self.max_message_size: int | None = session.connection.limits.max_message_size
        self.incoming: Incoming | None = None
        self._forgiven = 0

    def on_attach(self, attach: Attach) -> None:
        super().on_attach(attach)
        self.delivery_count = attach.initial_delivery_count or 0

    def set_credit(self, credit: int, *, drain: bool = False) -> None:
        """How many deliveries the sender may send from now on; with ``drain``: now or not at all.

        Lowering it cannot stop what is in flight: as many as were taken back still come in.

        Raises:
            LocalProtocolError: not attached, or a credit outside 0 to 2**31 - 1.
        """
        if not 0 <= credit <= _FAR:
            raise LocalProtocolError(f"link credit of {credit}: 0 to {_FAR} is possible")
        if self.state is not _ATTACHED and self.state is not LinkState.ATTACH_SENT:
            raise LocalProtocolError(f"cannot give credit: this link is {self.state.name}")
        self._forgiven = max(0, self._forgiven + self.credit - credit)
        self.credit = credit
        self.drain = drain
        self.session.owe_flow(self)

    def on_flow(self, flow: Flow) -> None:
        # The sender's count runs ahead of ours when it gave up credit on our drain.
        if flow.delivery_count is not None:
            ahead = distance(flow.delivery_count, self.delivery_count or 0)
            if ahead > 0:
                self.delivery_count = flow.delivery_count
                self.credit = max(0, self.credit - ahead)
        if flow.available is not None:
            self.available = flow.available
        if self.drain and self.credit == 0:
            self.drain = False
        self.wake()

    def take_credit(self) -> bool:
        """Use one credit for a delivery that begins; False where there is none (2.6.7)."""
        if self.credit > 0:
            self.credit -= 1
        elif self._forgiven > 0:
            self._forgiven -= 1
        else:
            return False
        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK
        return True
