"""The connection endpoint: protocol header, open, channels, idle time-outs, close (2.4).

Octets come in through ``receive_data``, frames are found and handed to the session that their
channel maps to, and octets go out through ``data_to_send``. The endpoint has no role: it never
learns whether it dialled. It knows no layer below (``stack.py`` stacks SASL under it), no
clock, no socket.

Longer than most files: everything here reads or writes the same frame buffers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import Condition, LocalProtocolError, RemoteProtocolError
from ..frames import AMQP_FRAME, EMPTY_FRAME, FRAME_HEADER_SIZE, MIN_MAX_FRAME_SIZE, parse_frame
from ..headers import AMQP_HEADER, HEADER_SIZE, header_id
from ..spec import PERFORMATIVES
from ..spec.transport import Begin, Close, Error, Open, Transfer
from ..wire.decode import Budget
from ..wire.encode import encode
from .delivery import IncomingDelivery, OutgoingDelivery, Touchable
from .events import (
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from .fast import DISPOSITION, TRANSFER
from .faults import scope_of
from .incoming import drop_incoming
from .limits import Limits
from .rate import Rate
from .session import Session
from .states import CONNECTION, ConnectionState, Lifecycle, LinkState, SessionState, Step

if TYPE_CHECKING:
    from .link import Link, ReceiverLink

__all__ = ["Connection"]

_SIZE_BEFORE_OPEN = 8192
"""Octets of an ``open`` that we take. The standard says 512 (2.4.1), real clients send long property maps."""

_PEER_FRAME_CAP = 128 * 1024
"""We write no larger frames than this, whatever the peer takes: links are to interleave."""


class Connection(Lifecycle):
    """One connection, as either end of it sees it.

    Args:
        container_id: who we are (2.4.1).
        hostname: the host that we want to reach, which the peer may use to choose a service.
        limits: what the peer may cost us.
        idle_timeout: seconds without a frame after which the peer counts as gone; half of it is
            announced (2.4.5). None: for ever.
        properties, offered_capabilities, desired_capabilities: what ``open`` carries.
        bell: called when there is something to send and there was nothing before; an attribute to set.
        pipelined: whether to write open and what follows before the peer's header and open were read.
        incoming_class, outgoing_class: what deliveries are made of.
    """

    __slots__ = (
        "_by_channel",
        "_by_remote_channel",
        "_churn",
        "_close_deadline",
        "_deaf",
        "_events",
        "_heartbeats",
        "_held",
        "_in",
        "_last_received",
        "_names",
        "_need",
        "_next_heartbeat",
        "_now",
        "_open",
        "_out",
        "_out_size",
        "_sent",
        "_touched",
        "_wants_open",
        "bell",
        "dirty_sessions",
        "error",
        "idle_timeout",
        "incoming_class",
        "limits",
        "outgoing_class",
        "partial_octets",
        "peer_frame_size",
        "pipelined",
        "remote",
    )

    _table = CONNECTION
    _scope = "connection"

    def __init__(
        self,
        container_id: str,
        *,
        hostname: str | None = None,
        limits: Limits | None = None,
        idle_timeout: float | None = 60.0,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: tuple[str, ...] = (),
        desired_capabilities: tuple[str, ...] = (),
        pipelined: bool = True,
        incoming_class: type[IncomingDelivery] = IncomingDelivery,
        outgoing_class: type[OutgoingDelivery] = OutgoingDelivery,
    ) -> None:
        self.state = ConnectionState.START
        self.limits = limits or Limits()
        self.idle_timeout = idle_timeout
        self.pipelined = pipelined
        self.incoming_class = incoming_class
        self.outgoing_class = outgoing_class
        self._open = Open(
            container_id=container_id,
            hostname=hostname,
            max_frame_size=self.limits.max_frame_size,
            channel_max=self.limits.channel_max,
            idle_time_out=None if idle_timeout is None else int(idle_timeout * 500),
            properties=properties,
            offered_capabilities=offered_capabilities,
            desired_capabilities=desired_capabilities,
        )
        self.remote: Open | None = None
        self.error: Error | None = None
        self.peer_frame_size = MIN_MAX_FRAME_SIZE
        self.partial_octets = 0
        self.bell: Callable[[], object] | None = None
        self.dirty_sessions: list[Session] = []
        self._by_channel: dict[int, Session] = {}
        self._by_remote_channel: dict[int, Session] = {}
        self._names: dict[tuple[str, bool], Link] = {}
        self._events: deque[Event] = deque()
        self._touched: list[Touchable] = []
        self._in = bytearray()
        self._need = HEADER_SIZE
        self._out: list[bytes] = []
        self._out_size = 0
        self._held: list[bytes] | None = None
        self._wants_open = False
        self._deaf = False
        self._now = 0.0
        self._last_received: float | None = None
        self._close_deadline: float | None = None
        self._next_heartbeat: float | None = None
        self._sent = False
        self._heartbeats = Rate(self.limits.heartbeats, self.limits.heartbeat_rate)
        self._churn = Rate(self.limits.churn, self.limits.churn_rate)

    def __repr__(self) -> str:
        return f"<connection {self._open.container_id!r} {self.state.name} sessions={len(self._by_channel)}>"

    # -- what we do -------------------------------------------------------------------------

    def open(self) -> None:
        """Write our protocol header, if it is not out yet, and our open (2.4.1).

        Raises:
            LocalProtocolError: it was opened before.
        """
        if self._wants_open or not (self.state is ConnectionState.START or self.allows(Step.SEND_OPEN)):
            self.step(Step.SEND_OPEN)
        body = encode(self._open)
        if FRAME_HEADER_SIZE + len(body) > _SIZE_BEFORE_OPEN:
            raise LocalProtocolError(
                f"{Condition.FRAME_SIZE_TOO_SMALL}: an open of {len(body)} octets is more than peers take: "
                "shorten its properties"
            )
        self._send_header()
        if not self.pipelined and self.state is ConnectionState.HDR_SENT:
            self._wants_open = True
            self._held = []
            return
        self.step(Step.SEND_OPEN)
        self._out_size += FRAME_HEADER_SIZE + len(body)
        self._out.append((FRAME_HEADER_SIZE + len(body)).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body)
        if self.remote is None and not self.pipelined:
            self._held = []

    def session(self) -> Session:
        """A new session on the lowest free channel; nothing is written until it begins.

        Raises:
            LocalProtocolError: not opened, or the peer takes no more sessions.
        """
        if self.state not in _MAY_BEGIN and not self._wants_open:
            raise LocalProtocolError(f"cannot begin a session: this connection is {self.state.name}")
        limit = 0xFFFF if self.remote is None else self.remote.channel_max
        return self._new_session(limit)

    def _new_session(self, limit: int) -> Session:
        channel = 0
        while channel in self._by_channel:
            channel += 1
        if channel > limit:
            raise LocalProtocolError(
                f"the peer takes channels up to {limit} (channel-max, 2.7.1): end a session first"
            )
        session = Session(self, channel)
        self._by_channel[channel] = session
        return session

    def close(self, error: Error | None = None) -> None:
        """Close, with every session and link (2.4.3). Nothing happens where it is over already."""
        if self.state in (ConnectionState.OPEN_RCVD, ConnectionState.HDR_EXCH):
            self.open()
        step = Step.SEND_CLOSE if error is None else Step.SEND_ERROR_CLOSE
        if self.state in _NEVER_OPENED:
            self._end("closed before it was opened")
        if not self.allows(step):
            return
        self._flush()
        body = encode(Close(error=error))
        self._held = None
        self.write_body(0, body)
        self.step(step)
        if self.error is None:
            self.error = error
        self._close_deadline = self._now + self.limits.close_timeout
        self._drop_sessions()

    # -- octets in --------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Octets that the peer sent, in any chunks. Time in seconds of the caller's clock.

        Raises:
            RemoteProtocolError: the peer broke a rule that ends the connection. A ``close`` that
                says so is in ``data_to_send``; whatever else comes in is discarded.
        """
        self._now = self._last_received = now
        if self._deaf or self.state is ConnectionState.END:
            return
        if self._in:
            self._in += data
            if len(self._in) < self._need:
                return
            data = bytes(self._in)
        try:
            self._receive(data)
        except RemoteProtocolError as fault:
            self._fault(fault)
            raise
        if self.limits.output_hard is not None and self._out_size > self.limits.output_hard:
            self._lose(f"more than {self.limits.output_hard} octets wait for a peer that does not read")

    def _receive(self, buf: bytes) -> None:
        pos = 0
        if self.state in _BEFORE_HEADER:
            protocol_id = header_id(buf)
            if protocol_id is None:
                self._keep(buf, 0)
                return
            if protocol_id != 0:
                raise RemoteProtocolError(
                    f"protocol id {protocol_id} where an AMQP header is due", Condition.FRAMING_ERROR
                )
            self.step(Step.RECV_HEADER)
            self._send_header()
            pos = HEADER_SIZE
            if self._wants_open:
                self._wants_open = False
                held = self._held
                self.open()
                self._held = held
        limit = self.limits.max_frame_size if self.remote is not None else _SIZE_BEFORE_OPEN
        while True:
            frame = parse_frame(buf, pos, limit)
            if frame is None:
                break
            kind, channel, body, end = frame
            pos = end
            if kind != AMQP_FRAME:
                raise RemoteProtocolError(
                    f"frame type {kind} in the AMQP layer (2.3.2)", Condition.FRAMING_ERROR
                )
            if body == end:
                self._on_empty_frame()
                continue
            session = self._by_remote_channel.get(channel)
            if (
                session is not None
                and session.state is SessionState.MAPPED
                and self.state is ConnectionState.OPENED
            ):
                head = buf[body : body + 3]
                if head == TRANSFER:
                    if session.fast_transfer(buf, body, end):
                        continue
                elif head == DISPOSITION and session.fast_disposition(buf, body, end):
                    continue
            self._on_frame(channel, buf[body:end])
            if self.remote is not None:
                limit = self.limits.max_frame_size
            if self._deaf or self.state is ConnectionState.END:
                return
        self._keep(buf, pos)

    def _keep(self, buf: bytes, pos: int) -> None:
        """The rest is no whole frame yet: look again when there are as many octets as it needs."""
        self._in = bytearray(buf[pos:])
        self._need = int.from_bytes(buf[pos : pos + 4], "big") if len(buf) - pos >= 4 and pos else 0

    def _on_empty_frame(self) -> None:
        if self.remote is None:
            raise RemoteProtocolError("an empty frame before open", Condition.FRAMING_ERROR)
        if not self._heartbeats.allows(self._now):
            raise RemoteProtocolError("a flood of empty frames", Condition.RESOURCE_LIMIT_EXCEEDED)

    def _on_frame(self, channel: int, body: bytes) -> None:
        budget = Budget(nodes=self.limits.performative_nodes)
        try:
            performative, pos = PERFORMATIVES.decode(body, 0, budget)
            if pos != len(body) and not isinstance(performative, Transfer):
                raise RemoteProtocolError(
                    f"{len(body) - pos} octets behind a performative", Condition.DECODE_ERROR
                )
        except RemoteProtocolError as fault:
            if self.state is ConnectionState.DISCARDING:
                return
            self._undecodable(fault, channel, body)
            return
        if isinstance(performative, Open):
            self._on_open(performative, channel)
        elif isinstance(performative, Close):
            self._on_close(performative)
        elif self.remote is None:
            raise RemoteProtocolError(
                f"{type(performative).__name__.lower()} before open (2.4.1)", Condition.FRAMING_ERROR
            )
        elif self.state is ConnectionState.OPENED or self.state is ConnectionState.OPEN_RCVD:
            if isinstance(performative, Begin):
                self._on_begin(performative, channel)
            else:
                self._session_at(channel).dispatch(performative, body[pos:])

    def _undecodable(self, fault: RemoteProtocolError, channel: int, body: bytes) -> None:
        """A performative with a wrong field ends what it was about: a link, a session, or all (1.4)."""
        session = self._by_remote_channel.get(channel)
        scope, link = scope_of(fault, session, body)
        if scope == "connection" or session is None:
            raise fault
        if session.state is not SessionState.MAPPED:
            return
        if link is not None:
            link.fail(Condition(fault.condition), fault.description)
        else:
            session.fail(Condition(fault.condition), fault.description)

    def _session_at(self, channel: int) -> Session:
        session = self._by_remote_channel.get(channel)
        if session is None:
            raise RemoteProtocolError(
                f"a frame on channel {channel}, which is not mapped (2.5.1)", Condition.NOT_ALLOWED
            )
        return session

    def _on_open(self, performative: Open, channel: int) -> None:
        if self.remote is not None:
            raise RemoteProtocolError("a second open", Condition.ILLEGAL_STATE)
        if channel != 0:
            raise RemoteProtocolError(f"open on channel {channel} (2.4.1)", Condition.FRAMING_ERROR)
        self.step(Step.RECV_OPEN)
        self.remote = performative
        if self.state is ConnectionState.DISCARDING:
            return
        if performative.max_frame_size < MIN_MAX_FRAME_SIZE:
            raise RemoteProtocolError(
                f"max-frame-size {performative.max_frame_size}: at least 512 is due (2.7.1)",
                Condition.INVALID_FIELD,
            )
        timeout = performative.idle_time_out
        if timeout and timeout < self.limits.min_idle_timeout * 1000:
            raise RemoteProtocolError(
                f"idle-time-out of {timeout} ms: not under {self.limits.min_idle_timeout} s here (2.4.5)",
                Condition.NOT_ALLOWED,
            )
        self.peer_frame_size = min(performative.max_frame_size, _PEER_FRAME_CAP)
        if timeout:
            self._next_heartbeat = self._now + timeout / 4000
        if self._held is not None:
            held, self._held = self._held, None
            self._out += held
        self._events.append(ConnectionOpened(performative))

    def _on_close(self, performative: Close) -> None:
        if self.state is ConnectionState.OPEN_RCVD:
            self.open()
        answer = self.state is not ConnectionState.OPENED
        self.step(Step.RECV_CLOSE)
        if self.error is None:
            self.error = performative.error
        if not answer:
            self._events.append(ConnectionClosed(performative.error))
        self.close()
        self._drop_sessions()

    def _on_begin(self, performative: Begin, channel: int) -> None:
        if channel > self.limits.channel_max:
            raise RemoteProtocolError(
                f"channel {channel} is over the channel-max of {self.limits.channel_max} (2.7.1)",
                Condition.FRAMING_ERROR,
            )
        if channel in self._by_remote_channel:
            raise RemoteProtocolError(
                f"begin on channel {channel}, which is mapped already", Condition.NOT_ALLOWED
            )
        if performative.remote_channel is None:
            session = self._new_session(0xFFFF)
        else:
            found = self._by_channel.get(performative.remote_channel)
            if found is None or found.remote is not None:
                raise RemoteProtocolError(
                    f"begin answers channel {performative.remote_channel}, which waits for no answer (2.7.2)",
                    Condition.NOT_ALLOWED,
                )
            session = found
        self._by_remote_channel[channel] = session
        session.on_begin(performative, channel)
        if session.state in (SessionState.MAPPED, SessionState.BEGIN_RCVD):
            self._events.append(SessionBegun(session))

    # -- faults and ends --------------------------------------------------------------------

    def refuse(self, condition: Condition, description: str) -> None:
        """The peer broke a rule that ends the connection."""
        raise RemoteProtocolError(description, condition)

    def _fault(self, fault: RemoteProtocolError) -> None:
        if self.state in _BEFORE_HEADER:
            # What speaks there is not AMQP 1.0: it gets the header that we would take (2.2).
            self._send_header()
            self._end(str(fault))
            return
        if fault.condition == Condition.FRAMING_ERROR.value:
            self._deaf = True  # where frames begin is lost
            self._in.clear()
        self.close(Error(condition=fault.condition, description=fault.description))

    def receive_eof(self, now: float) -> None:
        """The peer will send no more octets."""
        self._now = now
        self._lose("the peer ended the transport without a close")

    def transport_lost(self) -> None:
        """The transport failed: nothing more comes in or goes out."""
        self.abandon("the transport was lost")

    def abandon(self, reason: str) -> None:
        """Give up without a word: no octet of what waits is to be written."""
        self._out.clear()
        self._out_size = 0
        self._held = None
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        if self.state is not ConnectionState.END:
            self._end(reason)
            self._events.append(ConnectionLost(reason))

    def _end(self, reason: str) -> None:
        self.step(Step.LOST)
        self._close_deadline = None
        self._drop_sessions()

    def _drop_sessions(self) -> None:
        for session in list(dict.fromkeys((*self._by_channel.values(), *self._by_remote_channel.values()))):
            session.lost()
        if self.state is ConnectionState.END:
            self._by_channel.clear()
            self._by_remote_channel.clear()

    def owe(self, session: Session) -> None:
        """``session`` has something to write when octets are next taken."""
        self.dirty_sessions.append(session)
        if self.bell is not None:
            self.bell()

    def release_channel(self, session: Session) -> None:
        """Free the channels of a session that is over."""
        if session.state is SessionState.ENDED:
            self._by_channel.pop(session.channel, None)
            if session.remote_channel is not None:
                self._by_remote_channel.pop(session.remote_channel, None)

    # -- octets out -------------------------------------------------------------------------

    def _send_header(self) -> None:
        if self.allows(Step.SEND_HEADER):
            self.step(Step.SEND_HEADER)
            self._out.append(AMQP_HEADER)
            self._out_size += HEADER_SIZE

    def write_body(self, channel: int, body: bytes, payload: bytes = b"") -> None:
        """One frame.

        Raises:
            LocalProtocolError: it is larger than the peer takes.
        """
        size = FRAME_HEADER_SIZE + len(body) + len(payload)
        out = self._out if self._held is None else self._held
        if size > self.peer_frame_size:
            if self.remote is not None or size > _SIZE_BEFORE_OPEN:
                raise LocalProtocolError(
                    f"{Condition.FRAME_SIZE_TOO_SMALL}: a frame of {size} octets, and the peer takes {self.peer_frame_size}"
                )
            # Nobody is obliged to take more than 512 before its open was read (2.7.1): hold it, and
            # all that follows, until then.
            if self._held is None:
                self._held = out = []
        if not self._out and self.bell is not None:
            self.bell()
        out.append(size.to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body)
        if payload:
            out.append(payload)
        self._out_size += size

    def write_frame(self, head: bytes, payload: bytes) -> None:
        """A frame that is laid out already, and is known to fit."""
        out = self._out
        if not out and self.bell is not None:
            self.bell()
        out.append(head)
        out.append(payload)
        self._out_size += len(head) + len(payload)

    def has_room(self) -> bool:
        """Whether senders may add to the output, or should wait until some was written."""
        return self._out_size < self.limits.output_soft

    def window_room(self) -> int | None:
        """Transfers that there is room for in what is left for deliveries in progress."""
        if self.limits.partial_octets is None or not self.partial_octets:
            return None
        return max(1, (self.limits.partial_octets - self.partial_octets) // self.limits.max_frame_size)

    def _flush(self) -> None:
        if self.dirty_sessions:
            dirty, self.dirty_sessions = self.dirty_sessions, []
            for session in dirty:
                if session.state is SessionState.MAPPED or session.state is SessionState.BEGIN_SENT:
                    session.flush()

    def data_to_send(self) -> bytes | None:
        """Octets for the transport; ``b""`` when there are none now, None when there will be none again.

        Deliveries in progress are cut into frames here, so that no more than ``output_soft`` octets
        of them ever wait.
        """
        self._flush()
        if self._out_size < self.limits.output_soft:
            for session in self._by_channel.values():
                if session.partials:
                    session.feed_partials()
        if self._out:
            data = b"".join(self._out)
            self._out.clear()
            self._out_size = sum(map(len, self._held or ()))
            self._sent = True
            for session in self._by_channel.values():
                if session.hungry and session.windows.remote_incoming_window > 0:
                    session.wake_hungry()
            return data
        return None if self.state is ConnectionState.END else b""

    # -- events, touched objects, time ------------------------------------------------------

    def next_event(self) -> Event | None:
        """What the peer did, oldest first; None when all is told."""
        return self._events.popleft() if self._events else None

    def touch(self, item: Touchable | None) -> None:
        """List ``item`` for ``take_touched``, once."""
        if item is not None and not item.touched:
            item.touched = True
            self._touched.append(item)

    def take_touched(self) -> list[Touchable]:
        """What to wake now; each comes once, however often it was touched."""
        if not self._touched:
            return []
        touched, self._touched = self._touched, []
        for item in touched:
            item.touched = False
        return touched

    def next_deadline(self) -> float | None:
        """When ``handle_timer`` has something to do, by the caller's clock; None for never."""
        deadlines = [self._close_deadline]
        if self.state is ConnectionState.OPENED:
            deadlines.append(self._next_heartbeat)
            if self.idle_timeout is not None and self._last_received is not None:
                deadlines.append(self._last_received + self.idle_timeout)
        return min((d for d in deadlines if d is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Do what is due: a heartbeat, an idle peer given up, a close that was never answered.

        Raises:
            RemoteProtocolError: the peer was silent for too long.
        """
        self._now = now
        if self._close_deadline is not None and now >= self._close_deadline:
            self._lose(f"no close from the peer within {self.limits.close_timeout} s")
            return
        if self.state is not ConnectionState.OPENED:
            return
        if self.idle_timeout is not None and self._last_received is not None:
            silent = now - self._last_received
            if silent >= self.idle_timeout:
                fault = RemoteProtocolError(
                    f"no frame for {silent:.0f} s, of {self.idle_timeout:.0f} s allowed (2.4.5)",
                    Condition.RESOURCE_LIMIT_EXCEEDED,
                )
                self._fault(fault)
                raise fault
        if self._next_heartbeat is not None and now >= self._next_heartbeat:
            assert self.remote is not None
            assert self.remote.idle_time_out is not None
            if not self._sent and not self._out:
                self._out.append(EMPTY_FRAME)
                self._out_size += FRAME_HEADER_SIZE
            self._sent = False
            # A quarter of it: even a tick that finds octets just written leaves half in hand.
            self._next_heartbeat = now + self.remote.idle_time_out / 4000

    def emit_attached(self, link: Link) -> None:
        """Tell of the peer's attach."""
        self._events.append(LinkAttached(link))

    def emit_detached(self, link: Link, closed: bool, error: Error | None) -> None:
        """Tell of a link that is over, once."""
        if not link.told:
            link.told = True
            self._events.append(LinkDetached(link, closed, error))

    def emit_ended(self, session: Session, error: Error | None) -> None:
        """Tell of a session that is over, once."""
        if not session.told:
            session.told = True
            self._events.append(SessionEnded(session, error))

    def charge_churn(self, what: str) -> None:
        """The peer ended what we had no chance to answer: cheap for it, dear for us."""
        if not self._churn.allows(self._now):
            raise RemoteProtocolError(f"{what} at too high a rate", Condition.RESOURCE_LIMIT_EXCEEDED)

    # -- links by name (2.6.1) --------------------------------------------------------------

    def named(self, name: str, role: bool) -> Link | None:
        """Our link of this name and role, if there is one."""
        return self._names.get((name, role))

    def claim_name(self, link: Link) -> None:
        """From now on the peer's attach of this name and direction is about ``link``.

        Raises:
            LocalProtocolError: another link of ours has it.
        """
        key = (link.name, link.role)
        holder = self._names.get(key)
        if holder is not None and holder.state is not LinkState.DETACH_SENT:
            raise LocalProtocolError(
                f"a link {link.name!r} of this direction exists on this connection already (2.6.1)"
            )
        self._names[key] = link

    def forget_name(self, link: Link) -> None:
        """``link`` is over: its name is free."""
        key = (link.name, link.role)
        if self._names.get(key) is link:
            del self._names[key]

    def too_many_links(self) -> bool:
        """Whether the peer has taken more links than it may."""
        return self.limits.max_links is not None and len(self._names) > self.limits.max_links

    def drop_largest_partial(self) -> None:
        """Deliveries in progress fill the budget: the largest goes, with its link."""
        links: list[ReceiverLink] = [
            link  # type: ignore[misc]
            for link in self._names.values()
            if getattr(link, "incoming", None) is not None
        ]
        largest = max(links, key=lambda link: link.incoming.size if link.incoming else 0)
        drop_incoming(largest)
        largest.fail(
            Condition.RESOURCE_LIMIT_EXCEEDED,
            f"deliveries in progress take more than {self.limits.partial_octets} octets on this connection",
        )


_BEFORE_HEADER = (
    ConnectionState.START,
    ConnectionState.HDR_SENT,
    ConnectionState.OPEN_PIPE,
    ConnectionState.OC_PIPE,
)
_NEVER_OPENED = (ConnectionState.START, ConnectionState.HDR_RCVD, ConnectionState.HDR_SENT)
_MAY_BEGIN = (ConnectionState.OPEN_PIPE, ConnectionState.OPEN_SENT, ConnectionState.OPENED)
