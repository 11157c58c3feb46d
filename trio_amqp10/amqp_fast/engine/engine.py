"""The engine of one connection, for both roles (RFC 006, 2.2, 3.2).

It reads and writes frames, orders the output, pings and closes. A pump calls ``receive_slice`` and ``has_input`` (or
``receive_data`` for both), ``receive_eof``, ``transport_lost``, ``next_event``, ``data_to_send``, ``next_deadline``,
``handle_timer``, ``take_touched`` and ``wants_data``.

The protocol has no credit for messages of a client, so the only flow control is that of the transport: while ``wants_data`` is
False, the pump reads nothing, and the peer's silence is not counted. This also slows down a peer that causes output without
reading it.

Commands of the connection are written before those of channels (2.2.9). Channels take turns, one command or fragment each, so
that a large message on one channel does not delay the others (2.2.5).

``negotiation`` covers the time until the connection is open. If the client breaks a rule in that time, the server waits before it
ends the connection (3.2.12).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.amqp_fast.wire.frames import FRAME_END, INITIATION, NEGOTIATION_MAX, frame_of, read_size
from trio_amqp10.core.channel_engine import ChannelEngine
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.protocol_headers import describe_greeting
from trio_amqp10.core.reply_codes import ReplyCodeRfc011, reply_text

from .channel import Channel
from .events import ChannelOpened, ConnectionClosed, ConnectionLost
from .limits import Limits
from .negotiation import Negotiation
from .partial_messages import PartialMessages
from .states import CONNECTION, EXPECTED, ConnectionState, Lifecycle, Step, When

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp_fast.wire.commands import Command, CommandTable

    from .events import Event
    from .handle import Handle
    from .tuning import Tuning

_R = ReplyCodeRfc011
_SLICE_FRAMES: Final = 64
_SLICE_OCTETS: Final = 64 * 1024
_WRITE_OCTETS: Final = 256 * 1024
"""The limit of one write, so that commands of the connection do not wait long."""

_USABLE: Final = (ConnectionState.OPENING, ConnectionState.OPEN)
_UNTUNED: Final = (
    ConnectionState.AWAIT_CHALLENGE,
    ConnectionState.AWAIT_RESPONSE,
    ConnectionState.AWAIT_TUNE,
)
_FRAGMENTED: Final = (spec.HandleSend, spec.HandleNotify, spec.HandlePrepare)
_NEGOTIATED: Final = (spec.ConnectionChallenge, spec.ConnectionResponse, spec.ConnectionTune)


class Engine(ChannelEngine["Limits", "ConnectionState", "Channel", "Event"]):
    """One connection.

    Args:
        role: the role of this end.
        now: seconds of the caller's clock; the timeout of the negotiation starts here.
        limits: the limits to propose and to enforce.
        opening: the open that a client sends; with a ``confirm_tag`` the client waits for the server's reply.
        dictionary: a client's full names of headers by their short names (3.2.5.2).
        partials: incomplete messages of earlier connections; None to keep those of this connection only.
        commands: the commands of this protocol version.

    Attributes:
        partials: as given.
        owner: identity of the peer as an owner of incomplete messages; a server sets it to the client's name.
    """

    __slots__ = (
        "_answers",
        "_awaits_tune",
        "_commands",
        "_deaf",
        "_due",
        "_expected",
        "_goodbye",
        "_handles",
        "_last_channel",
        "_last_handle",
        "_negotiation",
        "_out",
        "_queued",
        "_queues",
        "_server",
        "owner",
        "partials",
    )

    def __init__(
        self,
        role: EndpointRole,
        now: float,
        limits: Limits | None = None,
        *,
        opening: spec.ConnectionOpen | None = None,
        dictionary: Mapping[str, str] | None = None,
        partials: PartialMessages | None = None,
        commands: CommandTable = spec.COMMANDS,
    ) -> None:
        limits = limits or Limits()
        lifecycle = Lifecycle(CONNECTION, ConnectionState.AWAIT_INITIATION, ConnectionState.CLOSED)
        super().__init__(role, now, limits, lifecycle, limits.answer_timeout)
        self.partials: PartialMessages = PartialMessages() if partials is None else partials
        self.owner: str = ""
        self._commands = commands
        self._server = role is EndpointRole.SERVER
        self._expected = EXPECTED[role]
        self._negotiation = Negotiation(
            role,
            lifecycle,
            limits,
            opening or spec.ConnectionOpen(confirm_tag=1),
            dictionary or {},
            write=self._write,
            emit=self.emit,
        )
        self._due: tuple[Command, int] | None = None  # a command, and the size of the fragment after it
        self._out: list[bytes] = []
        # The keys are numbers, so that queued octets do not keep a closed channel in memory.
        self._queues: dict[int, deque[bytes]] = {}
        self._queued = 0
        self._answers = 0  # upper bound of the queued octets that the peer caused
        self._handles: dict[int, Handle] = {}
        self._last_channel = self._last_handle = 0
        self._deaf = False  # input is ignored, because its frame boundaries are unknown
        self._goodbye = b""
        self._awaits_tune = False  # a client has responded, and the server has not decided
        if not self._server:
            self._lifecycle.step(Step.INITIATION)
            self._enqueue(INITIATION)

    @property
    def is_open(self) -> bool:
        """Whether both ends have opened the connection."""
        return self.state is ConnectionState.OPEN

    @property
    def queued(self) -> int:
        """Octets that wait to be written."""
        return self._queued

    @property
    def has_room(self) -> bool:
        """Whether less than ``Limits.write_buffer`` waits to be written.

        Channels are woken when this becomes True.
        """
        return self._queued < self.limits.write_buffer

    @property
    def has_room_for_answers(self) -> bool:
        """Whether the peer may cause more output; otherwise its commands wait unread.

        Channels are woken when this becomes True.
        """
        return self._answers < self.limits.write_buffer

    @property
    def frame_max(self) -> int:
        """The maximum octets of a command or a fragment that we write."""
        return self.tuning.frame_max

    @property
    def tuning(self) -> Tuning:
        """The values that both ends have agreed on."""
        return self._negotiation.tuning

    @property
    def opened(self) -> spec.ConnectionOpen:
        """The open command of the client."""
        return self._negotiation.opened

    # -- for the pump -----------------------------------------------------------------------

    def receive_slice(self, data: bytes, now: float) -> None:
        """Process octets, but at most 64 commands or 64 KiB; see ``has_input``.

        Raises:
            ReplyError: as ``receive_data``.
        """
        self.now: float = now
        if data:
            self._buffer += data
            self._heartbeats.note_input(now)
        try:
            self._take_slice()
        except ReplyError as fault:
            self._fail(fault)
            raise

    def unread_input(self) -> bytes:
        """Return the octets that were not read yet.

        A command whose fragment is not complete is among them.
        """
        begun = b"" if self._due is None else frame_of(self._due[0])
        return begun + self._buffer

    @property
    def _reads(self) -> bool:
        return (
            self.state not in (ConnectionState.CLOSED, ConnectionState.REFUSING)
            and not self._negotiation.waits_for_decision()
        )

    def data_to_send(self) -> bytes | None:
        """Return some of the octets to write; None if there will be no more."""
        had_room = self.has_room
        parts, self._out = self._out, []
        size = sum(map(len, parts))
        while self._queues and size < _WRITE_OCTETS:
            for channel, queue in list(self._queues.items()):
                octets = queue.popleft()
                parts.append(octets)
                size += len(octets)
                if not queue:
                    del self._queues[channel]
        self._queued -= size
        self._answers = min(self._answers, self._queued)
        if self.has_room and not had_room:
            self._touched.update(dict.fromkeys(self._channels.values()))
        if not parts and self.state is ConnectionState.CLOSED:
            return None
        return b"".join(parts)

    def has_output(self) -> bool:
        """Whether ``data_to_send`` will return octets or None."""
        return bool(self._out or self._queues) or self.state is ConnectionState.CLOSED

    def handle_timer(self, now: float) -> None:
        """Do the work that is due: ping, end a pause, or give up a silent peer."""
        self.now = now
        if self.state is ConnectionState.CLOSED:
            return
        if self._deadline is not None and now >= self._deadline:
            if self.state is ConnectionState.REFUSING:
                self._enqueue(self._goodbye)
                self._finish()
            else:
                due = (
                    "to close" if self.state is ConnectionState.CLOSE_SENT else f"in state {self.state.name}"
                )
                self._lose(f"the peer took too long {due}")
        elif self._heartbeats.silent(now, self.wants_data()):
            self._lose("the peer was silent for two heartbeats")
        elif overdue := self.answers.take_overdue(now):
            reason = self.answers.describe(overdue[0][1], self.limits.answer_timeout)
            self.close(now, _R.INTERNAL_ERROR, reply_text(_R.INTERNAL_ERROR, reason))
            self._lose(reason)
        elif self._heartbeats.due(now) and self.is_open:
            self._write(spec.ConnectionPing())

    # -- for channels -----------------------------------------------------------------------

    def enqueue(self, channel: Channel, octets: bytes, *, paced: bool = False) -> None:
        """Queue octets after the earlier octets of the channel.

        ``paced``: the sender waited for room, so they do not count as caused by the peer.
        """
        self._count_output(len(octets))
        self._queues.setdefault(channel.id, deque()).append(octets)
        if not paced:
            self._answers += len(octets)

    def _count_output(self, octets: int) -> None:
        if not self._queued:
            self._note_output()
        self._queued += octets

    def _drop_output(self) -> None:
        self._out.clear()
        self._queues.clear()
        self._queued = self._answers = 0

    def drop_largest(self, limit: str) -> bool:
        """Close the channel that holds the most, with 506; see ``PoolMember``.

        A channel whose own message exceeds the limit is closed in the same way.
        """
        greediest = max(self._channels.values(), key=lambda each: each.partial, default=None)
        if greediest is None or not greediest.partial:
            return False
        greediest.fail(self._too_much(limit))
        return True

    def forget(self, channel: Channel) -> None:
        """Free the number of a channel."""
        self._channels.pop(channel.id, None)

    def handle(self, number: int) -> Handle | None:
        """Return the handle with this number; None if there is none."""
        return self._handles.get(number)

    def add_handle(self, handle: Handle) -> None:
        """Record a handle under its number."""
        self._handles[handle.id] = handle

    def remove_handle(self, handle: Handle) -> None:
        """Free the number of a handle."""
        del self._handles[handle.id]

    def check_handles(self) -> None:
        """Raise ``ReplyError``, 506 for the handle, if ``Limits.handle_max`` is exceeded."""
        most = self.limits.handle_max
        if most and len(self._handles) > most:
            raise ReplyError(_R.INSUFFICIENT_RESOURCES, f"more than {most} handles", Level.HANDLE)

    def free_handle(self) -> int:
        """Return a free number for a handle.

        A number that was freed recently is avoided, because late commands may still contain it.

        Raises:
            LocalProtocolError: all numbers are in use.
        """
        self._last_handle = _free_number(self._handles, self._last_handle)
        return self._last_handle

    # -- for the application ----------------------------------------------------------------

    def open_channel(self, command: spec.ChannelOpen | None = None) -> Channel:
        """Open a channel of a client.

        This is possible before the server has confirmed the connection.

        Args:
            command: the command to send; a ``channel_id`` of 0 is replaced by a free number.

        Raises:
            LocalProtocolError: this is not an open connection of a client, or the number is in use.
        """
        self._require(EndpointRole.CLIENT, *_USABLE)
        command = command or spec.ChannelOpen()
        number = command.channel_id or _free_number(self._channels, self._last_channel)
        if number in self._channels:
            raise LocalProtocolError(f"channel {number} is already open")
        most = self.tuning.channel_max
        if most and len(self._channels) >= most:
            raise LocalProtocolError(f"the server allows {most} channels, and all are open")
        made = spec.ChannelOpen(
            channel_id=number,
            confirm_tag=command.confirm_tag,
            transacted=command.transacted,
            restartable=command.restartable,
            options=command.options,
            out_of_band=command.out_of_band,
        )
        octets = frame_of(made)
        self._last_channel = number
        channel = self._channels[number] = Channel(self, made)
        self.enqueue(channel, octets)
        return channel

    def challenge(self, mechanisms: str, challenges: dict[str, Any], now: float) -> None:
        """Send a server's challenge, the first one or a further one.

        Raises:
            LocalProtocolError: it is not a server's turn, or the strings are too long.
            ReplyError: as ``receive_data``, because octets that waited are processed now.
        """
        command = spec.ConnectionChallenge(mechanisms=mechanisms, challenges=challenges)
        self._negotiation.send(EndpointRole.SERVER, Step.CHALLENGE, command)
        self._read_on(now)

    def respond(self, mechanism: str, responses: dict[str, Any], now: float) -> None:
        """Send a client's response to a challenge; raises as ``challenge``."""
        command = spec.ConnectionResponse(mechanism=mechanism, responses=responses)
        self._negotiation.send(EndpointRole.CLIENT, Step.RESPONSE, command)
        self._awaits_tune = True
        self._read_on(now)

    def accept_login(self, now: float) -> None:
        """Accept the login as a server, and propose limits; raises as ``challenge``."""
        self._negotiation.tune()
        self._read_on(now)

    def refuse_login(self, now: float, text: str = "") -> None:
        """Refuse the login as a server: the transport ends after a pause.

        If there is a text, a close with 502 is sent at the end of the pause.

        Raises:
            LocalProtocolError: no login waits for a decision.
        """
        self._require(EndpointRole.SERVER, ConnectionState.AWAIT_TUNE)
        goodbye = spec.ConnectionClose(
            reply_code=_R.SYNTAX_ERROR, reply_text=reply_text(_R.SYNTAX_ERROR, text)
        )
        self._refuse(now, frame_of(goodbye) if text else b"")

    def accept_open(self, now: float) -> None:
        """Open the connection as a server; raises as ``challenge``."""
        self._require(EndpointRole.SERVER, ConnectionState.OPENING)
        tag = self.opened.confirm_tag
        if tag:
            self._write(spec.ConnectionReply(confirm_tag=tag, reply_text=reply_text(_R.SUCCESS)))
        self._lifecycle.step(Step.ACCEPT)
        self._begin(now)
        self._read_on(now)

    def ping(self, *, respond: bool = True) -> None:
        """Ping the peer; with ``respond`` the peer must answer.

        Raises:
            LocalProtocolError: the connection is not open.
        """
        self._require(self.role, ConnectionState.OPEN)
        self._write(spec.ConnectionPing(respond=respond))

    def close(self, now: float, code: int = 200, text: str = "") -> None:
        """Write a close.

        With a code of 2xx, output that was written before is sent first; with an error it is dropped.

        Raises:
            LocalProtocolError: the text is not a valid short string.
        """
        if self._lifecycle.permits(Step.SEND_CLOSE):
            command = spec.ConnectionClose(reply_code=code, reply_text=text)
            self._goodbye = frame_of(command)
            self._flush_channels(write=code // 100 == 2)
            self._enqueue(self._goodbye)
            self._lifecycle.step(Step.SEND_CLOSE)
            self._deadline = now + self.limits.close_timeout
            self._lose_channels()
        elif self.state is not ConnectionState.CLOSE_SENT:
            self._finish()

    def _require(self, role: EndpointRole, *states: ConnectionState) -> None:
        if self.role is not role or self.state not in states:
            raise LocalProtocolError(f"a {self.role.value} cannot do this in state {self.state.name}")

    def _write(self, command: Command) -> None:
        self._enqueue(frame_of(command))

    def _enqueue(self, octets: bytes) -> None:
        if octets:
            self._count_output(len(octets))
            self._answers += len(octets)
            self._out.append(octets)

    def _flush_channels(self, *, write: bool) -> None:
        """Move the queued octets of all channels to the output, or drop them."""
        while self._queues:
            for channel, queue in list(self._queues.items()):
                octets = queue.popleft()
                if write:
                    self._out.append(octets)
                else:
                    self._queued -= len(octets)
                if not queue:
                    del self._queues[channel]

    # -- frames -----------------------------------------------------------------------------

    def _take_slice(self) -> None:
        """Take commands until the octets end, a decision is due, or the slice is full."""
        buffer, pos, count, more = self._buffer, 0, 0, True
        try:
            while self._reads:
                if count >= _SLICE_FRAMES or pos >= _SLICE_OCTETS:
                    break
                end = self._take_next(pos)
                if end == pos:
                    more = False
                    break
                pos = end
                count += 1
        finally:
            del buffer[:pos]
            if self._deaf or self.state in (ConnectionState.CLOSED, ConnectionState.REFUSING):
                buffer.clear()
            self._more = more and bool(buffer)

    def _take_next(self, pos: int) -> int:
        """Process an initiation, a command or a fragment.

        Return the offset of its end, or ``pos`` if it is incomplete.
        """
        buffer = self._buffer
        if self.state is ConnectionState.AWAIT_INITIATION:
            if len(buffer) < len(INITIATION):
                return pos
            self._deaf = True  # The octets of another protocol have no frames.
            self._negotiation.take_initiation(bytes(buffer[:2]))
            self._deaf = False
            return len(INITIATION)
        if self._due is not None:
            command, size = self._due
            end = pos + size
            if len(buffer) < end:
                return pos
            self._due = None
            self._obey(command, bytes(buffer[pos:end]))
            return end
        return self._take_frame(pos)

    def _take_frame(self, pos: int) -> int:
        buffer, largest = self._buffer, self._largest_in
        try:
            sized = read_size(buffer, pos, largest)
        except ReplyError as fault:
            self._deaf = True
            # A peer of another protocol sends no frames, so the error names the octets that it sent.
            if self.state is ConnectionState.AWAIT_CHALLENGE:
                begin = bytes(buffer[pos : pos + 2])
                expected = f"expected connection challenge, got {describe_greeting(begin)}"
                fault = ReplyError(fault.code, f"{expected} ({fault.description})")
            raise fault from None
        if sized is None or len(buffer) < sum(sized):
            return pos
        start, size = sized
        end = start + size
        self._deaf = buffer[end - 1] != FRAME_END
        if self._deaf:
            raise ReplyError(
                _R.FRAMING_ERROR, f"a frame ends with {buffer[end - 1]:#04x}, not {FRAME_END:#04x}"
            )
        command = self._commands.read(bytes(buffer[start : end - 1]))
        if isinstance(command, _NEGOTIATED) and size > NEGOTIATION_MAX:
            raise ReplyError(
                _R.FRAMING_ERROR,
                f"{command.plan.name} of {size} octets exceeds the maximum of {NEGOTIATION_MAX}",
            )
        fragment = 0
        if isinstance(command, _FRAGMENTED) and not getattr(command, "out_of_band", False):
            fragment = command.fragment_size
            # A fragment of a wrong size cannot be skipped reliably, so all later input is ignored.
        if fragment > largest:
            self._deaf = True
            raise ReplyError(
                _R.FRAMING_ERROR, f"a fragment of {fragment} octets exceeds the maximum of {largest}"
            )
        if fragment:
            self._due = command, fragment
        else:
            self._obey(command, b"")
        return end

    @property
    def _largest_in(self) -> int:
        """The maximum octets of a command or a fragment that we accept.

        Commands of the negotiation have a limit of their own, because no limit is agreed yet (3.2.3 to 3.2.5).
        """
        if self.state in _UNTUNED:
            return NEGOTIATION_MAX
        if self.state is ConnectionState.AWAIT_OPEN:
            return max(NEGOTIATION_MAX, self.limits.frame_max)
        return self.limits.frame_max

    def _obey(self, command: Any, fragment: bytes) -> None:
        if self.state is ConnectionState.CLOSE_SENT:
            self._obey_closing(command)
            return
        rule = self._expected[type(command)]
        if rule.when is When.NEVER:
            raise ReplyError(
                _R.COMMAND_NOT_VALID, f"{command.plan.name} must not be sent to a {self.role.value}"
            )
            # Only the negotiation has an order between the ends (3.2.2 to 3.2.6).
        if rule.when is When.IN_TURN:
            self._negotiation.receive(command)
            if not self._server and self.state in _USABLE:
                self._begin_client(command)
        elif isinstance(command, spec.ConnectionClose):
            self._lifecycle.receive(Step.RECV_CLOSE)
            self._flush_channels(write=False)
            self._write(spec.ConnectionClose(reply_text=reply_text(_R.SUCCESS)))
            self.emit(ConnectionClosed(command))
            self._lose_channels()
        elif self.state not in _USABLE:
            raise ReplyError(_R.COMMAND_NOT_VALID, f"{command.plan.name} before the connection is open")
        elif isinstance(command, spec.ConnectionPing):
            self._heartbeats.patience = 2 * self.limits.heartbeat  # pings are optional, so wait for the first
            if command.respond:
                self._write(spec.ConnectionPing())
        else:
            self._obey_channel(command, fragment)

    def _obey_closing(self, command: Any) -> None:
        """Answer each command after our close with another close (3.2.9).

        This ends when the peer's close arrives.
        """
        if isinstance(command, spec.ConnectionClose):
            self._lifecycle.receive(Step.RECV_CLOSE)
        else:
            self._enqueue(self._goodbye)

    def _begin_client(self, command: Command) -> None:
        """Start the heartbeats after the tune, and end the timeout after the open."""
        if isinstance(command, spec.ConnectionTune):
            self._awaits_tune = False
            self._begin(self.now)
        if self.is_open:
            self._deadline = None

    def _begin(self, now: float) -> None:
        if self._server:
            self._deadline = None
        self._heartbeats.begin(self.tuning.heartbeat, self._heartbeats.patience, now)

    # -- channels ---------------------------------------------------------------------------

    def _obey_channel(self, command: Any, fragment: bytes) -> None:
        handle_id = getattr(command, "handle_id", None)
        if handle_id is not None and not isinstance(command, spec.HandleOpen):
            handle = self._handles.get(handle_id)
            if handle is not None:
                handle.channel.receive(command, fragment)
            elif not isinstance(command, spec.HandleClose):  # it may have crossed our close (3.5.16)
                raise self._unready(command, f"handle {handle_id}")
            return
        channel = self._channels.get(command.channel_id)
        if isinstance(command, spec.ChannelOpen):
            self._receive_open(channel, command)
        elif channel is not None:
            channel.receive(command, fragment)
        elif isinstance(command, spec.HandleOpen):
            raise ReplyError(
                _R.CHANNEL_NOT_READY, f"handle open on channel {command.channel_id}, which is not open"
            )
        elif not isinstance(command, spec.ChannelClose):  # it may be one of several answers (3.3.7)
            raise self._unready(command, f"channel {command.channel_id}")

    def _unready(self, command: Command, where: str) -> ReplyError:
        rule = self._expected[type(command)]
        return ReplyError(rule.code, f"{command.plan.name} on {where}, which is not open", rule.level)

    def _receive_open(self, there: Channel | None, command: spec.ChannelOpen) -> None:
        if not command.channel_id:
            raise ReplyError(_R.SYNTAX_ERROR, "channel-id: must be at least 1, not 0")
        if there is not None:
            rule = self._expected[spec.ChannelOpen]
            if there.state.name == "CLOSE_SENT":
                there.receive(command, b"")
            else:
                there.fail(ReplyError(rule.code, f"channel {there.id} is already open", rule.level))
            return
        channel = self._channels[command.channel_id] = Channel(self, command)
        most = self.limits.channel_max
        if most and len(self._channels) > most:
            channel.fail(ReplyError(_R.INSUFFICIENT_RESOURCES, f"more than {most} channels", Level.CHANNEL))
        elif command.out_of_band:
            channel.fail(
                ReplyError(
                    _R.NOT_IMPLEMENTED,
                    "out-of-band: not supported, send messages on the connection",
                    Level.CHANNEL,
                )
            )
        else:
            if command.confirm_tag:
                channel.write(
                    spec.ChannelReply(confirm_tag=command.confirm_tag, reply_text=reply_text(_R.SUCCESS))
                )
            self.emit(ChannelOpened(channel))

    # -- close ------------------------------------------------------------------------------

    def _fail(self, fault: ReplyError) -> None:
        """Send the reason of the failure and end the connection.

        A server waits before that if the connection is not open yet (3.2.12).
        """
        if self.state in _USABLE:
            self.close(self.now, fault.code, fault.reply_text)
            if self._deaf:
                self._finish()
            return
        if self.state in (ConnectionState.CLOSED, ConnectionState.CLOSE_SENT):
            self._finish()
            return
        close = spec.ConnectionClose(reply_code=fault.code, reply_text=fault.reply_text)
        goodbye = b"" if self._deaf else frame_of(close)
        if self._server:
            self._refuse(self.now, goodbye)
            return
        if self._deaf:
            self._drop_output()  # The server may speak another protocol, so it gets no more frames.
        else:
            self._enqueue(goodbye)
        self._finish()

    def _refuse(self, now: float, goodbye: bytes) -> None:
        """Wait for ``Limits.penalty``, then write ``goodbye`` and end the transport."""
        self._lifecycle.step(Step.REFUSE)
        self._goodbye = goodbye
        self._buffer.clear()
        self._more = False
        self._deadline = now + self.limits.penalty

    def _lose_channels(self) -> None:
        for channel in list(self._channels.values()):
            channel.lose()
        self._channels.clear()
        self._flush_channels(write=False)

    def _lost(self, reason: str) -> Event:
        is_overdue = self._deadline is not None and self.now >= self._deadline
        return ConnectionLost(reason, self._awaits_tune and not is_overdue)

    def _too_much(self, limit: str) -> ReplyError:
        return ReplyError(
            _R.INSUFFICIENT_RESOURCES, f"incomplete messages exceed the limit of {limit}", Level.CHANNEL
        )


def _free_number(taken: dict[int, Any], last: int) -> int:
    """Return the first free number after ``last``, from 1 to 65535."""
    for step in range(1, 0x10000):
        number = (last + step - 1) % 0xFFFF + 1
        if number not in taken:
            return number
    raise LocalProtocolError("all numbers are in use")
