"""The handshake of 0-9-1, for both roles: protocol header, login, limits, virtual host (0-9-1, 2.2.4, 4.2.2).

Server and client take turns: start, start-ok, secure and secure-ok as often as a mechanism wants, tune, tune-ok, open,
open-ok. Where the application has to decide (a login, a virtual host), an event asks for it, and the engine reads nothing
until the answer. Knows no frame and no channel: it reads methods, and writes them by the function that it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091, reply_text

from .events import (
    ChallengeAnswered,
    Challenged,
    ConnectionOpened,
    OpenRequested,
    Redirected,
    StartAnswered,
    Started,
)
from .faults import ReplyError
from .frames import FRAME_MIN
from .states import ConnectionState, Lifecycle, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from . import spec
    from .events import Event
    from .limits import Limits
    from .methods import Method
    from .profile import Profile

__all__ = ["Handshake"]

_FIRST: Final = b"A"
"""The octet with which the protocol headers of all versions begin, and no frame."""

_DECISIONS: Final = {
    EndpointRole.SERVER: (ConnectionState.AWAIT_TUNE, ConnectionState.AWAIT_OPEN_OK),
    EndpointRole.CLIENT: (ConnectionState.AWAIT_START_OK, ConnectionState.AWAIT_SECURE_OK),
}
"""The states in which it is the application's turn."""


class Handshake:
    """What is said on channel 0 until the connection is open.

    Args:
        role: which end this is.
        life: the state of the connection.
        limits: what is proposed and borne.
        profile: the version of the protocol.
        start: the arguments of what a server says first.
        opening: the arguments with which a client opens a virtual host; None for a server.
        write: writes one method.
        emit: reports an event.
        agreed: called with channel-max, frame-max, seconds of the heartbeat, and now, once both ends have named them.

    Attributes:
        peer_properties: the other end's properties; empty until they came.
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
        """What the peer says that it understands; empty if it says nothing."""
        said = self.peer_properties.get("capabilities")
        return cast("dict[str, Any]", said) if isinstance(said, dict) else {}

    def waits_for_decision(self) -> bool:
        """Whether it is the application's turn."""
        return self._lifecycle.state in _DECISIONS[self._role]

    # -- protocol headers -------------------------------------------------------------------

    def starts_with_header(self, octets: bytes | bytearray) -> bool:
        """Whether a protocol header is due: a client's always comes, a server's says that it refuses (4.2.2)."""
        if self._role is EndpointRole.SERVER:
            return self._lifecycle.state is ConnectionState.AWAIT_HEADER
        return self._lifecycle.state is ConnectionState.AWAIT_START and octets.startswith(_FIRST)

    def take_header(self, header: bytes, answer: Callable[[bytes], None]) -> None:
        """The peer's protocol header; ``answer`` writes ours, where the peer's is of another version.

        Raises:
            ReplyError: of another version.
        """
        if self._role is EndpointRole.CLIENT:
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"the server speaks another version: {header!r}")
        if header not in self._profile.headers:
            answer(self._profile.header)
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"the client speaks another version: {header!r}")
        self._lifecycle.receive(Step.HEADER)
        assert self._start is not None
        self._write(self._start)
        self._start = None
        self._lifecycle.step(Step.START)

    # -- what the application says ----------------------------------------------------------

    def say(self, role: EndpointRole, step: Step, method: Method) -> None:
        """Write one method of the handshake.

        Raises:
            LocalProtocolError: it is the other role's, or not its turn.
        """
        if self._role is not role:
            raise LocalProtocolError(f"{method.plan.name} is a {role.value}'s")
        if not self._lifecycle.permits(step):
            raise LocalProtocolError(f"{method.plan.name} in state {self._lifecycle.state.name}")
        self._write(method)
        self._lifecycle.step(step)

    def tune(self) -> None:
        """A server proposes its limits, because it knows the client; errors as ``say``."""
        limits = self._limits
        tune = self._make(
            "connection.tune",
            channel_max=limits.channel_max,
            frame_max=limits.frame_max,
            heartbeat=limits.heartbeat,
        )
        self.say(EndpointRole.SERVER, Step.TUNE, tune)

    def _make(self, name: str, **arguments: Any) -> Any:
        return self._profile.methods.make(name, **arguments)

    def refuse(self, explanation: str) -> None:
        """A server refuses a login: a close with 403, if the client understands that.

        Raises:
            LocalProtocolError: no login waits for an answer.
        """
        if not (self._role is EndpointRole.SERVER and self._lifecycle.state is ConnectionState.AWAIT_TUNE):
            raise LocalProtocolError("no login waits for an answer")
        if self.capabilities.get("authentication_failure_close") is True:
            code = ReplyCode091.ACCESS_REFUSED
            text = reply_text(code, explanation)
            self._write(self._make("connection.close", reply_code=code, reply_text=text))

    # -- what the peer says -----------------------------------------------------------------

    def receive(self, method: Method, now: float) -> None:
        """One method of the handshake; ``REACTIONS`` has them.

        Raises:
            ReplyError: it is not due, or says what cannot be.
        """
        step, react = self.REACTIONS[method.plan.name]
        self._lifecycle.receive(step)
        react(self, method, now)

    def _on_start(self, method: spec.ConnectionStart, _now: float) -> None:
        if (method.version_major, method.version_minor) != self._profile.version:
            version = f"{method.version_major}-{method.version_minor}"
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"the server speaks version {version}")
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
        """Answer with the lower of both ends' limits, 0 being none, and open the virtual host."""
        limits = self._limits
        channel_max = _lower(method.channel_max, limits.channel_max)
        frame_max = _lower(method.frame_max, limits.frame_max)
        if frame_max < FRAME_MIN:
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED, f"frame-max {frame_max}, where {FRAME_MIN} is the least"
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
    """The step that each method of the handshake is, and what follows."""


def _lower(theirs: int, ours: int) -> int:
    """The lower of two limits; a 0 of theirs is none."""
    return min(theirs, ours) if theirs else ours
