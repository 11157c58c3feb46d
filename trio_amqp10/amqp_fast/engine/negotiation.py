"""The negotiation of a connection, for both roles (RFC 006, 3.2.2 to 3.2.6).

Challenges and responses alternate as often as the mechanism needs. Then follow the server's tune, any number of tunes of the
client, and the client's open. If the application must decide (about a login or a virtual host), an event asks for it, and
nothing is read until then. This module does not know frames or channels: the engine passes commands to it, and it writes by a
function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.amqp_fast.wire.frames import FRAME_MIN, INITIATION, PROTOCOL_ID, VERSION
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .events import Challenged, ConnectionOpened, Initiated, OpenRequested, Responded
from .states import ConnectionState, Lifecycle, Step
from .tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp_fast.wire.commands import Command

    from .events import Event
    from .limits import Limits

_R = ReplyCodeRfc011
_DECISIONS: Final = {
    EndpointRole.SERVER: (
        ConnectionState.AWAIT_CHALLENGE,
        ConnectionState.AWAIT_TUNE,
        ConnectionState.OPENING,
    ),
    EndpointRole.CLIENT: (ConnectionState.AWAIT_RESPONSE,),
}
"""The states in which the application, or the engine for it, must act next."""


class Negotiation:
    """The exchange of commands until a connection is open.

    Args:
        role: the role of this end.
        life: the state of the connection.
        limits: the limits to propose and to enforce.
        opening: the open that a client sends.
        dictionary: a client's full names of headers by their short names.
        write: writes one command.
        emit: reports an event.

    Attributes:
        tuning: the values that both ends have agreed on.
        opened: the client's open, after it was sent or received.
    """

    __slots__ = ("_dictionary", "_emit", "_lifecycle", "_limits", "_role", "_write", "opened", "tuning")

    def __init__(
        self,
        role: EndpointRole,
        life: Lifecycle[ConnectionState],
        limits: Limits,
        opening: spec.ConnectionOpen,
        dictionary: Mapping[str, str],
        *,
        write: Callable[[Command], None],
        emit: Callable[[Event], None],
    ) -> None:
        self._role = role
        self._lifecycle = life
        self._limits = limits
        self._write = write
        self._emit = emit
        self._dictionary = dictionary
        self.opened: spec.ConnectionOpen = opening
        self.tuning: Final = Tuning(limits)

    def waits_for_decision(self) -> bool:
        """Whether nothing may be read until the application has decided."""
        return self._lifecycle.state in _DECISIONS[self._role]

    def take_initiation(self, octets: bytes) -> None:
        """Process the client's two initial octets (3.2.2).

        We answer with version 1, also to clients of a later version.

        Raises:
            ReplyError: the client speaks another protocol.
        """
        if octets[0] != PROTOCOL_ID or octets[1] < VERSION:
            raise ReplyError(
                _R.FRAMING_ERROR,
                f"unknown protocol: the initiation is {octets.hex()}, not {INITIATION.hex()}",
            )
        self._lifecycle.receive(Step.INITIATION)
        self._emit(Initiated())

    # -- for the application ----------------------------------------------------------------

    def send(self, role: EndpointRole, step: Step, command: Command) -> None:
        """Write one command of the negotiation.

        Raises:
            LocalProtocolError: the command belongs to the other role, or it is not its turn.
        """
        if self._role is not role:
            raise LocalProtocolError(f"only a {role.value} sends {command.plan.name}")
        if not self._lifecycle.permits(step):
            raise LocalProtocolError(
                f"{command.plan.name} is not allowed in state {self._lifecycle.state.name}"
            )
        self._write(command)
        self._lifecycle.step(step)

    def tune(self) -> None:
        """Propose the server's limits, after the login; raises as ``send``."""
        limits = self._limits
        options = {
            "FRAME_MAX": limits.frame_max,
            "CHANNEL_MAX": limits.channel_max,
            "HANDLE_MAX": limits.handle_max,
            "HEARTBEAT": limits.heartbeat,
            "TXN_LIMIT": limits.txn_limit,
        }
        self.send(EndpointRole.SERVER, Step.TUNE, spec.ConnectionTune(options=options))

    # -- commands of the peer ---------------------------------------------------------------

    def receive(self, command: Command) -> None:
        """Process one command of the negotiation.

        Raises:
            ReplyError: it is not the turn of this command, or a value is invalid.
        """
        step, react = self.REACTIONS[type(command)]
        self._lifecycle.receive(step)
        react(self, command)

    def _on_challenge(self, command: spec.ConnectionChallenge) -> None:
        if command.version != VERSION:
            raise ReplyError(_R.NOT_IMPLEMENTED, f"version: {command.version} is not supported")
        self._emit(Challenged(command))

    def _on_response(self, command: spec.ConnectionResponse) -> None:
        self._emit(Responded(command))

    def _on_tune(self, command: spec.ConnectionTune) -> None:
        if self._role is EndpointRole.SERVER:
            self._take_tune(command)
        else:
            self._answer_tune(command)

    def _take_tune(self, command: spec.ConnectionTune) -> None:
        """Apply a client's tune, which may only lower our limits (3.2.5.1)."""
        tuning, options = self.tuning, command.options
        frame_max = _option(options, "FRAME_MAX", tuning.frame_max)
        if not FRAME_MIN <= frame_max <= self._limits.frame_max:
            raise _bad_option("FRAME_MAX", frame_max, f"{FRAME_MIN} to {self._limits.frame_max}")
        tuning.frame_max = frame_max
        tuning.heartbeat = _option(options, "HEARTBEAT", tuning.heartbeat)
        for name, ours in (
            ("CHANNEL_MAX", self._limits.channel_max),
            ("HANDLE_MAX", self._limits.handle_max),
            ("TXN_LIMIT", self._limits.txn_limit),
        ):
            theirs = _option(options, name, ours)
            # The value 0 means no limit, so a client may not use it to raise one of our limits.
            if ours and not 1 <= theirs <= ours:
                raise _bad_option(name, theirs, f"1 to {ours}")
        for short, full in command.dictionary.items():
            if not isinstance(full, str):
                raise ReplyError(
                    _R.SYNTAX_ERROR, f"dictionary: the full name of {short} must be text, not {full!r}"
                )
            tuning.aliases[short] = full

    def _answer_tune(self, command: spec.ConnectionTune) -> None:
        """Answer the server's tune with the accepted limits, and send the open."""
        tuning, limits, options = self.tuning, self._limits, command.options
        theirs = _option(options, "FRAME_MAX", FRAME_MIN)
        if theirs < FRAME_MIN:
            raise _bad_option("FRAME_MAX", theirs, f"at least {FRAME_MIN}")
        tuning.frame_max = min(theirs, limits.frame_max)
        tuning.channel_max = _option(options, "CHANNEL_MAX", 0)
        tuning.handle_max = _option(options, "HANDLE_MAX", 0)
        tuning.txn_limit = _option(options, "TXN_LIMIT", 0)
        tuning.heartbeat = _option(options, "HEARTBEAT", 0)
        ours = {"FRAME_MAX": tuning.frame_max, "HEARTBEAT": limits.heartbeat}
        self._write(spec.ConnectionTune(options=ours, dictionary=dict(self._dictionary)))
        tuning.aliases.update(self._dictionary)
        self._write(self.opened)
        self._lifecycle.step(Step.OPEN)
        if not self.opened.confirm_tag:
            self._lifecycle.step(Step.ACCEPT)
            self._emit(ConnectionOpened())

    def _on_open(self, command: spec.ConnectionOpen) -> None:
        self.opened = command
        self._emit(OpenRequested(command))

    def _on_reply(self, command: spec.ConnectionReply) -> None:
        if command.confirm_tag != self.opened.confirm_tag:
            raise ReplyError(
                _R.COMMAND_NOT_VALID,
                f"connection reply with tag {command.confirm_tag}, but no command waits for it",
            )
        self._emit(ConnectionOpened())

    REACTIONS: ClassVar[dict[type[Command], tuple[Step, Callable[[Negotiation, Any], None]]]] = {
        spec.ConnectionChallenge: (Step.CHALLENGE, _on_challenge),
        spec.ConnectionResponse: (Step.RESPONSE, _on_response),
        spec.ConnectionTune: (Step.TUNE, _on_tune),
        spec.ConnectionOpen: (Step.OPEN, _on_open),
        spec.ConnectionReply: (Step.ACCEPT, _on_reply),
    }
    """The step and the reaction for each command of the negotiation."""


def _option(options: Mapping[str, Any], name: str, default: int) -> int:
    """Return the integer of a tuning option; unknown options have no effect."""
    value = options.get(name, default)
    if not isinstance(value, int) or value < 0:
        raise _bad_option(name, value, "an integer of at least 0")
    return value


def _bad_option(name: str, value: object, what: str) -> ReplyError:
    return ReplyError(_R.SYNTAX_ERROR, f"options: {name} must be {what}, not {value!r}")
