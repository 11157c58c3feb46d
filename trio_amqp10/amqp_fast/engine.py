"""The engine of one connection of AMQP/Fast, for both roles: frames, order of writing, pings, close (RFC 006, 2.2, 3.2).

It offers a pump its calls: ``receive_slice`` and ``has_input`` (or ``receive_data`` for both), ``receive_eof``,
``transport_lost``, ``next_event``, ``data_to_send``, ``next_deadline``, ``handle_timer``, ``take_touched`` and ``wants_data``.
There is no credit for what a client sends, so the transport is the only brake: while ``wants_data`` is False the pump reads
nothing, and the peer's silence does not count. The same brake holds a peer that makes us write and does not read.

Commands of the connection are written before those of channels (2.2.9), and channels take turns, one command or fragment each,
so that a large message of one holds up no other (2.2.5).

What is said until the connection is open is in ``negotiation``. A server ends a connection that breaks a rule before that
after a pause (3.2.12).
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.awaited_answers import AwaitedAnswers
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCodeRfc011, reply_text

from . import spec
from .channel import Channel
from .events import ChannelOpened, ConnectionClosed, ConnectionLost
from .faults import Level, ReplyError
from .frames import FRAME_END, INITIATION, NEGOTIATION_MAX, frame_of, read_size
from .heartbeats import Heartbeats
from .limits import Limits
from .negotiation import Negotiation
from .resumable_messages import PartialMessages
from .states import CONNECTION, EXPECTED, ConnectionState, Lifecycle, Step, When

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.partial_pool import Pool

    from .commands import Command, CommandTable
    from .events import Event
    from .handle import Handle
    from .tuning import Tuning

__all__ = ["Engine"]

_R = ReplyCodeRfc011
_SLICE_FRAMES: Final = 64
_SLICE_OCTETS: Final = 64 * 1024
_WRITE_OCTETS: Final = 256 * 1024
"""Octets of channels that one write has, so that commands of the connection need not wait long."""

_USABLE: Final = (ConnectionState.OPENING, ConnectionState.OPEN)
_UNTUNED: Final = (
    ConnectionState.AWAIT_CHALLENGE,
    ConnectionState.AWAIT_RESPONSE,
    ConnectionState.AWAIT_TUNE,
)
_FRAGMENTED: Final = (spec.HandleSend, spec.HandleNotify, spec.HandlePrepare)
_READING: Final = "reading"
"""Why no time passes for the peer's answers: they are not read."""
_NEGOTIATED: Final = (spec.ConnectionChallenge, spec.ConnectionResponse, spec.ConnectionTune)


class Engine:
    """One connection.

    Args:
        role: which end this is.
        now: seconds of the caller's clock; the time for the negotiation counts from here.
        limits: what is proposed and borne.
        opening: what a client opens; with a ``confirm_tag`` the server's reply is waited for.
        dictionary: a client's full names of headers by their short ones (3.2.5.2).
        partials: messages of which a part has come before; of this connection alone if None.
        commands: the commands that are known.

    Attributes:
        role: which end this is.
        limits: as given.
        partials: as given.
        owner: whose partial messages those of the peer are; a server sets it to the client's name.
        partial: octets of messages that are not complete.
        pool: counts them with those of other connections; None for none. See ``Pool.join``.
        on_output: as of ``net.engine_interface.Engine``.
        held: octets of arrivals that were not taken yet.
        braked: the application's switch: nothing is read while it is set. Call ``Pump.wake_writer`` when it is cleared.
        crowded: the application's question, for reasons that come and go elsewhere, as a full store: asked before each read of an
            open connection, and nothing is read if it returns True; None for never. Call ``Pump.wake_writer`` when the answer changes.
        answers: what the server must answer; the application says what it expects.
        now: the last time that the engine was told.
    """

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
        self.role = role
        self.limits: Limits = limits or Limits()
        self.partials: PartialMessages = PartialMessages() if partials is None else partials
        self.owner = ""
        self.partial: int = 0
        self.pool: Pool | None = None
        self.on_output: Callable[[], object] | None = None
        self.held = 0
        self.braked = False
        self.crowded: Callable[[], bool] | None = None
        self.now: float = now
        self._commands = commands
        self._server = role is EndpointRole.SERVER
        self._expected = EXPECTED[role]
        self._lifecycle = Lifecycle(CONNECTION, ConnectionState.AWAIT_INITIATION, ConnectionState.CLOSED)
        self._negotiation = Negotiation(
            role,
            self._lifecycle,
            self.limits,
            opening or spec.ConnectionOpen(confirm_tag=1),
            dictionary or {},
            write=self._write,
            emit=self.emit,
        )
        self._buffer = bytearray()
        self._more = False
        self._due: tuple[Command, int] | None = None  # whose fragment comes next, of so many octets
        self._out: list[bytes] = []
        self._queues: dict[int, deque[bytes]] = {}  # by number: octets are not to keep a channel that is over
        self._queued = 0
        self._answers = 0  # of these octets: those that the peer made us write; never less than there are
        self._events: deque[Event] = deque()
        self._touched: dict[Channel, None] = {}
        self._channels: dict[int, Channel] = {}
        self._handles: dict[int, Handle] = {}
        self._last_channel = self._last_handle = 0
        self._deaf = False  # behind octets whose end is not known
        self._goodbye = b""
        self._heartbeats = Heartbeats()
        self.answers: AwaitedAnswers = AwaitedAnswers(self.limits.answer_timeout)
        wait = self.limits.handshake_timeout
        self._deadline: float | None = None if wait is None else now + wait
        if not self._server:
            self._lifecycle.step(Step.INITIATION)
            self._enqueue(INITIATION)

    @property
    def state(self) -> ConnectionState:
        """What is due next; OPEN, REFUSING, CLOSE_SENT or CLOSED."""
        return self._lifecycle.state

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
        """Whether less than ``Limits.write_buffer`` waits to be written; channels are woken when there is room again."""
        return self._queued < self.limits.write_buffer

    @property
    def has_room_for_answers(self) -> bool:
        """Whether the peer may make us write more: otherwise its commands wait, and it is not read. Channels are woken as above."""
        return self._answers < self.limits.write_buffer

    @property
    def partial_octets(self) -> int:
        """As of ``PoolMember``."""
        return self.partial

    @property
    def frame_max(self) -> int:
        """Octets of a command or a fragment that we write at most."""
        return self.tuning.frame_max

    @property
    def tuning(self) -> Tuning:
        """What both ends have agreed on."""
        return self._negotiation.tuning

    @property
    def opened(self) -> spec.ConnectionOpen:
        """The client's open."""
        return self._negotiation.opened

    # -- what a pump calls ------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Octets from the transport.

        Raises:
            ReplyError: the peer broke a rule that ends the connection; what it is sent is queued.
        """
        self.receive_slice(data, now)
        while self.has_input():
            self.receive_slice(b"", now)

    def receive_slice(self, data: bytes, now: float) -> None:
        """As ``receive_data``, but takes 64 commands or 64 KiB at most: see ``has_input``.

        Raises:
            ReplyError: as ``receive_data``.
        """
        self.now = now
        if data and self.state is not ConnectionState.REFUSING:
            self._buffer += data
            self._heartbeats.heard(now)
        try:
            self._take_slice()
        except ReplyError as fault:
            self._fail(fault)
            raise

    def has_input(self) -> bool:
        """Whether octets are left of those that came: call ``receive_slice`` again, without any."""
        return self._more and self._reads

    @property
    def _reads(self) -> bool:
        """Whether the next octets may be looked at."""
        return (
            self.state not in (ConnectionState.CLOSED, ConnectionState.REFUSING)
            and not self._negotiation.waits_for_decision()
        )

    def wants_data(self) -> bool:
        """Whether the transport is to be read: not in a decision or a pause, while ``braked`` or ``crowded``, or with a full buffer of either direction."""
        wants = (self._reads or self.state is ConnectionState.CLOSED) and not (
            self.braked
            or self.held > self.limits.buffer
            or not self.has_room_for_answers
            or (self.is_open and self.crowded is not None and self.crowded())
        )
        if wants:
            self.answers.go_on(_READING)
        else:
            self._heartbeats.suspend()
            self.answers.hold(_READING)
        return wants

    def receive_eof(self, now: float) -> None:
        """The peer will send no more octets."""
        self.now = now
        self._lose("the peer ended the transport without a close")

    def transport_lost(self) -> None:
        """The transport failed."""
        self._out.clear()
        self._queues.clear()
        self._queued = self._answers = 0
        self.on_output = None  # nobody writes any more
        self._lose("the transport was lost")

    def next_event(self) -> Event | None:
        """What the peer did, oldest first; None when all is reported."""
        return self._events.popleft() if self._events else None

    def data_to_send(self) -> bytes | None:
        """Octets for the transport, some of those that wait; None when there will be none again."""
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
        """Whether ``data_to_send`` may have more than ``b""`` to give."""
        return bool(self._out or self._queues) or self.state is ConnectionState.CLOSED

    def next_deadline(self) -> float | None:
        """When ``handle_timer`` has something to do; None for never."""
        if self.state is ConnectionState.CLOSED:
            return None
        deadlines = (self._deadline, self._heartbeats.deadline(), self.answers.deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Do what is due: a ping, the end of a pause, or giving the peer up (``ConnectionLost``)."""
        self.now = now
        if self.state is ConnectionState.CLOSED:
            return
        if self._deadline is not None and now >= self._deadline:
            if self.state is ConnectionState.REFUSING:
                self._enqueue(self._goodbye)
                self._finish()
            else:
                due = "its close" if self.state is ConnectionState.CLOSE_SENT else self.state.name.lower()
                self._lose(f"the peer took too long: {due}")
        elif self._heartbeats.silent(now, self.wants_data()):
            self._lose("the peer was silent for two heartbeats")
        elif overdue := self.answers.take_overdue(now):
            reason = self.answers.describe(overdue[0][1], self.limits.answer_timeout)
            self.close(now, _R.INTERNAL_ERROR, reply_text(_R.INTERNAL_ERROR, reason))
            self._lose(reason)
        elif self._heartbeats.due(now) and self.is_open:
            self._write(spec.ConnectionPing())

    def take_touched(self) -> list[Channel]:
        """The channels to wake now."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    # -- what a channel calls ---------------------------------------------------------------

    def enqueue(self, channel: Channel, octets: bytes, *, paced: bool = False) -> None:
        """Octets to send, behind all others of the channel; ``paced`` if they were only made because there was room."""
        self._note_output(len(octets))
        self._queues.setdefault(channel.id, deque()).append(octets)
        if not paced:
            self._answers += len(octets)

    def _note_output(self, octets: int) -> None:
        if not self._queued and self.on_output is not None:
            self.on_output()
        self._queued += octets

    def count_partial(self, octets: int) -> None:
        """So much more of messages that are not complete is held, or less, if it is negative.

        Raises:
            ReplyError: 506 for the channel: this connection holds too much; or all together do, and this one most.
        """
        self.partial += octets
        pool = self.pool
        if pool is not None:
            pool.octets += octets
        if octets <= 0:
            return
        if self.partial > self.limits.max_partial:
            raise _too_much(f"{self.limits.max_partial} octets on this connection")
        if pool is not None and pool.octets > pool.limit and not pool.relieve(self):
            raise _too_much(str(pool))

    def drop_largest(self, limit: str) -> bool:
        """As of ``PoolMember``: the channel that holds most is closed with 506, as it is for a message of its own that is too much."""
        greediest = max(self._channels.values(), key=lambda each: each.partial, default=None)
        if greediest is None or not greediest.partial:
            return False
        greediest.fail(_too_much(limit))
        return True

    def emit(self, event: Event) -> None:
        """Something for ``next_event``."""
        self._events.append(event)

    def touch(self, channel: Channel) -> None:
        """Have the channel woken."""
        self._touched[channel] = None

    def forget(self, channel: Channel) -> None:
        """The channel's number is free again."""
        self._channels.pop(channel.id, None)

    def handle(self, number: int) -> Handle | None:
        """The handle with this number; None if there is none."""
        return self._handles.get(number)

    def add_handle(self, handle: Handle) -> None:
        """The number of a handle is taken."""
        self._handles[handle.id] = handle

    def remove_handle(self, handle: Handle) -> None:
        """The number of a handle is free again."""
        del self._handles[handle.id]

    def check_handles(self) -> None:
        """Raise ``ReplyError``, 506 for the handle, if there are more than ``Limits.handle_max``."""
        most = self.limits.handle_max
        if most and len(self._handles) > most:
            raise ReplyError(_R.INSUFFICIENT_RESOURCES, f"more than {most} handles", Level.HANDLE)

    def free_handle(self) -> int:
        """A number that no handle has; not one that was used a moment ago, because late commands may name it.

        Raises:
            LocalProtocolError: all are taken.
        """
        self._last_handle = _free_number(self._handles, self._last_handle)
        return self._last_handle

    # -- what we do -------------------------------------------------------------------------

    def open_channel(self, command: spec.ChannelOpen | None = None) -> Channel:
        """A client's new channel, also before the server has confirmed the connection.

        Args:
            command: what it is to be; with ``channel_id`` 0 a free number is taken.

        Raises:
            LocalProtocolError: not a client's open connection, or the number is taken.
        """
        self._require(EndpointRole.CLIENT, *_USABLE)
        command = command or spec.ChannelOpen()
        number = command.channel_id or _free_number(self._channels, self._last_channel)
        if number in self._channels:
            raise LocalProtocolError(f"there is a channel {number}")
        most = self.tuning.channel_max
        if most and len(self._channels) >= most:
            raise LocalProtocolError(f"the server bears {most} channels")
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
        """A server's challenge, the first one too.

        Raises:
            LocalProtocolError: not a server's turn, or the strings are too long.
            ReplyError: as ``receive_data``: octets that waited are read now.
        """
        command = spec.ConnectionChallenge(mechanisms=mechanisms, challenges=challenges)
        self._negotiation.say(EndpointRole.SERVER, Step.CHALLENGE, command)
        self._read_on(now)

    def respond(self, mechanism: str, responses: dict[str, Any], now: float) -> None:
        """A client's response to a challenge; errors as ``challenge``."""
        command = spec.ConnectionResponse(mechanism=mechanism, responses=responses)
        self._negotiation.say(EndpointRole.CLIENT, Step.RESPONSE, command)
        self._read_on(now)

    def accept_login(self, now: float) -> None:
        """A server lets the client in: propose limits; errors as ``challenge``."""
        self._negotiation.tune()
        self._read_on(now)

    def refuse_login(self, now: float, text: str = "") -> None:
        """A server does not: after the pause the transport ends. With a text the client is sent a close, 502, before that.

        Raises:
            LocalProtocolError: no login waits for an answer.
        """
        self._require(EndpointRole.SERVER, ConnectionState.AWAIT_TUNE)
        goodbye = spec.ConnectionClose(
            reply_code=_R.SYNTAX_ERROR, reply_text=reply_text(_R.SYNTAX_ERROR, text)
        )
        self._refuse(now, frame_of(goodbye) if text else b"")

    def open_by(self, deadline: float) -> None:
        """Give the peer no more time than that to open the connection; infinite for as much as ``Limits`` gives."""
        if deadline != inf:
            self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def accept_open(self, now: float) -> None:
        """A server has the virtual host: the connection is open; errors as ``challenge``."""
        self._require(EndpointRole.SERVER, ConnectionState.OPENING)
        tag = self.opened.confirm_tag
        if tag:
            self._write(spec.ConnectionReply(confirm_tag=tag, reply_text=reply_text(_R.SUCCESS)))
        self._lifecycle.step(Step.ACCEPT)
        self._begin(now)
        self._read_on(now)

    def ping(self, *, respond: bool = True) -> None:
        """Ping the peer, and have it answer if ``respond``.

        Raises:
            LocalProtocolError: the connection is not open.
        """
        self._require(self.role, ConnectionState.OPEN)
        self._write(spec.ConnectionPing(respond=respond))

    def close(self, now: float, code: int = 200, text: str = "") -> None:
        """Write a close. What was written before goes out before it, unless the code is an error.

        Raises:
            LocalProtocolError: the text is no short string.
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
            raise LocalProtocolError(f"not for a {self.role.value} in state {self.state.name}")

    def _read_on(self, now: float) -> None:
        """Read what the peer sent while a decision was due."""
        if self._buffer:
            self.receive_data(b"", now)

    def _write(self, command: Command) -> None:
        self._enqueue(frame_of(command))

    def _enqueue(self, octets: bytes) -> None:
        if octets:
            self._note_output(len(octets))
            self._answers += len(octets)
            self._out.append(octets)

    def _flush_channels(self, *, write: bool) -> None:
        """What channels wrote goes out now, or not at all."""
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
        """Take an initiation, a command or a fragment; returns where it ends, or ``pos`` if it is not whole yet."""
        buffer = self._buffer
        if self.state is ConnectionState.AWAIT_INITIATION:
            if len(buffer) < len(INITIATION):
                return pos
            self._deaf = True  # unless it is ours
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
        except ReplyError:
            self._deaf = True
            raise
        if sized is None or len(buffer) < sum(sized):
            return pos
        start, size = sized
        end = start + size
        self._deaf = buffer[end - 1] != FRAME_END
        if self._deaf:
            raise ReplyError(_R.FRAMING_ERROR, f"a frame that ends with {buffer[end - 1]:#04x}")
        command = self._commands.read(bytes(buffer[start : end - 1]))
        if isinstance(command, _NEGOTIATED) and size > NEGOTIATION_MAX:
            raise ReplyError(
                _R.FRAMING_ERROR, f"{command.plan.name} of {size} octets, above {NEGOTIATION_MAX}"
            )
        fragment = 0
        if isinstance(command, _FRAGMENTED) and not getattr(command, "out_of_band", False):
            fragment = command.fragment_size
        if fragment > largest:
            self._deaf = True
            raise ReplyError(_R.FRAMING_ERROR, f"a fragment of {fragment} octets, where {largest} are taken")
        if fragment:
            self._due = command, fragment
        else:
            self._obey(command, b"")
        return end

    @property
    def _largest_in(self) -> int:
        """Octets of a command or a fragment that we take; those of the negotiation have a limit of their own."""
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
            raise ReplyError(_R.COMMAND_NOT_VALID, f"{command.plan.name} to a {self.role.value}")
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
            self._heartbeats.pinged()
            if command.respond:
                self._write(spec.ConnectionPing())
        else:
            self._obey_channel(command, fragment)

    def _obey_closing(self, command: Any) -> None:
        """After our close each command is answered with another, until the peer's comes (3.2.9)."""
        if isinstance(command, spec.ConnectionClose):
            self._lifecycle.receive(Step.RECV_CLOSE)
        else:
            self._enqueue(self._goodbye)

    def _begin_client(self, command: Command) -> None:
        """The client has tuned and opened the connection, or the server has confirmed it."""
        if isinstance(command, spec.ConnectionTune):
            self._begin(self.now)
        if self.is_open:
            self._deadline = None

    def _begin(self, now: float) -> None:
        if self._server:
            self._deadline = None
        self._heartbeats.begin(self.tuning.heartbeat, self.limits.heartbeat, now)

    # -- channels ---------------------------------------------------------------------------

    def _obey_channel(self, command: Any, fragment: bytes) -> None:
        handle_id = getattr(command, "handle_id", None)
        if handle_id is not None and not isinstance(command, spec.HandleOpen):
            handle = self._handles.get(handle_id)
            if handle is not None:
                handle.channel.receive(command, fragment)
            elif not isinstance(command, spec.HandleClose):  # one that crossed ours is no error
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
        elif not isinstance(command, spec.ChannelClose):  # as above; also one of several (3.3.7)
            raise self._unready(command, f"channel {command.channel_id}")

    def _unready(self, command: Command, where: str) -> ReplyError:
        rule = self._expected[type(command)]
        return ReplyError(rule.code, f"{command.plan.name} on {where}, which is not open", rule.level)

    def _receive_open(self, there: Channel | None, command: spec.ChannelOpen) -> None:
        if not command.channel_id:
            raise ReplyError(_R.SYNTAX_ERROR, "channel-id: 0, where 1 is the least")
        if there is not None:
            rule = self._expected[spec.ChannelOpen]
            if there.state.name == "CLOSE_SENT":
                there.receive(command, b"")
            else:
                there.fail(ReplyError(rule.code, f"there is a channel {there.id}", rule.level))
            return
        channel = self._channels[command.channel_id] = Channel(self, command)
        most = self.limits.channel_max
        if most and len(self._channels) > most:
            channel.fail(ReplyError(_R.INSUFFICIENT_RESOURCES, f"more than {most} channels", Level.CHANNEL))
        elif command.out_of_band:
            channel.fail(ReplyError(_R.NOT_IMPLEMENTED, "out-of-band transfers", Level.CHANNEL))
        else:
            if command.confirm_tag:
                channel.write(
                    spec.ChannelReply(confirm_tag=command.confirm_tag, reply_text=reply_text(_R.SUCCESS))
                )
            self.emit(ChannelOpened(channel))

    # -- the end ----------------------------------------------------------------------------

    def _fail(self, fault: ReplyError) -> None:
        """Say why; a server does so after a pause if the connection is not open yet (3.2.12)."""
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
        else:
            self._enqueue(goodbye)
            self._finish()

    def _refuse(self, now: float, goodbye: bytes) -> None:
        """Pause, and then end the transport, with a close before that where the peer is to know."""
        self._lifecycle.step(Step.REFUSE)
        self._goodbye = goodbye
        self._buffer.clear()
        self._more = False
        self._deadline = now + self.limits.penalty

    def _lose(self, reason: str) -> None:
        if self.state is not ConnectionState.CLOSED:
            self.emit(ConnectionLost(reason))
            self._finish()

    def _finish(self) -> None:
        """Nothing more is read; what is queued is still written."""
        self._lifecycle.step(Step.LOST)
        self._buffer.clear()
        self._more = False
        self._lose_channels()
        if self.on_output is not None:
            self.on_output()  # the end of all output is news too

    def _lose_channels(self) -> None:
        for channel in list(self._channels.values()):
            channel.lose()
        self._channels.clear()
        self._flush_channels(write=False)


def _too_much(limit: str) -> ReplyError:
    return ReplyError(
        _R.INSUFFICIENT_RESOURCES, f"messages that are not complete take more than {limit}", Level.CHANNEL
    )


def _free_number(taken: dict[int, Any], last: int) -> int:
    """The next number behind ``last`` that is free, from 1 to 65535."""
    for step in range(1, 0x10000):
        number = (last + step - 1) % 0xFFFF + 1
        if number not in taken:
            return number
    raise LocalProtocolError("all numbers are taken")
