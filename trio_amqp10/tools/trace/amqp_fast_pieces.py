"""Commands of AMQP/Fast as pieces of a conversation.

Each piece includes the fragment of a message that follows its command (RFC 006, 3.1.1).
"""

from __future__ import annotations

from dataclasses import fields as fields_of_class
from typing import Any, Final, cast

from trio_amqp10.amqp_fast.spec import COMMANDS, ConnectionChallenge, ConnectionPing, ConnectionResponse
from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.amqp_fast.wire.frames import FRAME_END, INITIATION, VERSION, read_size
from trio_amqp10.core.errors import RemoteProtocolError

from .pieces import LARGEST, OtherProtocolPiece, Piece

__all__ = ["INITIATION", "PieceFast", "begins_fast", "fields_of_fast", "piece_fast_at"]

_CHALLENGE: Final = ConnectionChallenge.plan.id
_SECRETS: Final = {ConnectionChallenge: "challenges", ConnectionResponse: "responses"}


class PieceFast(OtherProtocolPiece):
    """A command of AMQP/Fast; ``payload`` is the fragment after it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the command, or ``initiation``."""
        return "initiation" if self.performative is None else self.performative.plan.name

    @property
    def is_empty(self) -> bool:
        """Whether this is a ping, which only keeps the connection alive."""
        return isinstance(self.performative, ConnectionPing)

    def fields(self) -> dict[str, str]:
        return fields_of_fast(self.performative)

    def describe(self) -> str:
        """Describe the command, or the version of the initiation, without secrets."""
        if self.performative is None:
            return f"initiation AMQP/Fast version {self.octets[1]}"
        return super().describe()

    def redacted(self) -> bytes:
        """Return the octets; the fields of log-in commands are replaced by ``*``."""
        if type(self.performative) in _SECRETS:
            start = 3 if self.octets[:2] != b"\xff\xff" else 7
            return self.octets[:start] + b"*" * (len(self.octets) - start - 1) + self.octets[-1:]
        return self.octets


def fields_of_fast(content: Any) -> dict[str, str]:
    """Return the fields without their default value, as text without secrets."""
    secret = _SECRETS.get(content.__class__)
    declared = cast("Any", type(content))
    blank = declared()
    shown = {each.name: getattr(content, each.name) for each in fields_of_class(declared)}
    return {
        name: f"<{len(value)} fields>" if name == secret else repr(value)
        for name, value in shown.items()
        if value != getattr(blank, name)
    }


def begins_fast(head: bytes) -> bool | None:
    """Whether a stream is AMQP/Fast, by its first octets; None if more are needed.

    A client begins with the protocol id 128, a server with a challenge of at most 4 KiB; no frame of another protocol does.
    """
    if head[0] == INITIATION[0]:
        return True
    if head[0] > 0x0F or (head[0] == 0 and len(head) > 1 and head[1] == 0):
        return False
    return None if len(head) < 4 else (head[2], head[3]) == (_CHALLENGE, VERSION)


def piece_fast_at(buffer: bytes, pos: int) -> tuple[Piece | None, int]:
    """Return the piece at ``pos`` and its end; None while octets are missing.

    A piece is the initiation, or a command with its fragment.

    Raises:
        RemoteProtocolError: the end of the command or of its fragment cannot be found.
    """
    if not pos and buffer[0] == INITIATION[0]:
        end = len(INITIATION)
        return (PieceFast(buffer[:end]), end) if len(buffer) >= end else (None, 0)
    try:
        found = read_size(buffer, pos, LARGEST)
        if found is None or len(buffer) < sum(found):
            return None, pos
        start, size = found
        end = start + size
        if buffer[end - 1] != FRAME_END:
            raise RemoteProtocolError("the frame does not end with its end octet")
        content = COMMANDS.read(buffer[start : end - 1])
    except ReplyError as fault:
        raise RemoteProtocolError(str(fault)) from None
    octets = getattr(content, "fragment_size", 0)
    if octets > LARGEST:
        raise RemoteProtocolError(f"a fragment of {octets} octets is larger than the limit of {LARGEST}")
    behind = end + octets
    if len(buffer) < behind:
        return None, pos
    return PieceFast(buffer[pos:behind], 0, 0, content, buffer[end:behind]), behind
