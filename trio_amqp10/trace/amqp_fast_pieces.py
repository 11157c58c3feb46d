"""Commands of AMQP/Fast as pieces of a conversation, each with the fragment of a message that follows it (RFC 006, 3.1.1)."""

from __future__ import annotations

from dataclasses import fields as fields_of_class
from typing import Any, Final, cast

from trio_amqp10.amqp_fast.faults import ReplyError
from trio_amqp10.amqp_fast.frames import FRAME_END, INITIATION, VERSION, read_size
from trio_amqp10.amqp_fast.spec import COMMANDS, ConnectionChallenge, ConnectionPing, ConnectionResponse
from trio_amqp10.errors import RemoteProtocolError

from .pieces import LARGEST, OtherProtocolPiece, Piece

__all__ = ["INITIATION", "PieceFast", "begins_fast", "fields_of_fast", "piece_fast_at"]

_CHALLENGE: Final = ConnectionChallenge.plan.id
_SECRETS: Final = {ConnectionChallenge: "challenges", ConnectionResponse: "responses"}


class PieceFast(OtherProtocolPiece):
    """A command of AMQP/Fast; ``payload`` is the fragment behind it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The command, or ``initiation``."""
        return "initiation" if self.performative is None else self.performative.plan.name

    @property
    def is_empty(self) -> bool:
        """Whether this only keeps the connection from going idle."""
        return isinstance(self.performative, ConnectionPing)

    def fields(self) -> dict[str, str]:
        """As of ``OtherProtocolPiece``."""
        return fields_of_fast(self.performative)

    def describe(self) -> str:
        """As of ``OtherProtocolPiece``; of the initiation, its version."""
        if self.performative is None:
            return f"initiation AMQP/Fast version {self.octets[1]}"
        return super().describe()

    def redacted(self) -> bytes:
        """The octets; of a command of the login the fields are replaced by ``*``."""
        if type(self.performative) in _SECRETS:
            start = 3 if self.octets[:2] != b"\xff\xff" else 7
            return self.octets[:start] + b"*" * (len(self.octets) - start - 1) + self.octets[-1:]
        return self.octets


def fields_of_fast(said: Any) -> dict[str, str]:
    """The fields that say something, as text and without secrets; those with their default are left out."""
    secret = _SECRETS.get(said.__class__)
    declared = cast("Any", type(said))
    blank = declared()
    shown = {each.name: getattr(said, each.name) for each in fields_of_class(declared)}
    return {
        name: f"<{len(value)} fields>" if name == secret else repr(value)
        for name, value in shown.items()
        if value != getattr(blank, name)
    }


def begins_fast(head: bytes) -> bool | None:
    """Whether a stream is AMQP/Fast by how it begins; None: more octets are needed.

    A client begins with the protocol id 128; a server with a challenge of at most 4 KiB, as no frame of another protocol does.
    """
    if head[0] == INITIATION[0]:
        return True
    if head[0] > 0x0F or (head[0] == 0 and len(head) > 1 and head[1] == 0):
        return False
    return None if len(head) < 4 else (head[2], head[3]) == (_CHALLENGE, VERSION)


def piece_fast_at(buffer: bytes, pos: int) -> tuple[Piece | None, int]:
    """The initiation, or the command with its fragment, that begins at ``pos``, and where it ends; None while octets are missing.

    Raises:
        RemoteProtocolError: nobody can tell where the command or its fragment ends.
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
            raise RemoteProtocolError("a frame without its end octet")
        said = COMMANDS.read(buffer[start : end - 1])
    except ReplyError as fault:
        raise RemoteProtocolError(str(fault)) from None
    octets = getattr(said, "fragment_size", 0)
    if octets > LARGEST:
        raise RemoteProtocolError(f"a fragment of {octets} octets, where {LARGEST} are taken")
    behind = end + octets
    if len(buffer) < behind:
        return None, pos
    return PieceFast(buffer[pos:behind], 0, 0, said, buffer[end:behind]), behind
