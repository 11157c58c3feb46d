"""The connection endpoint: header, open, channels, time-outs, close (2.4).

Octets come in through ``receive_data``. The frame reader finds the frames and hands each to the session of
its channel. Octets go out through ``data_to_send``. The endpoint is the same for the end that dialled and the
end that accepted. It knows no layer below (``layer_stack`` adds SASL), no clock and no socket.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec import PERFORMATIVES
from trio_amqp10.amqp10.spec.transport import Begin, Close, Error, Open, Transfer
from trio_amqp10.amqp10.wire.decode import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import (
    AMQP_FRAME,
    FRAME_HEADER_SIZE,
    MIN_MAX_FRAME_SIZE,
    encode_frame,
)
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER

from .connection_context import Context
from .delivery import IncomingDelivery, OutgoingDelivery
from .error_encoding import error_of, fit
from .events import ConnectionClosed, ConnectionLost, ConnectionOpened, Event, SessionBegun
from .frame_reader import FrameReader
from .idle_timeout import IdleTimeout
from .link import Link
from .link_names import LinkNames
from .open_options import OpenOptions, strictness, symbols
from .session import Session
from .session_channels import SessionChannels
from .session_dispatch import dispatch, scope_of, undecodable
from .states import CONNECTION, ConnectionState, Lifecycle, SessionState, Step
from .token_bucket import TokenBucket
from .write_buffer import SIZE_BEFORE_OPEN

if TYPE_CHECKING:
    from enum import Enum
    from typing import Unpack

    from trio_amqp10.core.partial_pool import Pool

    from .connection_context import Touchable
    from .limits import Limits
    from .open_options import OpenKeywords
    from .write_buffer import WriteBuffer

_S = ConnectionState
_CLOSING = (_S.CLOSE_PIPE, _S.CLOSE_SENT, _S.DISCARDING)
_NEVER_OPENED = (_S.START, _S.HDR_RCVD, _S.HDR_SENT)
_MAY_BEGIN = (_S.OPEN_PIPE, _S.OPEN_SENT, _S.OPENED)


class Connection(Lifecycle):
    """One end of a connection, with its sessions and links.

    Args:
        container_id: our container-id (2.4.1).
        hostname: the host that we want to reach, which the peer may use to choose a service.
        pipelined: whether to write open, and the frames that follow it, before the peer's header and open
            were read.
        incoming_class, outgoing_class: the classes of the deliveries that this connection makes.
        options: the fields of ``OpenOptions``. Half of the idle time-out is announced (2.4.5).

    Raises:
        LocalProtocolError: the open is too long, or the frame size is too small.

    Attributes:
        context: the state that all parts of the connection share.
        container_id: our container-id.
        local: our open, sent or not yet.
        remote: the peer's open, once read.
        error: the error that ended the connection, or None.
        frame_reader: the reader of incoming octets.
        write_buffer: the frames that wait to be written.
        channels: the sessions by channel.
        names: the links by name.
    """

    __slots__ = (
        "_close_deadline",
        "_heartbeats",
        "_idle",
        "_open",
        "_wants_open",
        "channels",
        "container_id",
        "context",
        "error",
        "frame_reader",
        "limits",
        "local",
        "names",
        "pipelined",
        "remote",
        "strict",
        "write_buffer",
    )

    _table = CONNECTION
    _scope = "connection"

    def __init__(
        self,
        container_id: str,
        *,
        hostname: str | None = None,
        pipelined: bool = True,
        incoming_class: type[IncomingDelivery] = IncomingDelivery,
        outgoing_class: type[OutgoingDelivery] = OutgoingDelivery,
        **options: Unpack[OpenKeywords],
    ) -> None:
        given = OpenOptions(**options)
        self.state: Enum = ConnectionState.START
        self.context: Context = Context(
            given.effective_limits,
            strictness(given.strict),
            incoming_class=incoming_class,
            outgoing_class=outgoing_class,
        )
        self.limits: Limits = self.context.limits
        self.strict: rules.Strict = self.context.strict
        self.write_buffer: WriteBuffer = self.context.write_buffer
        self.pipelined: Final = pipelined
        self._idle = IdleTimeout(given.idle_timeout)
        self.container_id: str = container_id
        self.local: Open = Open(
            container_id=container_id,
            hostname=hostname,
            max_frame_size=self.limits.max_frame_size,
            channel_max=self.limits.channel_max,
            idle_time_out=self._idle.announced,
            outgoing_locales=symbols(given.outgoing_locales),
            incoming_locales=symbols(given.incoming_locales),
            properties=given.properties,
            offered_capabilities=symbols(given.offered_capabilities),
            desired_capabilities=symbols(given.desired_capabilities),
        )
        self._open = _encode_open(self.local)
        self.remote: Open | None = None
        self.error: Error | None = None
        self.frame_reader: FrameReader = FrameReader(self.context)
        self.channels: SessionChannels = SessionChannels(self.limits.channel_max)
        self.names: Final = LinkNames()
        self._wants_open = False
        self._close_deadline: float | None = None
        self._heartbeats = TokenBucket(self.limits.heartbeats, self.limits.heartbeat_rate)

    def __repr__(self) -> str:
        return f"<connection {self.container_id!r} {self.state.name} sessions={len(self.channels.ours)}>"

    @property
    def frames_in(self) -> int:
        """Frames that were read so far, empty ones included."""
        return self.frame_reader.frames

    @property
    def frames_out(self) -> int:
        """Frames that were given to the transport so far, empty ones included."""
        return self.write_buffer.frames

    @property
    def partial_octets(self) -> int:
        """Octets of incomplete incoming deliveries, on all links."""
        return self.context.partial_octets

    @property
    def awaiting_settlement_octets(self) -> int:
        """Octets of received deliveries that have an outcome but are not yet settled.

        Only their sender can settle them (2.6.12).
        """
        return self.context.awaiting_settlement_octets

    @property
    def pool(self) -> Pool | None:
        """The pool that limits incomplete deliveries of several connections, or None."""
        return self.context.pool

    @property
    def sessions(self) -> list[Session]:
        """Every session that has a channel at this end."""
        return list(self.channels.ours.values())

    # -- what we do -------------------------------------------------------------------------

    def introduce(self, *, container_id: str | None = None, properties: dict[Any, Any] | None = None) -> None:
        """Change our container-id or properties before our open is sent.

        An acceptor may choose them after it has read the peer's open.

        Args:
            container_id: replaces the container-id, unless None.
            properties: added to the properties.

        Raises:
            LocalProtocolError: our open was sent already, or it would be too long.
        """
        if self._wants_open or self.state not in (
            _S.START,
            _S.HDR_RCVD,
            _S.HDR_EXCH,
            _S.HDR_SENT,
            _S.OPEN_RCVD,
        ):
            raise LocalProtocolError(
                f"cannot change the open, which is sent already: this connection is {self.state.name}"
            )
        before = self.local
        changed = replace(
            before,
            container_id=before.container_id if container_id is None else container_id,
            properties={**(before.properties or {}), **(properties or {})},
        )
        self._open = _encode_open(changed)
        self.local = changed
        self.container_id = changed.container_id

    def open(self) -> None:
        """Write our protocol header, if it is not yet written, and our open (2.4.1).

        Raises:
            LocalProtocolError: the connection was opened before.
        """
        if self._wants_open or not (self.state is ConnectionState.START or self.allows(Step.SEND_OPEN)):
            self.require(Step.SEND_OPEN)
            raise LocalProtocolError("cannot open: this connection is being opened already")
        self._send_header()
        if not self.pipelined:
            self.write_buffer.hold_until_open()
            if self.state is ConnectionState.HDR_SENT:
                # Without pipelining the open waits for the peer's header: ``on_header`` writes it.
                self._wants_open = True
                return
        self.step(Step.SEND_OPEN)
        self.write_buffer.write_frame(self._open)
        self._open = b""

    def session(self) -> Session:
        """Return a new session on the lowest free channel. Nothing is written yet.

        Raises:
            LocalProtocolError: the connection is not open, or the peer accepts no more sessions.
        """
        if self.state not in _MAY_BEGIN and not self._wants_open:
            raise LocalProtocolError(f"cannot begin a session: this connection is {self.state.name}")
        return self.channels.add(self._make_session)

    def _make_session(self, channel: int) -> Session:
        session = Session(self.context, self.names, channel, self.channels.release, self._open_first)
        session.connection = self
        return session

    def _open_first(self) -> None:
        """Answer the peer's open, because a begin must follow our own open (2.4.1)."""
        if self.state is ConnectionState.OPEN_RCVD:
            self.open()

    def close(self, error: Error | None = None, now: float | None = None) -> None:
        """Close the connection with every session and link (2.4.3).

        Nothing happens if the connection is over already. The peer has ``close_timeout`` seconds from ``now``
        to answer; if ``now`` is None, from the time of the last call that had one. The description of
        ``error`` is shortened to fit the peer's frame size.

        Raises:
            LocalProtocolError: ``error`` is too long even without its description.
        """
        if now is not None:
            self.context.now = now
        error = fit(error, self.write_buffer.frame_size)
        if self.state is ConnectionState.OPEN_RCVD or self.state is ConnectionState.HDR_EXCH:
            self.open()
        if self.state in _NEVER_OPENED:
            self._end()
        step = Step.SEND_CLOSE if error is None else Step.SEND_ERROR_CLOSE
        if not self.allows(step):
            return
        self.context.flush()
        self.write_buffer.drop_held()
        self.write_buffer.write_frame(encode_frame(0, encode(Close(error=error))))
        self.step(step)
        if self.error is None:
            self.error = error
        self._close_deadline = self.context.now + self.limits.close_timeout
        self._drop_sessions()

    # -- octets in --------------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Process octets that the peer sent, in chunks of any size.

        ``now`` is in seconds of the caller's clock.

        Raises:
            RemoteProtocolError: the peer broke a rule that ends the connection. ``data_to_send`` then returns
                a ``close`` with the error, and later input is discarded.
        """
        self.receive_slice(data, now, whole=True)

    def receive_slice(self, data: bytes, now: float, *, whole: bool = False) -> None:
        """Do as ``receive_data``, but only one slice of the octets, unless ``whole``.

        If ``has_input`` is true afterwards, call this again: with more octets, or with none.

        Raises:
            RemoteProtocolError: as ``receive_data``; the octets that are left must be read anyway.
        """
        self.context.now = self._idle.last_received = now
        if self.frame_reader.deaf or self.state is ConnectionState.END:
            return
        fault = self.frame_reader.read(self, data, sliced=not whole)
        if self.limits.output_hard is not None and self.write_buffer.size > self.limits.output_hard:
            self.abandon(f"more than {self.limits.output_hard} octets wait for a peer that does not read")
        if fault is not None:
            raise fault

    def has_input(self) -> bool:
        """Whether received octets are left: call ``receive_slice`` again."""
        return self.frame_reader.more and self.state is not ConnectionState.END

    def frame_limit(self) -> int:
        """Return the largest frame, in octets, that the peer may send now."""
        if self.remote is not None:
            return self.limits.max_frame_size
        usual = MIN_MAX_FRAME_SIZE if self.strict.open_frame_size else SIZE_BEFORE_OPEN
        if self.state is ConnectionState.HDR_EXCH:
            return usual
        return max(usual, self.limits.max_frame_size)  # our open was sent, and announces this size

    def on_header(self) -> None:
        """Process the peer's AMQP protocol header, and answer it (2.2)."""
        self.step(Step.RECV_HEADER)
        self._send_header()
        if self._wants_open:
            self._wants_open = False
            self.open()

    def note_header_written(self) -> None:
        """Note that another layer has written our protocol header already."""
        self.step(Step.SEND_HEADER)

    def refuse_header(self) -> None:
        """Answer a header of another protocol with our own, and end (2.2)."""
        self._send_header()
        self._end()

    def _on_empty_frame(self) -> None:
        if self.remote is None:
            raise rules.OPEN_FIRST.broken("an empty frame before open")
        if not self._heartbeats.allows(self.context.now):
            raise rules.HEARTBEATS.broken("empty frames at too high a rate")

    def on_frame(self, kind: int, channel: int, body: bytes) -> None:
        """Process one frame: decode its performative and dispatch it.

        Raises:
            RemoteProtocolError: the frame breaks a rule that ends the connection.
        """
        if kind != AMQP_FRAME:
            raise rules.FRAME_TYPE.broken(f"frame type {kind} in the AMQP layer")
        if channel > self.limits.channel_max:
            highest = self.limits.channel_max
            raise rules.CHANNEL_MAX.broken(f"channel {channel} is over the channel-max of {highest}")
        if not body:
            self._on_empty_frame()
            return
        budget = Budget(
            nodes=self.limits.performative_nodes,
            allow_duplicate_keys=not self.strict.duplicate_map_keys,
            symbol_keys=self.strict.field_keys,
            tolerances=self.context.tolerances,
        )
        try:
            performative, pos = PERFORMATIVES.decode(body, 0, budget)
            if pos != len(body) and not isinstance(performative, Transfer):
                raise rules.PAYLOAD.broken(
                    f"{len(body) - pos} octets after a performative that has no payload"
                )
        except RemoteProtocolError as fault:
            if self.state is not ConnectionState.DISCARDING:
                self._undecodable(fault, channel, body)
            return
        if isinstance(performative, Open):
            if self.state is ConnectionState.HDR_EXCH and len(body) + FRAME_HEADER_SIZE > MIN_MAX_FRAME_SIZE:
                self.context.tolerances.note(rules.OPEN_FRAME_SIZE)
            self._on_open(performative, channel)
        elif isinstance(performative, Close):
            self._on_close(performative)
        elif self.remote is None and self.state is not ConnectionState.DISCARDING:
            raise rules.OPEN_FIRST.broken(f"{type(performative).__name__.lower()} before open")
        elif self.state is ConnectionState.OPENED or self.state is ConnectionState.OPEN_RCVD:
            if isinstance(performative, Begin):
                session = self.channels.on_begin(performative, channel, self._make_session)
                if session.state is SessionState.MAPPED or session.state is SessionState.BEGIN_RCVD:
                    self.context.report(SessionBegun(session))
            else:
                dispatch(self.channels.at(channel), performative, body[pos:])

    def _undecodable(self, fault: RemoteProtocolError, channel: int, body: bytes) -> None:
        """End the link, session or connection of a malformed performative (1.4)."""
        session = self.channels.theirs.get(channel)
        scope, link, transfer = scope_of(fault, session, body)
        if scope == "connection" or session is None:
            raise fault
        undecodable(session, fault, link, transfer)

    def _on_open(self, performative: Open, channel: int) -> None:
        if self.remote is not None:
            raise rules.OPEN_ONCE.broken("a second open")
        if channel != 0:
            raise rules.OPEN_CHANNEL.broken(f"open on channel {channel}")
        self.step(Step.RECV_OPEN)
        self.remote = performative
        if self.state is ConnectionState.DISCARDING:
            return
        if performative.max_frame_size < MIN_MAX_FRAME_SIZE:
            raise rules.MIN_MAX_FRAME_SIZE.broken(
                f"max-frame-size is {performative.max_frame_size}: it must be at least 512"
            )
        timeout = performative.idle_time_out
        if timeout and timeout < self.limits.min_idle_timeout * 1000:
            raise rules.IDLE_TIME_OUT.broken(
                f"idle-time-out is {timeout} ms: the minimum here is {self.limits.min_idle_timeout} s"
            )
        self._idle.peer_wants(timeout, self.context.now)
        self.channels.peer_opened(performative.channel_max)
        too_large = self.write_buffer.peer_opened(performative.max_frame_size)
        if too_large is not None:
            raise rules.PIPELINED_FRAME_SIZE.broken(
                f"a frame of {too_large} octets waits to be sent, and max-frame-size is {performative.max_frame_size}"
            )
        self.context.report(ConnectionOpened(performative))

    def _on_close(self, performative: Close) -> None:
        # The standard has no close without an open before it, so ours is sent first (2.4.3).
        if self.state is ConnectionState.OPEN_RCVD:
            self.open()
        unexpected = self.state is ConnectionState.OPENED
        self.step(Step.RECV_CLOSE)
        if self.error is None:
            self.error = performative.error
        # A close that does not answer ours is answered here, and reported.
        if unexpected:
            self.context.report(ConnectionClosed(performative.error))
            self.close()
        self._drop_sessions()

    # -- faults and ends --------------------------------------------------------------------

    def fail(self, fault: RemoteProtocolError) -> RemoteProtocolError | None:
        """Close with ``fault`` and return it, or None if this end is closing already.

        After our close the peer's faults are dropped (2.4.6).
        """
        if self.state in _CLOSING:
            return None
        self.close(error_of(fault))
        return fault

    def receive_eof(self, now: float) -> None:
        """Note that the peer will send no more octets."""
        self.context.now = now
        self.context.finish_frame()
        self._lose("the peer ended the transport without a close")

    def transport_lost(self) -> None:
        """End the connection, because the transport failed in both directions."""
        self.abandon("the transport was lost")
        self.write_buffer.on_output = None
        self.frame_reader.clear()

    def abandon(self, reason: str) -> None:
        """End the connection without a close: waiting octets are dropped."""
        self.context.finish_frame()  # the peer's last frame was received whole, so it takes effect
        self.write_buffer.clear()
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        if self.state is not ConnectionState.END:
            self._end()
            self.context.report(ConnectionLost(reason))

    def _end(self) -> None:
        self.step(Step.LOST)
        self._drop_sessions()
        if self.write_buffer.on_output is not None:
            self.write_buffer.on_output()  # the pump must notice that there will be no more output

    def _drop_sessions(self) -> None:
        self.channels.drop()
        if self.state is ConnectionState.END:
            self.channels.clear()
            self._close_deadline = None

    # -- octets out -------------------------------------------------------------------------

    def _send_header(self) -> None:
        if self.allows(Step.SEND_HEADER):
            self.step(Step.SEND_HEADER)
            self.write_buffer.write_header(AMQP_HEADER)

    def data_to_send(self) -> bytes | None:
        """Return octets for the transport.

        ``b""`` means that there are none now; None means that there will never be any again. Deliveries in
        progress are cut into frames here, so that at most ``output_soft`` octets of them wait.
        """
        context = self.context
        if context.dirty:
            context.flush()
        if context.feeding:
            feeding, context.feeding = context.feeding, {}
            for session in feeding:
                session.feed_partials()
        octets = self.write_buffer.take()
        if not octets:
            # If frames cannot be found any more, the answer to our close would not be read: do not wait for it.
            return None if self.state is ConnectionState.END or self.frame_reader.deaf else b""
        if context.hungry:
            hungry, context.hungry = context.hungry, {}
            for session in hungry:
                session.wake_hungry()
        return octets

    def has_output(self) -> bool:
        """Whether ``data_to_send`` may return more than ``b""``."""
        context = self.context
        return bool(
            self.write_buffer
            or context.dirty
            or context.feeding
            or self.state is ConnectionState.END
            or self.frame_reader.deaf
        )

    # -- events, touched objects, time ------------------------------------------------------

    def next_event(self) -> Event | None:
        """Return the oldest event that was not returned yet, or None."""
        event: Event | None = self.context.next_event()
        return event

    def touch(self, item: Touchable | None) -> None:
        """List ``item`` for ``take_touched``, once."""
        self.context.touch(item)

    def take_touched(self) -> list[Touchable]:
        """Return the objects to wake now, each once, and clear the list."""
        return self.context.take_touched()

    def next_deadline(self) -> float | None:
        """Return the time at which ``handle_timer`` must be called, or None."""
        if self.state is not ConnectionState.OPENED:
            return self._close_deadline
        context, due = self.context, self._idle.deadline()
        for deadline in (context.answers.deadline(), context.detaches.deadline()):
            if deadline is not None and (due is None or deadline < due):
                due = deadline
        return due

    def handle_timer(self, now: float) -> None:
        """Do everything that is due at ``now``.

        That is: send a heartbeat (2.4.5), end a connection whose peer is silent, give up a close that was not
        answered, and end links or the connection if an answer is overdue. If this is called so late that the
        peer's idle time-out has passed, the connection is closed with an error (2.4.5).

        Raises:
            RemoteProtocolError: the peer was silent for too long, or did not answer in time.
        """
        self.context.now = now
        if self._close_deadline is not None and now >= self._close_deadline:
            self.abandon(f"no close from the peer within {self.limits.close_timeout} s")
        if self.state is not ConnectionState.OPENED:
            return
        silence = self._idle.silent_for(now)
        if silence is not None:
            fault = rules.IDLE.broken(f"no frame from the peer for {silence:.0f} s")
            self.fail(fault)
            raise fault
        self._check_answers(now)
        exceeded = self._idle.exceeded(now, self.write_buffer.wrote)
        if exceeded is not None:
            reason = (
                f"nothing was written for {exceeded:.0f} s, which exceeds the peer's idle time-out (2.4.5)"
            )
            self.context.report(ConnectionLost(reason))
            self.close(Error(condition=Condition.CONNECTION_FORCED.value, description=reason))
            return
        due = self._idle.heartbeat_due(now, self.write_buffer.wrote)
        if due is not None:
            self.write_buffer.wrote = False
            if due:
                self.write_buffer.keep_alive()

    def _check_answers(self, now: float) -> None:
        """End the links or the connection whose answers are overdue.

        An attach that is not answered ends only its link, because a program at the peer may decide about it
        slowly.

        Raises:
            RemoteProtocolError: another answer is overdue.
        """
        context = self.context
        for link, _ in context.detaches.take_overdue(now):
            assert isinstance(link, Link)
            link.fail(rules.NO_TERMINUS.broken("an attach without a terminus was not followed by a detach"))
        for key, what in context.answers.take_overdue(now):
            fault = rules.ANSWER.broken(context.answers.describe(what, self.limits.answer_timeout))
            if isinstance(key, Link):
                key.fail(fault)
                continue
            self.fail(fault)
            raise fault


def _encode_open(performative: Open) -> bytes:
    """Return the frame with our open, encoded early so that sending it cannot fail.

    It may be sent in answer to a fault of the peer.
    """
    frame = encode_frame(0, encode(performative))
    if len(frame) > SIZE_BEFORE_OPEN:
        raise LocalProtocolError(
            f"{Condition.FRAME_SIZE_TOO_SMALL}: the open frame has {len(frame)} octets: expected "
            f"at most {SIZE_BEFORE_OPEN}; shorten properties, container_id or hostname"
        )
    return frame
