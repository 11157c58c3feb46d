"""The engine of one 0-9-1 connection, for both roles: frames, heartbeats, close.

Sections 2.2.4, 4.2 and 4.8. A pump uses ``receive_slice`` and ``has_input`` (or ``receive_data`` for both),
``receive_eof``, ``transport_lost``, ``next_event``, ``data_to_send``, ``next_deadline``, ``handle_timer``,
``take_touched``, ``wants_data`` and ``awaits_eof``.

0-9-1 has no credit for publishes, so only the transport can slow a peer down: while ``wants_data`` is False the
pump reads nothing, and neither the peer's silence nor the time for its answers counts. This also stops a peer that requests answers and does
not read them (``output_queue``).

``handshake`` has all methods until the connection is open; while it waits for a decision of the application, no
octet is read. On an open connection an error of the peer closes its channel or the connection, by the scope of
the reply code. Before that the transport ends without a close (2.2.4), except for limits and virtual hosts that are refused with 530, and
logins that are refused with 403 to clients that support that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import ANY_SIZE, FRAME_END, FRAME_MIN, METHOD, PROTOCOL_HEADER
from trio_amqp10.core.channel_engine import ChannelEngine
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.output_queue import OutputQueue
from trio_amqp10.core.protocol_headers import describe_greeting
from trio_amqp10.core.reply_codes import ReplyCode091, reply_text

from .channel import Channel
from .contents_shortcut import extent
from .events import (
    Blocked,
    ClusterReceived,
    ConnectionClosed,
    ConnectionLost,
    SecretAccepted,
    SecretUpdated,
    Unblocked,
)
from .handshake import Handshake
from .limits import Limits
from .profile import V091
from .states import ConnectionState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091 import spec
    from trio_amqp10.amqp091.wire.fields import Letters
    from trio_amqp10.amqp091.wire.methods import Method, MethodTable, Plan

    from .events import Event
    from .profile import Profile

_BLOCKED: Final = "blocked"
"""The reason to stop the timers of answers while the peer does not read."""
_SECRET: Final = "secret"
"""The key of the answer to connection.update-secret."""
_SLICE_FRAMES: Final = 64
_SLICE_OCTETS: Final = 64 * 1024
_PART: Final = 16 * 1024
"""Octets that are copied at once to take contents from, or one larger content."""

_FRAME_MAX_BEFORE_TUNE: Final = 8192
"""The largest frame before limits are agreed.

The specification requires 4096, but clients send larger frames with start-ok.
"""

_TOLERANCE: Final = 8
"""Octets over frame-max that a server accepts: some clients count only payloads."""

_HEADER_SIZE: Final = len(PROTOCOL_HEADER)
"""Octets of the protocol header of every version."""


class Engine(ChannelEngine["Limits", "ConnectionState", "Channel", "Event"]):
    """One connection.

    Args:
        role: which end this is.
        now: seconds of the caller's clock; the time for the handshake begins here.
        limits: the limits to propose and to enforce.
        profile: the version of the protocol.
        start: a server's connection.start: its properties, mechanisms and locales.
        virtual_host: the virtual host that a client opens.
        opening: other arguments of a client's connection.open, in versions that have some.
        methods: the known methods, for extensions. None for those of the version.
        letters: the types of field tables. None for those of the version.

    Attributes:
        profile: as given.
        user: a server's name for the client that logged in; compared with ``user-id``.
        channel_max: the agreed highest channel number.
        frame_max: the agreed largest frame in octets.
        heartbeat: the agreed interval in seconds; 0 for none.
        output: octets that wait to be written.
    """

    __slots__ = (
        "_answered_close",
        "_handshake",
        "_ignores_input",
        "_largest_in",
        "_secrets",
        "_server",
        "channel_max",
        "frame_max",
        "heartbeat",
        "letters",
        "methods",
        "output",
        "profile",
        "user",
    )

    def __init__(
        self,
        role: EndpointRole,
        now: float,
        limits: Limits | None = None,
        *,
        profile: Profile = V091,
        start: Method | None = None,
        virtual_host: str = "/",
        opening: Mapping[str, Any] | None = None,
        methods: MethodTable | None = None,
        letters: Letters | None = None,
    ) -> None:
        limits = limits or Limits()
        lifecycle = Lifecycle(profile.connection, ConnectionState.AWAIT_HEADER, ConnectionState.CLOSED)
        timeout = limits.answer_timeout if role is EndpointRole.CLIENT else None
        super().__init__(role, now, limits, lifecycle, timeout)
        self._server = role is EndpointRole.SERVER
        self.profile: Profile = profile
        self.letters: Letters = letters or profile.letters
        self.methods: MethodTable = methods or profile.methods
        self.user: str | None = None
        self.channel_max: int = self.limits.channel_max
        self.frame_max: int = FRAME_MIN
        self.heartbeat: int = 0
        self.output: OutputQueue = OutputQueue(limits.write_buffer, self._note_output)
        self._handshake = Handshake(
            role,
            lifecycle,
            limits,
            profile,
            start or self.methods.make("connection.start"),
            None if role is EndpointRole.SERVER else {"virtual_host": virtual_host, **(opening or {})},
            write=self._write,
            emit=self.emit,
            agreed=self._agree,
        )
        self._largest_in = self._largest(_FRAME_MAX_BEFORE_TUNE)
        self._ignores_input = False  # set by a malformed frame, because its end is unknown (4.2.3)
        self._answered_close = False
        self._secrets = 0  # at a client, updates that the peer has not answered; at a server, received ones
        if not self._server:
            self._lifecycle.step(Step.HEADER)
            self.enqueue(profile.header)

    @property
    def is_open(self) -> bool:
        """Whether channels may be used."""
        return self.state is ConnectionState.OPEN

    @property
    def queued(self) -> int:
        """Octets that wait to be written."""
        return self.output.size

    @property
    def has_room(self) -> bool:
        """Whether fewer octets than ``Limits.write_buffer`` wait to be written.

        Channels are woken when there is room again.
        """
        return self.output.has_room

    @property
    def has_room_for_answers(self) -> bool:
        """Whether more methods of the peer that need answers can be processed.

        Otherwise its methods wait, and nothing is read. Channels are woken when there is room again.
        """
        return self.output.has_room_for_answers

    @property
    def _reads(self) -> bool:
        return self.state is not ConnectionState.CLOSED and not self._handshake.waits_for_decision()

    @property
    def largest_payload(self) -> int:
        """The largest payload in octets that the peer accepts."""
        return self.frame_max - self.profile.frames.overhead

    @property
    def largest_header(self) -> int:
        """The largest content header in octets that is sent.

        A header cannot be split into frames. So a server sends a header of any size, as RabbitMQ does:
        otherwise a message whose headers grew on the way, or came by another protocol, could not be delivered.
        A client reads a header of as many octets as a body may have.
        """
        return ANY_SIZE if self._server else self.largest_payload

    @property
    def peer_properties(self) -> Mapping[str, Any]:
        """The peer's properties; empty before they came."""
        return self._handshake.peer_properties

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the peer announces; empty if it announces none."""
        return self._handshake.capabilities

    # -- called by a pump -------------------------------------------------------------------

    def receive_slice(self, data: bytes, now: float) -> None:
        """Receive octets, but process only a slice of them; see ``has_input``.

        A slice is 64 frames, or 64 methods with a whole content, or 64 KiB.

        Raises:
            ReplyError: as ``receive_data``.
        """
        self.now = now
        if data:
            self._buffer += data
            self._heartbeats.note_input(now)
        try:
            self._take_slice(now)
        except ReplyError as fault:
            self._fail(fault, now)
            raise

    def awaits_eof(self) -> bool:
        """Whether the peer must end the transport, because we sent connection.close-ok."""
        return self._answered_close

    def data_to_send(self) -> bytes | None:
        """Return octets for the transport; None when there will be none any more."""
        output = self.output
        if not output:
            return None if self.state is ConnectionState.CLOSED else b""
        if not output.has_room:
            self._touched.update(dict.fromkeys(self._channels.values()))
        return output.take()

    def has_output(self) -> bool:
        """Whether ``data_to_send`` may return more than ``b""``."""
        return bool(self.output) or self.state is ConnectionState.CLOSED

    def handle_timer(self, now: float) -> None:
        """Write a heartbeat if it is time, or end the connection (``ConnectionLost``)."""
        if self.state is ConnectionState.CLOSED:
            return
        # The handshake, or our close, took too long.
        if self._deadline is not None and now >= self._deadline:
            due = "its close-ok" if self.state is ConnectionState.CLOSE_SENT else self.state.name.lower()
            self._lose(f"the peer took too long: {due}")
        elif self._heartbeats.silent(now, self.wants_data()):
            self._lose(f"the peer was silent for {2 * self.heartbeat} s, two heartbeats")
        # A server did not answer a request: announce the reason, but do not wait for close-ok.
        elif overdue := self.answers.take_overdue(now):
            reason = self.answers.describe(overdue[0][1], self.limits.answer_timeout)
            code = ReplyCode091.CONNECTION_FORCED
            self.close(now, code, reply_text(code, reason))
            self._lose(reason)
        # Any octet counts as a heartbeat, so one is written only if nothing else was (4.2.7).
        elif self._heartbeats.due(now):
            if not self.output.wrote:
                self.enqueue(self.profile.frames.heartbeat)
            self.output.wrote = False

    # -- called by a channel ----------------------------------------------------------------

    def enqueue(self, octets: bytes) -> None:
        """Queue octets that are not paced: requests, answers, closes, heartbeats."""
        self.output.add(octets)

    def drop_largest(self, limit: str) -> bool:
        """Close the connection with 506, because all connections store too much.

        See ``PoolMember``.
        """
        if not (self.partial and self._lifecycle.permits(Step.SEND_CLOSE)):
            return False
        self._fail(self._too_much(limit), self.now)
        return True

    def forget(self, channel: Channel) -> None:
        """Free the channel's number."""
        del self._channels[channel.number]

    # -- send -------------------------------------------------------------------------------

    def open_channel(self, number: int | None = None, **arguments: Any) -> Channel:
        """Open a client's channel, on the lowest free number by default.

        ``arguments`` are those of channel.open.

        Raises:
            LocalProtocolError: this is not a client's open connection, or the number is in use or above
                channel-max.
        """
        if self._server or not self.is_open:
            raise LocalProtocolError("only a client can open channels, on an open connection")
        if number is None:
            number = next((n for n in range(1, self.channel_max + 1) if n not in self._channels), 0)
        if not 1 <= number <= self.channel_max or number in self._channels:
            raise LocalProtocolError(f"no free channel number up to {self.channel_max}: {number}")
        channel = self._channels[number] = Channel(self, number)
        channel.open(**arguments)
        return channel

    def answer_start(self, answer: Method, now: float) -> None:
        """Send a client's choice of a mechanism, and its first response.

        Raises:
            LocalProtocolError: no connection.start waits for an answer.
            ReplyError: as ``receive_data``, because waiting octets are read now.
        """
        self._handshake.send(EndpointRole.CLIENT, Step.START_OK, answer)
        self._read_on(now)

    def answer_challenge(self, response: bytes, now: float) -> None:
        """Send a client's response to a challenge; errors as ``answer_start``."""
        answer = self.methods.make("connection.secure-ok", response=response)
        self._handshake.send(EndpointRole.CLIENT, Step.SECURE_OK, answer)
        self._read_on(now)

    def challenge(self, token: bytes, now: float) -> None:
        """Send a server's challenge; errors as ``answer_start``."""
        secure = self.methods.make("connection.secure", challenge=token)
        self._handshake.send(EndpointRole.SERVER, Step.SECURE, secure)
        self._read_on(now)

    def accept_login(self, user: str | None, now: float) -> None:
        """Accept a client as ``user``, and propose limits; errors as ``answer_start``."""
        self._handshake.tune()
        self._read_on(now)
        self.user = user

    def refuse_login(self, explanation: str) -> None:
        """Refuse a login and end the connection.

        A client that supports it gets a close with 403.

        Raises:
            LocalProtocolError: no login waits for an answer.
        """
        self._handshake.refuse(explanation)
        self._finish()

    def accept_open(self, now: float, **arguments: Any) -> None:
        """Open the connection with the requested virtual host; errors as ``answer_start``.

        ``arguments`` are those of open-ok.
        """
        self._deadline = None
        answer = self.methods.make("connection.open-ok", **arguments)
        self._handshake.send(EndpointRole.SERVER, Step.OPEN_OK, answer)
        self._read_on(now)

    def redirect(self, host: str, known_hosts: str = "") -> None:
        """Redirect the client to another server; nothing more is read (10.3).

        Raises:
            LocalProtocolError: no connection.open waits for an answer, or the version has no redirects.
        """
        answer = self.methods.make("connection.redirect", host=host, known_hosts=known_hosts)
        self._handshake.send(EndpointRole.SERVER, Step.REDIRECT, answer)
        self._answered_close = True
        self._finish()

    def close(
        self, now: float, code: int = 200, text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        """Send connection.close, or end a handshake that cannot have one yet (2.2.4).

        Raises:
            LocalProtocolError: the text is not a valid short string, or a number is out of range.
        """
        if self._lifecycle.permits(Step.SEND_CLOSE):
            close = {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}
            self._write(self.methods.make("connection.close", **close))
            self._lifecycle.step(Step.SEND_CLOSE)
            self._deadline = now + self.limits.close_timeout
            self._lose_channels()
        elif self.state is not ConnectionState.CLOSE_SENT:
            self._finish()

    def block(self, reason: str) -> bool:
        """Announce that a server accepts no publishes for now (connection.blocked).

        Returns:
            Whether the client supports that; otherwise nothing is sent.

        Raises:
            LocalProtocolError: this is not a server's open connection.
        """
        return self._report("connection.blocked", reason=reason)

    def unblock(self) -> bool:
        """Announce that a server accepts publishes again; as ``block``."""
        return self._report("connection.unblocked")

    def update_secret(self, secret: bytes, reason: str = "") -> None:
        """Send a client's new secret (RabbitMQ's connection.update-secret).

        Raises:
            LocalProtocolError: this is not a client's open connection, or the version has no such method.
        """
        self._require_open(EndpointRole.CLIENT)
        self._write(self.methods.make("connection.update-secret", new_secret=secret, reason=reason))
        self.answers.expect(_SECRET, "connection.update-secret")
        self._secrets += 1

    def accept_secret(self) -> None:
        """Accept the oldest new secret, as a server.

        Raises:
            LocalProtocolError: no secret waits for an answer.
        """
        self._require_open(EndpointRole.SERVER)
        if not self._secrets:
            raise LocalProtocolError("no secret waits for an answer")
        self._write(self.methods.make("connection.update-secret-ok"))
        self._secrets -= 1

    def _require_open(self, role: EndpointRole) -> None:
        if self.role is not role or not self.is_open:
            raise LocalProtocolError(f"only a {role.value} can do this, on an open connection")

    def send_cluster(self, method: Method) -> None:
        """Send a method of the class cluster, which uses channel 0 (10.3).

        Raises:
            LocalProtocolError: the connection is not open, or the method is not one of this class.
        """
        plan = method.plan
        if not self.is_open or plan.name.startswith("connection.") or not self._is_own(plan):
            raise LocalProtocolError(f"{plan.name} cannot be sent on channel 0, or not in this state")
        self._write(method)

    def _is_own(self, plan: Plan) -> bool:
        """Whether it is a method of the connection, on channel 0."""
        return plan.class_id in self.profile.channel_0

    def _report(self, name: str, **arguments: Any) -> bool:
        self._require_open(EndpointRole.SERVER)
        understands = self.capabilities.get("connection.blocked") is True
        if understands:
            self._write(self.methods.make(name, **arguments))
        return understands

    def _write(self, method: Method) -> None:
        payload = method.plan.write(method, self.letters)
        if len(payload) > self.largest_payload:
            raise LocalProtocolError(
                f"{len(payload)} octets exceed the largest frame payload of {self.largest_payload}"
            )
        self.enqueue(self.profile.frames.frame(METHOD, 0, payload))

    # -- frames -----------------------------------------------------------------------------

    def _take_slice(self, now: float) -> None:
        """Process frames until the input ends, a decision is pending or 64 are done."""
        buffer, pos, frames, more = self._buffer, 0, 0, True
        try:
            while (state := self.state) is not ConnectionState.CLOSED:
                if self._handshake.waits_for_decision():
                    break
                if frames >= _SLICE_FRAMES or pos >= _SLICE_OCTETS:
                    break
                # First take all contents whose frames are complete in the buffer, because that is much faster.
                if state is ConnectionState.OPEN and self.profile.has_shortcuts:
                    pos, frames = self._take_contents(pos, frames)
                    if frames >= _SLICE_FRAMES or pos >= _SLICE_OCTETS:
                        break
                end = self._end_of_next(pos) if pos < len(buffer) else 0
                if not end:
                    more = False
                    break
                start, pos = pos, end
                frames += 1
                # A protocol header can only be the first octets of a connection (4.2.2); then come frames.
                if start == 0 and self._handshake.starts_with_header(buffer):
                    self._handshake.take_header(bytes(buffer[:end]), self.enqueue)
                else:
                    kind, channel, _ = self._head(start)
                    self._take(
                        kind, channel, bytes(buffer[start + self.profile.frames.head_size : end - 1]), now
                    )
        finally:
            del buffer[:pos]
            if self._ignores_input or self.state is ConnectionState.CLOSED:
                buffer.clear()
            self._more = more and bool(buffer)

    def _take_contents(self, pos: int, frames: int) -> tuple[int, int]:
        """Process methods whose header and body are all in the buffer.

        The caller must process the rest frame by frame.

        Returns:
            The position after the last content, and the number of frames, each content counted as one.
        """
        buffer, channels, largest = self._buffer, self._channels, self._largest_in
        part, base, at = b"", pos, 0
        most = min(len(buffer), _SLICE_OCTETS)
        while frames < _SLICE_FRAMES and pos < most:
            found = extent(part, at, largest) if at < len(part) else None
            if found is None:
                whole = extent(buffer, pos, largest)
                if whole is None:
                    break
                # One copy of many contents costs less than one of each of their parts.
                with memoryview(buffer) as view:
                    part, base = bytes(view[pos : max(whole[-1], pos + _PART)]), pos
                found = extent(part, 0, largest)
                assert found is not None
            number, method, method_end, properties, properties_end, body, body_end, at = found
            channel = channels.get(number)
            if channel is None or not channel.receive_content(
                part[method:method_end], part[properties:properties_end], part[body:body_end]
            ):
                break
            pos = base + at
            frames += 1
        return pos, frames

    def _end_of_next(self, pos: int) -> int:
        """Return the end of the next frame or protocol header; 0 if it is incomplete.

        Raises:
            ReplyError: 501, the frame is malformed.
        """
        buffer = self._buffer
        if pos == 0 and self._handshake.starts_with_header(buffer):
            return _HEADER_SIZE if len(buffer) >= _HEADER_SIZE else 0
        if len(buffer) - pos < self.profile.frames.head_size:
            return 0
        end = pos + self.profile.frames.overhead + self._head(pos)[2]
        if len(buffer) < end:
            return 0
        if buffer[end - 1] != FRAME_END:
            self._ignores_input = True
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a frame that ends with {buffer[end - 1]:#04x}")
        return end

    def _head(self, pos: int) -> tuple[int, int, int]:
        try:
            return self.profile.frames.read_head(
                self._buffer, pos, self._largest_in, 0 if self._server else self.limits.max_message_size
            )
        except ReplyError as fault:
            self._ignores_input = True
            if self.state is ConnectionState.AWAIT_START:
                begin = bytes(self._buffer[pos : pos + self.profile.frames.head_size])
                expected = f"expected connection.start, got {describe_greeting(begin)}"
                fault = ReplyError(fault.code, f"{expected} ({fault.description})")
            raise fault from None

    def _take(self, kind: int, channel: int, payload: bytes, now: float) -> None:
        if kind in self.profile.frames.dropped:
            return
        if self.state is ConnectionState.CLOSE_SENT:
            self._take_closing(kind, channel, payload)
        elif channel:
            self._take_channel(kind, channel, payload)
        elif kind == METHOD:
            self._take_own(payload, now)
        else:
            raise ReplyError(self.profile.codes.on_channel_0, "a content on channel 0")

    def _take_closing(self, kind: int, channel: int, payload: bytes) -> None:
        """Receive a frame after our close: only close and close-ok count (2.3.7)."""
        if channel or kind != METHOD:
            return
        plans = self.methods.by_name
        if payload[:4] == plans["connection.close"].prefix:
            self._lifecycle.receive(Step.RECV_CLOSE)
            self._write(self.methods.make("connection.close-ok"))
        elif payload[:4] == plans["connection.close-ok"].prefix:
            self._lifecycle.receive(Step.RECV_CLOSE_OK)

    def _take_channel(self, kind: int, number: int, payload: bytes) -> None:
        channel = self._channels.get(number)
        if not self.is_open:
            raise ReplyError(
                ReplyCode091.COMMAND_INVALID, f"a frame on channel {number} before the connection is open"
            )
        if kind == METHOD and int.from_bytes(payload[:2]) in self.profile.channel_0:
            fault = ReplyError(
                ReplyCode091.COMMAND_INVALID, f"a method of the connection on channel {number}"
            )
            raise fault.about(int.from_bytes(payload[:2]), int.from_bytes(payload[2:4]))
        if channel is not None:
            channel.receive(kind, payload)
            return
        if kind != METHOD:
            raise ReplyError(
                self.profile.codes.on_closed_channel, f"a content on channel {number}, which is not open"
            )
        plan = self.methods.plan_in(payload)
        opens = self._server and plan.name == "channel.open" and number <= self.channel_max
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
            if not self._is_own(plan):
                raise ReplyError(ReplyCode091.CHANNEL_ERROR, f"{plan.name} on channel 0")
            if plan.sender is self.role:
                raise ReplyError(
                    ReplyCode091.COMMAND_INVALID, f"only a {plan.sender.value} can send {plan.name}"
                )
            method = plan.read(payload, self.letters)
            if plan.name in Handshake.REACTIONS:
                self._handshake.receive(method, now)
                if self.is_open:
                    self._deadline = None
                return
            step, react = self._REACTIONS[plan.name]
            if step is not None:
                self._lifecycle.receive(step)
            elif not self.is_open:
                raise ReplyError(ReplyCode091.COMMAND_INVALID, f"{plan.name} before the connection is open")
            react(self, method)
        except ReplyError as fault:
            raise fault.about(plan.class_id, plan.method_id) from None

    def _agree(self, channel_max: int, frame_max: int, heartbeat: int, now: float) -> None:
        """Apply the agreed limits."""
        self.channel_max = channel_max
        self.frame_max = frame_max
        self._largest_in = self._largest(frame_max)
        self.heartbeat = heartbeat
        self._heartbeats.begin(heartbeat / 2, 2 * heartbeat, now)

    def _largest(self, frame_max: int) -> int:
        """Return the largest payload in octets that is accepted."""
        return frame_max - self.profile.frames.overhead + (_TOLERANCE if self._server else 0)

    # -- the connection class, after the handshake ------------------------------------------

    def _on_close(self, method: spec.ConnectionClose) -> None:
        code = self.profile.close_codes.get(method.reply_code, method.reply_code)
        self._write(self.methods.make("connection.close-ok"))
        self._answered_close = True
        self._lose_channels()
        self.emit(ConnectionClosed(replace(method, reply_code=code)))

    def _on_blocked(self, method: spec.ConnectionBlocked) -> None:
        self.answers.hold(_BLOCKED)
        self.emit(Blocked(method.reason))

    def _on_unblocked(self, _method: spec.ConnectionUnblocked) -> None:
        self.answers.go_on(_BLOCKED)
        self.emit(Unblocked())

    def _on_update_secret(self, method: spec.ConnectionUpdateSecret) -> None:
        self._secrets += 1
        self.emit(SecretUpdated(method.new_secret, method.reason))

    def _on_update_secret_ok(self, _method: spec.ConnectionUpdateSecretOk) -> None:
        if not self._secrets:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "connection.update-secret-ok answers no request")
        self._secrets -= 1
        self.answers.answered(_SECRET)
        if self._secrets:
            self.answers.expect(_SECRET, "connection.update-secret")
        self.emit(SecretAccepted())

    def _on_close_ok(self, _method: spec.ConnectionCloseOk) -> None:
        """Never called: ``_take_closing`` handles it, and no other state permits it."""

    def _on_cluster(self, method: Method) -> None:
        self.emit(ClusterReceived(method))

    _REACTIONS: ClassVar[dict[str, tuple[Step | None, Callable[[Engine, Any], None]]]] = {
        "connection.close": (Step.RECV_CLOSE, _on_close),
        "connection.close-ok": (Step.RECV_CLOSE_OK, _on_close_ok),
        "connection.blocked": (None, _on_blocked),
        "connection.unblocked": (None, _on_unblocked),
        "connection.update-secret": (None, _on_update_secret),
        "connection.update-secret-ok": (None, _on_update_secret_ok),
        "cluster.hello": (None, _on_cluster),
        "cluster.status": (None, _on_cluster),
        "cluster.bind": (None, _on_cluster),
    }
    """The step and the handler of each method after the handshake.

    The step is None if the method changes no state.
    """

    # -- the end ----------------------------------------------------------------------------

    def _fail(self, fault: ReplyError, now: float) -> None:
        """Close the connection for an error of the peer, with its reason if permitted.

        After a malformed frame nothing more is read (4.2.3).
        """
        sends_reason = self.is_open or (
            fault.code is ReplyCode091.NOT_ALLOWED and self._lifecycle.permits(Step.SEND_CLOSE)
        )
        if sends_reason:
            self.close(now, fault.code, fault.reply_text, fault.class_id, fault.method_id)
        elif not self._server:
            self.output.clear()  # the rest of a failed handshake is useless to the server
        if self._ignores_input or not sends_reason:
            self._finish()

    def _lose_channels(self) -> None:
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            channel.lose()

    def _drop_output(self) -> None:
        self.output.clear()

    def _lost(self, reason: str) -> Event:
        return ConnectionLost(reason)

    def _too_much(self, limit: str) -> ReplyError:
        return ReplyError(ReplyCode091.RESOURCE_ERROR, f"incomplete contents take more than {limit}")
