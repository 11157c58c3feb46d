"""The handshake of 0-9-1 for both roles: header, login, limits, virtual host.

Sections 2.2.4 and 4.2.2. Server and client take turns: start, start-ok, any number of secure and secure-ok,
tune, tune-ok, open, open-ok. When the application must decide about a login or a virtual host, an event asks
for it, and the engine reads nothing until the answer. The handshake uses no frames and channels: it receives
methods, and writes them by the function that it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import FRAME_MIN
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.protocol_headers import describe_greeting
from trio_amqp10.core.reply_codes import ReplyCode091, reply_text

from .events import (
    ChallengeAnswered,
    Challenged,
    ConnectionOpened,
    OpenRequested,
    Redirected,
    StartAnswered,
    Started,
)
from .states import ConnectionState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091 import spec
    from trio_amqp10.amqp091.wire.methods import Method

    from .events import Event
    from .limits import Limits
    from .profile import Profile

_FIRST: Final = b"A"
"""The first octet of all protocol headers; no frame begins with it."""

_DECISIONS: Final = {
    EndpointRole.SERVER: (ConnectionState.AWAIT_TUNE, ConnectionState.AWAIT_OPEN_OK),
    EndpointRole.CLIENT: (ConnectionState.AWAIT_START_OK, ConnectionState.AWAIT_SECURE_OK),
}
"""The states in which the application must decide."""


class Handshake:
    """All methods on channel 0 until the connection is open.

    Args:
        role: which end this is.
        life: the state of the connection.
        limits: the limits to propose and to enforce.
        profile: the version of the protocol.
        start: a server's connection.start.
        opening: the arguments of a client's connection.open; None for a server.
        write: writes one method.
        emit: reports an event.
        agreed: called with channel-max, frame-max, seconds of the heartbeat, and now, once the limits are
            agreed.

    Attributes:
        peer_properties: the peer's properties; empty before they came.
    """

    __slots__ = (
        "_agreed",
        "_emit",
        "_lifecycle",
        "_limits",
        "_opening",
        "_profile",
        "_role",
        "_start",
        "_write",
        "peer_properties",
    )

    def __init__(
        self,
        role: EndpointRole,
        life: Lifecycle[ConnectionState],
        limits: Limits,
        profile: Profile,
        start: Method,
        opening: Mapping[str, Any] | None,
        *,
        write: Callable[[Method], None],
        emit: Callable[[Event], None],
        agreed: Callable[[int, int, int, float], None],
    ) -> None:
        self._role = role
        self._lifecycle = life
        self._limits = limits
        self._profile = profile
        self._start: Method | None = start
        self._opening = opening
        self._write = write
        self._emit = emit
        self._agreed = agreed
        self.peer_properties: Mapping[str, Any] = {}

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the peer announces; empty if it announces none."""
        announced = self.peer_properties.get("capabilities")
        return cast("dict[str, Any]", announced) if isinstance(announced, dict) else {}

    def waits_for_decision(self) -> bool:
        """Whether the application must decide."""
        return self._lifecycle.state in _DECISIONS[self._role]

    # -- protocol headers -------------------------------------------------------------------

    def starts_with_header(self, octets: bytes | bytearray) -> bool:
        """Whether the next octets are a protocol header (4.2.2).

        A client always sends one; a server only to refuse the client's.
        """
        if self._role is EndpointRole.SERVER:
            return self._lifecycle.state is ConnectionState.AWAIT_HEADER
        return self._lifecycle.state is ConnectionState.AWAIT_START and octets.startswith(_FIRST)

    def take_header(self, header: bytes, answer: Callable[[bytes], None]) -> None:
        """Receive the peer's protocol header; refuse that of a client with ``answer``.

        Raises:
            ReplyError: the header is that of another version.
        """
        if self._role is EndpointRole.CLIENT:
            same = header in self._profile.headers
            offers = "the client's own protocol header" if same else f"the header {describe_greeting(header)}"
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED, f"the server refused the protocol header, and offers {offers}"
            )
        if header not in self._profile.headers:
            answer(self._profile.header)
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED,
                f"the client began with the protocol header {describe_greeting(header)}",
            )
        self._lifecycle.receive(Step.HEADER)
        assert self._start is not None
        self._write(self._start)
        self._start = None
        self._lifecycle.step(Step.START)

    # -- send -------------------------------------------------------------------------------

    def send(self, role: EndpointRole, step: Step, method: Method) -> None:
        """Write one method of the handshake.

        Raises:
            LocalProtocolError: the method belongs to the other role or to another state.
        """
        if self._role is not role:
            raise LocalProtocolError(f"only a {role.value} can send {method.plan.name}")
        if not self._lifecycle.permits(step):
            raise LocalProtocolError(
                f"{method.plan.name} cannot be sent in state {self._lifecycle.state.name}"
            )
        self._write(method)
        self._lifecycle.step(step)

    def tune(self) -> None:
        """Propose a server's limits, after the login; errors as ``send``."""
        limits = self._limits
        tune = self._make(
            "connection.tune",
            channel_max=limits.channel_max,
            frame_max=limits.frame_max,
            heartbeat=limits.heartbeat,
        )
        self.send(EndpointRole.SERVER, Step.TUNE, tune)

    def _make(self, name: str, **arguments: Any) -> Any:
        return self._profile.methods.make(name, **arguments)

    def refuse(self, explanation: str) -> None:
        """Refuse a login, with a close of 403 if the client supports that.

        Raises:
            LocalProtocolError: no login waits for an answer.
        """
        if not (self._role is EndpointRole.SERVER and self._lifecycle.state is ConnectionState.AWAIT_TUNE):
            raise LocalProtocolError("no login waits for an answer")
        if self.capabilities.get("authentication_failure_close") is True:
            code = ReplyCode091.ACCESS_REFUSED
            text = reply_text(code, explanation)
            self._write(self._make("connection.close", reply_code=code, reply_text=text))

    # -- receive ----------------------------------------------------------------------------

    def receive(self, method: Method, now: float) -> None:
        """Receive one method of the handshake, which must be in ``REACTIONS``.

        Raises:
            ReplyError: the method does not fit the state, or has a value that is not permitted.
        """
        step, react = self.REACTIONS[method.plan.name]
        self._lifecycle.receive(step)
        react(self, method, now)

    def _on_start(self, method: spec.ConnectionStart, _now: float) -> None:
        if (method.version_major, method.version_minor) != self._profile.version:
            version = f"{method.version_major}-{method.version_minor}"
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"the server uses version {version}")
        self.peer_properties = method.server_properties
        self._emit(Started(method))

    def _on_start_ok(self, method: spec.ConnectionStartOk, _now: float) -> None:
        self.peer_properties = method.client_properties
        self._emit(StartAnswered(method))

    def _on_secure(self, method: spec.ConnectionSecure, _now: float) -> None:
        self._emit(Challenged(method.challenge))

    def _on_secure_ok(self, method: spec.ConnectionSecureOk, _now: float) -> None:
        self._emit(ChallengeAnswered(method.response))

    def _on_tune(self, method: spec.ConnectionTune, now: float) -> None:
        """Answer with the lower limits of both ends, 0 being none; open the virtual host."""
        limits = self._limits
        channel_max = _lower(method.channel_max, limits.channel_max)
        frame_max = _lower(method.frame_max, limits.frame_max)
        if frame_max < FRAME_MIN:
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED, f"frame-max {frame_max} is less than the minimum of {FRAME_MIN}"
            )
        heartbeat = _lower(method.heartbeat, limits.heartbeat) if limits.heartbeat else 0
        answer = {"channel_max": channel_max, "frame_max": frame_max, "heartbeat": heartbeat}
        self._write(self._make("connection.tune-ok", **answer))
        self._lifecycle.step(Step.TUNE_OK)
        self._agreed(channel_max, frame_max, heartbeat, now)
        self._write(self._make("connection.open", **(self._opening or {})))
        self._lifecycle.step(Step.OPEN)

    def _on_tune_ok(self, method: spec.ConnectionTuneOk, now: float) -> None:
        limits = self._limits
        if not 1 <= method.channel_max <= limits.channel_max:
            raise ReplyError(
                ReplyCode091.NOT_ALLOWED,
                f"negotiated channel_max = {method.channel_max} is not in 1 to {limits.channel_max}",
            )
        if not FRAME_MIN <= method.frame_max <= limits.frame_max:
            raise ReplyError(
                ReplyCode091.NOT_ALLOWED,
                f"negotiated frame_max = {method.frame_max} is not in {FRAME_MIN} to {limits.frame_max}",
            )
        self._agreed(method.channel_max, method.frame_max, method.heartbeat, now)

    def _on_open(self, method: Any, _now: float) -> None:
        self._emit(OpenRequested(method.virtual_host, getattr(method, "insist", False)))

    def _on_open_ok(self, method: Method, _now: float) -> None:
        self._emit(ConnectionOpened(getattr(method, "known_hosts", "")))

    def _on_redirect(self, method: Any, _now: float) -> None:
        self._emit(Redirected(method.host, method.known_hosts))

    REACTIONS: ClassVar[dict[str, tuple[Step, Callable[[Handshake, Any, float], None]]]] = {
        "connection.start": (Step.START, _on_start),
        "connection.start-ok": (Step.START_OK, _on_start_ok),
        "connection.secure": (Step.SECURE, _on_secure),
        "connection.secure-ok": (Step.SECURE_OK, _on_secure_ok),
        "connection.tune": (Step.TUNE, _on_tune),
        "connection.tune-ok": (Step.TUNE_OK, _on_tune_ok),
        "connection.open": (Step.OPEN, _on_open),
        "connection.open-ok": (Step.OPEN_OK, _on_open_ok),
        "connection.redirect": (Step.REDIRECT, _on_redirect),
    }
    """The step and the handler of each method of the handshake."""


def _lower(theirs: int, ours: int) -> int:
    """Return the lower of two limits; the peer's 0 means no limit."""
    return min(theirs, ours) if theirs else ours
