"""The engine of one connection of 0-9-1, for both roles: frames, heartbeats, close (0-9-1, 2.2.4, 4.2, 4.8).

It offers a pump its calls: ``receive_slice`` and ``has_input`` (or ``receive_data`` for both), ``receive_eof``,
``transport_lost``, ``next_event``, ``data_to_send``, ``next_deadline``, ``handle_timer``, ``take_touched``, ``wants_data`` and
``awaits_eof``.
0-9-1 has no credit for publishes, so the transport is the only brake: while ``wants_data`` is False the pump reads nothing,
and the peer's silence does not count. The same brake holds a peer that makes us write and does not read (``output_queue``).

What is said until the connection is open is in ``handshake``; no octet is read while that waits for a decision.
An error of the peer's ends the connection with its reply code, once the connection is open; before that the transport
closes in silence (2.2.4), except for limits and virtual hosts that are refused with 530, and logins that are refused with
403 to clients that understand it.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.awaited_answers import AwaitedAnswers
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.output_queue import OutputQueue
from trio_amqp10.reply_codes import ReplyCode091, reply_text

from .channel import Channel
from .events import (
    Blocked,
    ClusterReceived,
    ConnectionClosed,
    ConnectionLost,
    SecretAccepted,
    SecretUpdated,
    Unblocked,
)
from .fast import extent
from .faults import ReplyError
from .frames import ANY_SIZE, FRAME_END, FRAME_MIN, METHOD, PROTOCOL_HEADER
from .handshake import Handshake
from .heartbeats import Heartbeats
from .limits import Limits
from .profile import V091
from .states import ConnectionState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.partial_pool import Pool

    from . import spec
    from .events import Event
    from .fields import Letters
    from .methods import Method, MethodTable, Plan
    from .profile import Profile

__all__ = ["Engine"]

_READING: Final = "reading"
_BLOCKED: Final = "blocked"
"""Why no time passes for the peer's answers: they are not read, or the peer reads nothing."""
_SECRET: Final = "secret"
"""The answer to connection.update-secret."""
_SLICE_FRAMES: Final = 64
_SLICE_OCTETS: Final = 64 * 1024
_PART: Final = 16 * 1024
"""Octets that are copied at once to take contents from, unless one alone is larger."""

_FRAME_MAX_BEFORE_TUNE: Final = 8192
"""What is taken before limits are agreed; the specification asks for 4096, and clients send more in their start-ok."""

_TOLERANCE: Final = 8
"""Octets that a server takes above frame-max: some clients count payloads alone."""

_HEADER_SIZE: Final = len(PROTOCOL_HEADER)
"""Octets of the protocol header of every version."""


class Engine:
    """One connection.

    Args:
        role: which end this is.
        now: seconds of the caller's clock; the time for the handshake counts from here.
        limits: what is proposed and borne.
        profile: the version of the protocol.
        start: what a server says first: its properties, mechanisms and locales.
        virtual_host: what a client opens.
        opening: other arguments of a client's connection.open, in versions that have any.
        methods: the methods that are known; for extensions. None for those of the version.
        letters: the types that field tables have; None for those of the version.

    Attributes:
        role: which end this is.
        limits, profile: as given.
        user: what a server calls the client once it logged in; compared with ``user-id``.
        channel_max: the highest channel number that was agreed.
        frame_max: octets of a frame that were agreed.
        heartbeat: seconds that were agreed; 0 for none.
        partial: octets of contents that are not complete.
        pool: counts them with those of other connections; None for none. See ``Pool.join``.
        output: octets that wait to be written.
        now: the last time that the engine was told.
        held: octets of arrivals that nobody took yet.
        braked: the application's switch: nothing is read while it is set. Call ``Pump.wake_writer`` when it is cleared.
        crowded: the application's question, for reasons that come and go elsewhere, as a full store: asked before each read of an
            open connection, and nothing is read if it returns True; None for never. Call ``Pump.wake_writer`` when the answer changes.
    """

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
        self.role = role
        self.limits: Limits = limits or Limits()
        self.profile = profile
        self.letters: Letters = letters or profile.letters
        self.methods: MethodTable = methods or profile.methods
        self.user: str | None = None
        self.channel_max: int = self.limits.channel_max
        self.frame_max: int = FRAME_MIN
        self.heartbeat: int = 0
        self.partial: int = 0
        self.pool: Pool | None = None
        self.output: OutputQueue = OutputQueue(self.limits.write_buffer)
        self.now: float = now
        self.held = 0
        self.braked = False
        self.crowded: Callable[[], bool] | None = None
        self._lifecycle = Lifecycle(profile.connection, ConnectionState.AWAIT_HEADER, ConnectionState.CLOSED)
        self._handshake = Handshake(
            role,
            self._lifecycle,
            self.limits,
            profile,
            start or self.methods.make("connection.start"),
            None if role is EndpointRole.SERVER else {"virtual_host": virtual_host, **(opening or {})},
            write=self._write,
            emit=self.emit,
            agreed=self._agree,
        )
        self._buffer = bytearray()
        self._more = False
        self._events: list[Event] = []  # few, and taken after each slice
        self._touched: dict[Channel, None] = {}
        self._channels: dict[int, Channel] = {}
        self._largest_in = self._largest(_FRAME_MAX_BEFORE_TUNE)
        self._deaf = False  # after a bad frame, whose end nobody knows
        self._heartbeats = Heartbeats()
        self.answers: AwaitedAnswers = AwaitedAnswers(
            self.limits.answer_timeout if role is EndpointRole.CLIENT else None
        )
        self._answered_close = False
        self._secrets = 0  # that the peer has not answered; or that we have not
        wait = self.limits.handshake_timeout
        self._deadline: float | None = None if wait is None else now + wait
        if not self._server:
            self._lifecycle.step(Step.HEADER)
            self.enqueue(profile.header)

    @property
    def _server(
        self,
    ) -> bool:  # no attribute: an object of up to 29 shares the table of their names with all others
        return self.role is EndpointRole.SERVER

    @property
    def state(self) -> ConnectionState:
        """What is due next; OPEN, CLOSE_SENT or CLOSED."""
        return self._lifecycle.state

    @property
    def is_open(self) -> bool:
        """Whether channels may be used."""
        return self.state is ConnectionState.OPEN

    @property
    def queued(self) -> int:
        """Octets that wait to be written."""
        return self.output.size

    @property
    def on_output(self) -> Callable[[], object] | None:
        """As of ``net.engine_interface.Engine``."""
        return self.output.on_output

    @on_output.setter
    def on_output(self, call: Callable[[], object] | None) -> None:
        self.output.on_output = call

    @property
    def has_room(self) -> bool:
        """Whether less than ``Limits.write_buffer`` waits to be written; channels are woken when there is room again."""
        return self.output.has_room

    @property
    def has_room_for_answers(self) -> bool:
        """Whether the peer may make us write more: otherwise its methods wait, and it is not read. Channels are woken as above."""
        return self.output.has_room_for_answers

    @property
    def partial_octets(self) -> int:
        """As of ``PoolMember``."""
        return self.partial

    @property
    def largest_payload(self) -> int:
        """Octets of a payload that the peer takes."""
        return self.frame_max - self.profile.frames.overhead

    @property
    def largest_header(self) -> int:
        """Octets of the largest content header that is sent.

        A header cannot be split into frames. So a server sends one of any size, as RabbitMQ does: otherwise a message whose
        headers grew on the way, or came by another protocol, could not be delivered. A client reads a header of as many
        octets as a body may have.
        """
        return ANY_SIZE if self._server else self.largest_payload

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
        """As ``receive_data``, but takes 64 frames, or methods with a whole content, or 64 KiB: see ``has_input``.

        Raises:
            ReplyError: as ``receive_data``.
        """
        self.now = now
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
        """Whether the transport is to be read: not during a decision, while ``braked`` or ``crowded``, or with a full buffer of either direction."""
        wants = self.state is ConnectionState.CLOSED or not (
            self.braked
            or self._handshake.waits_for_decision()
            or self.held > self.limits.buffer
            or not self.output.has_room_for_answers
            or (self.is_open and self.crowded is not None and self.crowded())
        )
        if wants:
            self.answers.go_on(_READING)
        else:
            self._heartbeats.suspend()
            self.answers.hold(_READING)
        return wants

    def awaits_eof(self) -> bool:
        """Whether we have answered the peer's close: then it is the peer who closes the transport (connection.close-ok)."""
        return self._answered_close

    def receive_eof(self, now: float) -> None:
        """The peer will send no more octets."""
        _ = now
        self._lose("the peer ended the transport without a close")

    def transport_lost(self) -> None:
        """The transport failed."""
        self.output.clear()
        self.output.on_output = None  # nobody writes any more
        self._lose("the transport was lost")

    def next_event(self) -> Event | None:
        """What the peer did, oldest first; None when all is reported."""
        return self._events.pop(0) if self._events else None

    def data_to_send(self) -> bytes | None:
        """Octets for the transport; None when there will be none again."""
        output = self.output
        if not output:
            return None if self.state is ConnectionState.CLOSED else b""
        if not output.has_room:
            self._touched.update(dict.fromkeys(self._channels.values()))
        return output.take()

    def has_output(self) -> bool:
        """Whether ``data_to_send`` may have more than ``b""`` to give."""
        return bool(self.output) or self.state is ConnectionState.CLOSED

    def next_deadline(self) -> float | None:
        """When ``handle_timer`` has something to do; None for never."""
        if self.state is ConnectionState.CLOSED:
            return None
        deadlines = (self._deadline, self._heartbeats.deadline(), self.answers.deadline())
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
        elif overdue := self.answers.take_overdue(now):
            reason = self.answers.describe(overdue[0][1], self.limits.answer_timeout)
            code = ReplyCode091.CONNECTION_FORCED
            self.close(now, code, reply_text(code, reason))
            self._lose(reason)
        elif self._heartbeats.due(now):
            if not self.output.wrote:
                self.enqueue(self.profile.frames.heartbeat)
            self.output.wrote = False

    def take_touched(self) -> list[Channel]:
        """The channels to wake now."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    # -- what a channel calls ---------------------------------------------------------------

    def enqueue(self, octets: bytes) -> None:
        """Octets to send, after all others, because the peer asked for them."""
        self.output.add(octets)

    def count_partial(self, octets: int) -> None:
        """So much more of contents that are not complete is held, or less, if it is negative.

        Raises:
            ReplyError: 506, this connection holds too much; or all together do, and this one most.
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
        """As of ``PoolMember``: the connection is closed with 506, as it is for a content of its own that is too much."""
        if not (self.partial and self._lifecycle.permits(Step.SEND_CLOSE)):
            return False
        self._fail(_too_much(limit), self.now)
        return True

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

    def open_channel(self, number: int | None = None, **arguments: Any) -> Channel:
        """A client's new channel, on the lowest free number unless one is given; ``arguments`` are those of channel.open.

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
        channel.open(**arguments)
        return channel

    def answer_start(self, answer: Method, now: float) -> None:
        """A client's choice of a mechanism, and its first response.

        Raises:
            LocalProtocolError: no start waits for an answer.
            ReplyError: as ``receive_data``: octets that waited are read now.
        """
        self._handshake.say(EndpointRole.CLIENT, Step.START_OK, answer)
        self._read_on(now)

    def answer_challenge(self, response: bytes, now: float) -> None:
        """A client's response to a challenge; errors as ``answer_start``."""
        answer = self.methods.make("connection.secure-ok", response=response)
        self._handshake.say(EndpointRole.CLIENT, Step.SECURE_OK, answer)
        self._read_on(now)

    def challenge(self, token: bytes, now: float) -> None:
        """A server's challenge; errors as ``answer_start``."""
        secure = self.methods.make("connection.secure", challenge=token)
        self._handshake.say(EndpointRole.SERVER, Step.SECURE, secure)
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

    def open_by(self, deadline: float) -> None:
        """Give the peer no more time than that to open the connection; infinite for as much as ``Limits`` gives."""
        if deadline != inf:
            self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def accept_open(self, now: float, **arguments: Any) -> None:
        """The virtual host is there: the connection is open; ``arguments`` are those of open-ok. Errors as ``answer_start``."""
        self._deadline = None
        answer = self.methods.make("connection.open-ok", **arguments)
        self._handshake.say(EndpointRole.SERVER, Step.OPEN_OK, answer)
        self._read_on(now)

    def redirect(self, host: str, known_hosts: str = "") -> None:
        """Send the client to another server; nothing more is read (10.3).

        Raises:
            LocalProtocolError: no wish for a virtual host waits for an answer, or the version redirects nobody.
        """
        answer = self.methods.make("connection.redirect", host=host, known_hosts=known_hosts)
        self._handshake.say(EndpointRole.SERVER, Step.REDIRECT, answer)
        self._answered_close = True
        self._finish()

    def close(
        self, now: float, code: int = 200, text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        """Write connection.close, or end the handshake in silence where there is no close yet (2.2.4).

        Raises:
            LocalProtocolError: the text is no short string, or a number does not fit.
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
        """A server stops publishes for now: report it to a client that understands; whether it does.

        Raises:
            LocalProtocolError: not a server's open connection.
        """
        return self._report("connection.blocked", reason=reason)

    def unblock(self) -> bool:
        """A server takes publishes again; as ``block``."""
        return self._report("connection.unblocked")

    def update_secret(self, secret: bytes, reason: str = "") -> None:
        """A client's new secret, where its login was a token (RabbitMQ's connection.update-secret).

        Raises:
            LocalProtocolError: not a client's open connection, or the version has no such method.
        """
        self._require_open(EndpointRole.CLIENT)
        self._write(self.methods.make("connection.update-secret", new_secret=secret, reason=reason))
        self.answers.expect(_SECRET, "connection.update-secret")
        self._secrets += 1

    def accept_secret(self) -> None:
        """A server takes the new secret.

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
            raise LocalProtocolError(f"only a {role.value} does this, on an open connection")

    def send_cluster(self, method: Method) -> None:
        """Write a method of the class cluster, which is said on channel 0 (10.3).

        Raises:
            LocalProtocolError: the connection is not open, or this is no method of such a class.
        """
        plan = method.plan
        if not self.is_open or plan.name.startswith("connection.") or not self._is_own(plan):
            raise LocalProtocolError(f"{plan.name} is not said on channel 0, or not now")
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

    def _read_on(self, now: float) -> None:
        """Read what the peer sent while a decision was due."""
        if self._buffer:
            self.receive_data(b"", now)

    def _write(self, method: Method) -> None:
        payload = method.plan.write(method, self.letters)
        if len(payload) > self.largest_payload:
            raise LocalProtocolError(f"{len(payload)} octets, where a frame takes {self.largest_payload}")
        self.enqueue(self.profile.frames.frame(METHOD, 0, payload))

    # -- frames -----------------------------------------------------------------------------

    def _take_slice(self, now: float) -> None:
        """Take frames until the octets end, a decision is due, or the slice is full."""
        buffer, pos, frames, more = self._buffer, 0, 0, True
        try:
            while self.state is not ConnectionState.CLOSED and not self._handshake.waits_for_decision():
                if frames >= _SLICE_FRAMES or pos >= _SLICE_OCTETS:
                    break
                if self.is_open and self.profile.fast:
                    pos, frames = self._take_contents(pos, frames)
                    if frames >= _SLICE_FRAMES or pos >= _SLICE_OCTETS:
                        break
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
                    self._take(
                        kind, channel, bytes(buffer[start + self.profile.frames.head_size : end - 1]), now
                    )
        finally:
            del buffer[:pos]
            if self._deaf or self.state is ConnectionState.CLOSED:
                buffer.clear()
            self._more = more and bool(buffer)

    def _take_contents(self, pos: int, frames: int) -> tuple[int, int]:
        """Take methods with their headers and bodies while all of each are here; where they end, and how many were taken.

        What is left is to be taken frame by frame.
        """
        buffer, channels, largest = self._buffer, self._channels, self._largest_in
        part, base, at = b"", pos, 0
        while frames < _SLICE_FRAMES and pos < _SLICE_OCTETS:
            found = extent(part, at, largest)
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
        """Where the next frame or protocol header ends; 0 if it is not whole yet. Bad frames are refused here."""
        buffer = self._buffer
        if pos == 0 and self._handshake.starts_with_header(buffer):
            return _HEADER_SIZE if len(buffer) >= _HEADER_SIZE else 0
        if len(buffer) - pos < self.profile.frames.head_size:
            return 0
        end = pos + self.profile.frames.overhead + self._head(pos)[2]
        if len(buffer) < end:
            return 0
        if buffer[end - 1] != FRAME_END:
            self._deaf = True
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"a frame that ends with {buffer[end - 1]:#04x}")
        return end

    def _head(self, pos: int) -> tuple[int, int, int]:
        try:
            return self.profile.frames.read_head(
                self._buffer, pos, self._largest_in, 0 if self._server else self.limits.max_message_size
            )
        except ReplyError:
            self._deaf = True
            raise

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
        """After our close, all is dropped but the peer's close and its answer to ours (2.3.7)."""
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
            raise ReplyError(ReplyCode091.COMMAND_INVALID, f"a method of the connection on channel {number}")
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
                    ReplyCode091.COMMAND_INVALID, f"{plan.name} from a peer that is no {plan.sender.value}"
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
        """Both ends have named their limits."""
        self.channel_max = channel_max
        self.frame_max = frame_max
        self._largest_in = self._largest(frame_max)
        self.heartbeat = heartbeat
        self._heartbeats.begin(heartbeat, now)

    def _largest(self, frame_max: int) -> int:
        """Octets of the largest payload that is taken."""
        return frame_max - self.profile.frames.overhead + (_TOLERANCE if self._server else 0)

    # -- the connection class, behind the handshake -----------------------------------------

    def _on_close(self, method: spec.ConnectionClose) -> None:
        code = self.profile.heard_codes.get(method.reply_code, method.reply_code)
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
        """Never called: ``_take_closing`` takes it after our close, and no other state permits it."""

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
    """The step that each method behind the handshake is, and what follows; None where it changes no state."""

    # -- the end ----------------------------------------------------------------------------

    def _fail(self, fault: ReplyError, now: float) -> None:
        """Say why, if the peer is to know; after a bad frame nothing more is read (4.2.3)."""
        speaks = self.is_open or (
            fault.code is ReplyCode091.NOT_ALLOWED and self._lifecycle.permits(Step.SEND_CLOSE)
        )
        if speaks:
            self.close(now, fault.code, fault.reply_text, fault.class_id, fault.method_id)
        if self._deaf or not speaks:
            self._finish()

    def _lose(self, reason: str) -> None:
        if self.state is not ConnectionState.CLOSED:
            self._finish()
            self.emit(ConnectionLost(reason))

    def _finish(self) -> None:
        """Nothing more is read; what is queued is still written."""
        self._lifecycle.step(Step.LOST)
        self._buffer.clear()
        self._more = False
        self._lose_channels()
        self.output.notify()

    def _lose_channels(self) -> None:
        channels = list(self._channels.values())
        self._channels.clear()
        for channel in channels:
            channel.lose()


def _too_much(limit: str) -> ReplyError:
    return ReplyError(ReplyCode091.RESOURCE_ERROR, f"contents that are not complete take more than {limit}")
