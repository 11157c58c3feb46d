"""The engine of one connection of 0-9-1, for both roles: frames, heartbeats, close (0-9-1, 2.2.4, 4.2, 4.8).

It offers a pump its calls: ``receive_slice`` and ``has_input`` (or ``receive_data`` for both), ``receive_eof``,
``transport_lost``, ``next_event``, ``data_to_send``, ``next_deadline``, ``handle_timer``, ``take_touched`` and ``wants_data``.
0-9-1 has no credit for publishes, so the transport is the only brake: while ``wants_data`` is False the pump reads nothing,
and the peer's silence does not count.

What is said until the connection is open is in ``handshake``; no octet is read while that waits for a decision.
An error of the peer's ends the connection with its reply code, once the connection is open; before that the transport
closes in silence (2.2.4), except for limits and virtual hosts that are refused with 530, and logins that are refused with
403 to clients that understand it.

Longer than 400 lines: each call of a pump or of the application is short, and there are many.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

from . import spec
from .channel import Channel
from .events import Blocked, ConnectionClosed, ConnectionLost, SecretAccepted, SecretUpdated, Unblocked
from .fast import extent
from .faults import ReplyError
from .fields import USUAL
from .frames import (
    FRAME_END,
    FRAME_MIN,
    HEAD_SIZE,
    HEARTBEAT,
    HEARTBEAT_FRAME,
    METHOD,
    OVERHEAD,
    PROTOCOL_HEADER,
    frame,
    read_head,
)
from .handshake import Handshake
from .heartbeats import Heartbeats
from .limits import Limits
from .methods import Sender
from .states import CONNECTION, ConnectionState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .events import Event
    from .fields import Letters
    from .methods import Method, MethodTable

__all__ = ["Engine"]

_SLICE_FRAMES: Final = 64
_SLICE_OCTETS: Final = 64 * 1024
_FRAME_MAX_BEFORE_TUNE: Final = 8192
"""What is taken before limits are agreed; the specification asks for 4096, and clients send more in their start-ok."""

_TOLERANCE: Final = 8
"""Octets that a server takes above frame-max: some clients count payloads alone."""

_CLOSE: Final = spec.ConnectionClose.plan
_CLOSE_OK: Final = spec.ConnectionCloseOk.plan


class Engine:
    """One connection.

    Args:
        role: which end this is.
        now: seconds of the caller's clock; the time for the handshake counts from here.
        limits: what is proposed and borne.
        start: what a server says first: its properties, mechanisms and locales.
        virtual_host: what a client opens.
        methods: the methods that are known; for extensions.
        letters: the types that field tables have.

    Attributes:
        role: which end this is.
        limits: as given.
        user: what a server calls the client once it logged in; compared with ``user-id``.
        channel_max: the highest channel number that was agreed.
        frame_max: octets of a frame that were agreed.
        heartbeat: seconds that were agreed; 0 for none.
        partial: octets of contents that are not complete.
        held: octets of arrivals that nobody took yet.
        braked: set it while nothing should be read; ring the pump's bell when it is cleared.
    """

    def __init__(
        self,
        role: Sender,
        now: float,
        limits: Limits | None = None,
        *,
        start: spec.ConnectionStart | None = None,
        virtual_host: str = "/",
        methods: MethodTable = spec.METHODS,
        letters: Letters = USUAL,
    ) -> None:
        self.role = role
        self.limits = limits or Limits()
        self.letters = letters
        self.methods = methods
        self.user: str | None = None
        self.channel_max = self.limits.channel_max
        self.frame_max = FRAME_MIN
        self.heartbeat = 0
        self.partial = 0
        self.held = 0
        self.braked = False
        self._server = role is Sender.SERVER
        self._life = Lifecycle(CONNECTION, ConnectionState.AWAIT_HEADER, ConnectionState.CLOSED)
        self._handshake = Handshake(
            role,
            self._life,
            self.limits,
            start or spec.ConnectionStart(),
            virtual_host,
            write=self._write,
            emit=self.emit,
            agreed=self._agree,
        )
        self._buffer = bytearray()
        self._more = False
        self._out: list[bytes] = []
        self._queued = 0
        self._wrote = False
        self._events: deque[Event] = deque()
        self._touched: dict[Channel, None] = {}
        self._channels: dict[int, Channel] = {}
        self._largest_in = _largest_in(_FRAME_MAX_BEFORE_TUNE, self._server)
        self._deaf = False  # after a bad frame, whose end nobody knows
        self._heartbeats = Heartbeats()
        self._secrets = 0  # that the peer has not answered; or that we have not
        wait = self.limits.handshake_timeout
        self._deadline: float | None = None if wait is None else now + wait
        if not self._server:
            self._life.step(Step.HEADER)
            self.enqueue(PROTOCOL_HEADER)

    @property
    def state(self) -> ConnectionState:
        """What is due next; OPEN, CLOSE_SENT or CLOSED."""
        return self._life.state

    @property
    def is_open(self) -> bool:
        """Whether channels may be used."""
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
    def largest_payload(self) -> int:
        """Octets of a payload that the peer takes."""
        return self.frame_max - OVERHEAD

    @property
    def peer_properties(self) -> Mapping[str, Any]:
        """The other end's properties; empty until they came."""
        return self._handshake.peer_properties

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the peer says that it understands; empty if it says nothing."""
        return self._handshake.capabilities

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
        """As ``receive_data``, but takes 64 frames or 64 KiB at most: see ``has_input``.

        Raises:
            ReplyError: as ``receive_data``.
        """
        if data:
            self._buffer += data
            self._heartbeats.heard(now)
        try:
            self._take_slice(now)
        except ReplyError as fault:
            self._fail(fault, now)
            raise

    def has_input(self) -> bool:
        """Whether octets are left of those that came: call ``receive_slice`` again, without any."""
        return (
            self._more
            and not self._handshake.waits_for_decision()
            and self.state is not ConnectionState.CLOSED
        )

    def wants_data(self) -> bool:
        """Whether the transport is to be read: not during a decision, while ``braked``, or with a full buffer."""
        wants = not (self.braked or self._handshake.waits_for_decision() or self.held > self.limits.buffer)
        if not wants:
            self._heartbeats.suspend()
        return wants

    def receive_eof(self, now: float) -> None:
        """The peer will send no more octets."""
        _ = now
        self._lose("the peer ended the transport without a close")

    def transport_lost(self) -> None:
        """The transport failed."""
        self._out.clear()
        self._queued = 0
        self._lose("the transport was lost")

    def next_event(self) -> Event | None:
        """What the peer did, oldest first; None when all is reported."""
        return self._events.popleft() if self._events else None

    def data_to_send(self) -> bytes | None:
        """Octets for the transport; None when there will be none again."""
        if not self._out:
            return None if self.state is ConnectionState.CLOSED else b""
        if not self.has_room:
            self._touched.update(dict.fromkeys(self._channels.values()))
        data = b"".join(self._out)
        self._out.clear()
        self._queued = 0
        return data

    def next_deadline(self) -> float | None:
        """When ``handle_timer`` has something to do; None for never."""
        if self.state is ConnectionState.CLOSED:
            return None
        deadlines = (self._deadline, self._heartbeats.deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Do what is due: a heartbeat, or giving the peer up (``ConnectionLost``)."""
        if self.state is ConnectionState.CLOSED:
            return
        if self._deadline is not None and now >= self._deadline:
            due = "its close-ok" if self.state is ConnectionState.CLOSE_SENT else self.state.name.lower()
            self._lose(f"the peer took too long: {due}")
        elif self._heartbeats.silent(now, self.wants_data()):
            self._lose(f"the peer was silent for {2 * self.heartbeat} s, two heartbeats")
        elif self._heartbeats.due(now):
            if not self._wrote:
                self.enqueue(HEARTBEAT_FRAME)
            self._wrote = False

    def take_touched(self) -> list[Channel]:
        """The channels to wake now."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    # -- what a channel calls ---------------------------------------------------------------

    def enqueue(self, octets: bytes) -> None:
        """Octets to send, after all others."""
        self._out.append(octets)
        self._queued += len(octets)
        self._wrote = True

    def emit(self, event: Event) -> None:
        """Something for ``next_event``."""
        self._events.append(event)

    def touch(self, channel: Channel) -> None:
        """Have the channel woken."""
        self._touched[channel] = None

    def forget(self, channel: Channel) -> None:
        """The channel's number is free again."""
        del self._channels[channel.number]

    # -- what we do -------------------------------------------------------------------------

    def open_channel(self, number: int | None = None) -> Channel:
        """A client's new channel, on the lowest free number unless one is given.

        Raises:
            LocalProtocolError: not a client's open connection, or the number is taken or above channel-max.
        """
        if self._server or not self.is_open:
            raise LocalProtocolError("a client opens channels, on an open connection")
        if number is None:
            number = next((n for n in range(1, self.channel_max + 1) if n not in self._channels), 0)
        if not 1 <= number <= self.channel_max or number in self._channels:
            raise LocalProtocolError(f"no free channel number up to {self.channel_max}: {number}")
        channel = self._channels[number] = Channel(self, number)
        channel.open()
        return channel

    def answer_start(self, answer: spec.ConnectionStartOk, now: float) -> None:
        """A client's choice of a mechanism, and its first response.

        Raises:
            LocalProtocolError: no start waits for an answer.
            ReplyError: as ``receive_data``: octets that waited are read now.
        """
        self._handshake.say(Sender.CLIENT, Step.START_OK, answer)
        self._read_on(now)

    def answer_challenge(self, response: bytes, now: float) -> None:
        """A client's response to a challenge; errors as ``answer_start``."""
        self._handshake.say(Sender.CLIENT, Step.SECURE_OK, spec.ConnectionSecureOk(response=response))
        self._read_on(now)

    def challenge(self, token: bytes, now: float) -> None:
        """A server's challenge; errors as ``answer_start``."""
        self._handshake.say(Sender.SERVER, Step.SECURE, spec.ConnectionSecure(challenge=token))
        self._read_on(now)

    def accept_login(self, user: str | None, now: float) -> None:
        """The client is who it says, ``user`` for us: propose limits; errors as ``answer_start``."""
        self._handshake.tune()
        self._read_on(now)
        self.user = user

    def refuse_login(self, explanation: str) -> None:
        """The client may not log in: a close with 403 if it understands that, and the end in any case.

        Raises:
            LocalProtocolError: no login waits for an answer.
        """
        self._handshake.refuse(explanation)
        self._finish()

    def accept_open(self, now: float) -> None:
        """The virtual host is there: the connection is open; errors as ``answer_start``."""
        self._deadline = None
        self._handshake.say(Sender.SERVER, Step.OPEN_OK, spec.ConnectionOpenOk())
        self._read_on(now)

    def close(
        self, now: float, code: int = 200, text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        """Write connection.close, or end the handshake in silence where there is no close yet (2.2.4).

        Raises:
            LocalProtocolError: the text is no short string, or a number does not fit.
        """
        if self._life.permits(Step.SEND_CLOSE):
            self._write(
                spec.ConnectionClose(reply_code=code, reply_text=text, class_id=class_id, method_id=method_id)
            )
            self._life.step(Step.SEND_CLOSE)
            self._deadline = now + self.limits.close_timeout
            self._lose_channels()
        elif self.state is not ConnectionState.CLOSE_SENT:
            self._finish()

    def block(self, reason: str) -> bool:
        """A server stops publishes for now: report it to a client that understands; whether it does.

        Raises:
            LocalProtocolError: not a server's open connection.
        """
        return self._report(spec.ConnectionBlocked(reason=reason))

    def unblock(self) -> bool:
        """A server takes publishes again; as ``block``."""
        return self._report(spec.ConnectionUnblocked())

    def update_secret(self, secret: bytes, reason: str = "") -> None:
        """A client's new secret, where its login was a token (RabbitMQ's connection.update-secret).

        Raises:
            LocalProtocolError: not a client's open connection.
        """
        self._require_open(Sender.CLIENT)
        self._write(spec.ConnectionUpdateSecret(new_secret=secret, reason=reason))
        self._secrets += 1

    def accept_secret(self) -> None:
        """A server takes the new secret.

        Raises:
            LocalProtocolError: no secret waits for an answer.
        """
        self._require_open(Sender.SERVER)
        if not self._secrets:
            raise LocalProtocolError("no secret waits for an answer")
        self._write(spec.ConnectionUpdateSecretOk())
        self._secrets -= 1

    def _require_open(self, role: Sender) -> None:
        if self.role is not role or not self.is_open:
            raise LocalProtocolError(f"only a {role.value} does this, on an open connection")

    def _report(self, method: Method) -> bool:
        self._require_open(Sender.SERVER)
        understands = self.capabilities.get("connection.blocked") is True
        if understands:
            self._write(method)
        return understands

    def _read_on(self, now: float) -> None:
        """Read what the peer sent while a decision was due."""
        if self._buffer:
            self.receive_data(b"", now)

    def _write(self, method: Method) -> None:
        payload = method.plan.write(method, self.letters)
        if len(payload) > self.largest_payload:
            raise LocalProtocolError(f"{len(payload)} octets, where a frame takes {self.largest_payload}")
        self.enqueue(frame(METHOD, 0, payload))

    # -- frames -----------------------------------------------------------------------------

    def _take_slice(self, now: float) -> None:
        """Take frames until the octets end, a decision is due, or the slice is full."""
        buffer, pos, frames, more = self._buffer, 0, 0, True
        try:
            while self.state is not ConnectionState.CLOSED and not self._handshake.waits_for_decision():
                if frames >= _SLICE_FRAMES or pos >= _SLICE_OCTETS:
                    break
                after = self._take_content(pos)
                if after:
                    pos = after
                    frames += 3
                    continue
                end = self._end_of_next(pos)
                if not end:
                    more = False
                    break
                start, pos = pos, end
                frames += 1
                if start == 0 and self._handshake.starts_with_header(buffer):
                    self._handshake.take_header(bytes(buffer[:end]), self.enqueue)
                else:
                    kind, channel, _ = self._head(start)
                    self._take(kind, channel, bytes(buffer[start + HEAD_SIZE : end - 1]), now)
        finally:
            del buffer[:pos]
            if self._deaf or self.state is ConnectionState.CLOSED:
                buffer.clear()
            self._more = more and bool(buffer)

    def _take_content(self, pos: int) -> int:
        """Take a method with its header and body if all are here; where they end, or 0 if the frames are to be taken singly."""
        found = extent(self._buffer, pos, self._largest_in) if self.is_open else None
        channel = None if found is None else self._channels.get(found.channel)
        if found is None or channel is None:
            return 0
        buffer = self._buffer
        taken = channel.receive_content(
            bytes(buffer[found.method : found.method_end]),
            bytes(buffer[found.properties : found.properties_end]),
            bytes(buffer[found.body : found.body_end]),
        )
        return found.end if taken else 0

    def _end_of_next(self, pos: int) -> int:
        """Where the next frame or protocol header ends; 0 if it is not whole yet. Bad frames are refused here."""
        buffer = self._buffer
        if pos == 0 and self._handshake.starts_with_header(buffer):
            return len(PROTOCOL_HEADER) if len(buffer) >= len(PROTOCOL_HEADER) else 0
        if len(buffer) - pos < HEAD_SIZE:
            return 0
        end = pos + OVERHEAD + self._head(pos)[2]
        if len(buffer) < end:
            return 0
        if buffer[end - 1] != FRAME_END:
            self._deaf = True
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a frame that ends with {buffer[end - 1]:#04x}")
        return end

    def _head(self, pos: int) -> tuple[int, int, int]:
        try:
            return read_head(self._buffer, pos, self._largest_in)
        except ReplyError:
            self._deaf = True
            raise

    def _take(self, kind: int, channel: int, payload: bytes, now: float) -> None:
        if kind == HEARTBEAT:
            return
        if self.state is ConnectionState.CLOSE_SENT:
            self._take_closing(kind, channel, payload)
        elif channel:
            self._take_channel(kind, channel, payload)
        elif kind == METHOD:
            self._take_own(payload, now)
        else:
            raise ReplyError(ReplyCode091.UNEXPECTED_FRAME, "a content on channel 0")

    def _take_closing(self, kind: int, channel: int, payload: bytes) -> None:
        """After our close, all is dropped but the peer's close and its answer to ours (2.3.7)."""
        if channel or kind != METHOD:
            return
        if payload[:4] == _CLOSE.prefix:
            self._life.receive(Step.RECV_CLOSE)
            self._write(spec.ConnectionCloseOk())
        elif payload[:4] == _CLOSE_OK.prefix:
            self._life.receive(Step.RECV_CLOSE_OK)

    def _take_channel(self, kind: int, number: int, payload: bytes) -> None:
        channel = self._channels.get(number)
        if not self.is_open:
            raise ReplyError(
                ReplyCode091.COMMAND_INVALID, f"a frame on channel {number} before the connection is open"
            )
        if kind == METHOD and payload[:2] == _CLOSE.prefix[:2]:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, f"a method of the connection on channel {number}")
        if channel is not None:
            channel.receive(kind, payload)
            return
        if kind != METHOD:
            raise ReplyError(
                ReplyCode091.UNEXPECTED_FRAME, f"a content on channel {number}, which is not open"
            )
        plan = self.methods.plan_in(payload)
        opens = self._server and plan is spec.ChannelOpen.plan and number <= self.channel_max
        if not opens:
            raise ReplyError(
                ReplyCode091.CHANNEL_ERROR, f"{plan.name} on channel {number}, which is not open"
            ).about(plan.class_id, plan.method_id)
        channel = Channel(self, number)
        channel.receive_open(payload)
        self._channels[number] = channel

    def _take_own(self, payload: bytes, now: float) -> None:
        plan = self.methods.plan_in(payload)
        try:
            if plan.class_id != _CLOSE.class_id:
                raise ReplyError(ReplyCode091.CHANNEL_ERROR, f"{plan.name} on channel 0")
            if plan.sender is self.role:
                raise ReplyError(
                    ReplyCode091.COMMAND_INVALID, f"{plan.name} from a peer that is no {plan.sender.value}"
                )
            method = plan.read(payload, self.letters)
            if type(method) in Handshake.REACTIONS:
                self._handshake.receive(method, now)
                if self.is_open:
                    self._deadline = None
                return
            step, react = self._REACTIONS[type(method)]
            if step is not None:
                self._life.receive(step)
            elif not self.is_open:
                raise ReplyError(ReplyCode091.COMMAND_INVALID, f"{plan.name} before the connection is open")
            react(self, method)
        except ReplyError as fault:
            raise fault.about(plan.class_id, plan.method_id) from None

    def _agree(self, channel_max: int, frame_max: int, heartbeat: int, now: float) -> None:
        """Both ends have named their limits."""
        self.channel_max = channel_max
        self.frame_max = frame_max
        self._largest_in = _largest_in(frame_max, self._server)
        self.heartbeat = heartbeat
        self._heartbeats.begin(heartbeat, now)

    # -- the connection class, behind the handshake -----------------------------------------

    def _on_close(self, method: spec.ConnectionClose) -> None:
        self._write(spec.ConnectionCloseOk())
        self.emit(ConnectionClosed(method))
        self._lose_channels()

    def _on_blocked(self, method: spec.ConnectionBlocked) -> None:
        self.emit(Blocked(method.reason))

    def _on_unblocked(self, _method: spec.ConnectionUnblocked) -> None:
        self.emit(Unblocked())

    def _on_update_secret(self, method: spec.ConnectionUpdateSecret) -> None:
        self._secrets += 1
        self.emit(SecretUpdated(method.new_secret, method.reason))

    def _on_update_secret_ok(self, _method: spec.ConnectionUpdateSecretOk) -> None:
        if not self._secrets:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "connection.update-secret-ok answers no request")
        self._secrets -= 1
        self.emit(SecretAccepted())

    def _on_close_ok(self, _method: spec.ConnectionCloseOk) -> None:
        """Never called: ``_take_closing`` takes it after our close, and no other state permits it."""

    _REACTIONS: ClassVar[dict[type[Method], tuple[Step | None, Callable[[Engine, Any], None]]]] = {
        spec.ConnectionClose: (Step.RECV_CLOSE, _on_close),
        spec.ConnectionCloseOk: (Step.RECV_CLOSE_OK, _on_close_ok),
        spec.ConnectionBlocked: (None, _on_blocked),
        spec.ConnectionUnblocked: (None, _on_unblocked),
        spec.ConnectionUpdateSecret: (None, _on_update_secret),
        spec.ConnectionUpdateSecretOk: (None, _on_update_secret_ok),
    }
    """The step that each method behind the handshake is, and what follows; None where it changes no state."""

    # -- the end ----------------------------------------------------------------------------

    def _fail(self, fault: ReplyError, now: float) -> None:
        """Say why, if the peer is to know; after a bad frame nothing more is read (4.2.3)."""
        speaks = self.is_open or (
            fault.code is ReplyCode091.NOT_ALLOWED and self._life.permits(Step.SEND_CLOSE)
        )
        if speaks:
            self.close(now, fault.code, fault.reply_text, fault.class_id, fault.method_id)
        if self._deaf or not speaks:
            self._finish()

    def _lose(self, reason: str) -> None:
        if self.state is not ConnectionState.CLOSED:
            self.emit(ConnectionLost(reason))
            self._finish()

    def _finish(self) -> None:
        """Nothing more is read; what is queued is still written."""
        self._life.step(Step.LOST)
        self._buffer.clear()
        self._more = False
        self._lose_channels()

    def _lose_channels(self) -> None:
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            channel.lose()


def _largest_in(frame_max: int, server: bool) -> int:
    """Octets of the largest payload that is taken."""
    return frame_max - OVERHEAD + (_TOLERANCE if server else 0)
