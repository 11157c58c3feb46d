"""Frames of AMQP 0-9-1 and of 10.3 as pieces of a conversation: methods, content headers, bodies and heartbeats (0-9-1, 4.2.3)."""

from __future__ import annotations

from dataclasses import fields as fields_of_class
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from trio_amqp10.amqp091.content import BasicProperties, Properties, read_header
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.frames import BODY, FRAME_END, HEADER, HEARTBEAT, METHOD
from trio_amqp10.amqp091.methods import Method
from trio_amqp10.amqp091.profile import V091
from trio_amqp10.amqp_10_3.frames import TRACE
from trio_amqp10.amqp_10_3.profile import V10_3
from trio_amqp10.errors import RemoteProtocolError

from .pieces import LARGEST, OtherProtocolPiece, Piece

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.profile import Profile

    Reader = Callable[[bytes, int], tuple[Piece | None, int]]

__all__ = ["Piece091", "Piece103", "fields_of_091", "reader_of_header", "reader_of_server"]

_BEGINS: Final = b"\1\0\0\0\0"
"""What a server begins with: a method on channel 0, of less than 65,536 octets; no frame of AMQP 1.0 begins so (2.3.1)."""
_TELLS: Final = 8
"""Where the octet is that tells the versions apart: of the class of 0-9-1's first method, 10, it is the lower one."""

_CONNECTION: Final = b"\0\x0a"
_SECRETS: Final = {
    "connection.start-ok": "response",
    "connection.secure": "challenge",
    "connection.secure-ok": "response",
    "connection.update-secret": "new_secret",
}
_NAMES: Final = {METHOD: "method", HEADER: "header", BODY: "body", TRACE: "trace", HEARTBEAT: "heartbeat"}


class Piece091(OtherProtocolPiece):
    """A frame of AMQP 0-9-1; ``performative`` is a method, or the properties of a content header."""

    __slots__ = ()
    profile: ClassVar[Profile] = V091

    @property
    def name(self) -> str:
        """The method, or ``header``, ``body`` or ``heartbeat``."""
        if self.fault is None and isinstance(self.performative, Method):
            return self.performative.plan.name
        return _NAMES[self.frame_type or 0]

    @property
    def is_empty(self) -> bool:
        """Whether this is a heartbeat."""
        return self.frame_type == HEARTBEAT

    def fields(self) -> dict[str, str]:
        """As of ``OtherProtocolPiece``."""
        return fields_of_091(self.performative)

    def describe(self) -> str:
        """As of ``OtherProtocolPiece``, behind the channel."""
        return self.name if self.is_empty else f"[{self.channel}] {super().describe()}"

    def redacted(self) -> bytes:
        """The octets, every octet of a secret replaced by ``*``."""
        octets = self.octets
        start = self.profile.frames.head_size
        if (
            self.fault is not None
            and octets[:1] == bytes([METHOD])
            and octets[start:].startswith(_CONNECTION)
        ):
            return octets[: start + 4] + b"*" * len(octets[start + 4 :])
        secret = _secret_of(self.performative)
        if secret:
            size = len(secret).to_bytes(4, "big")
            octets = octets.replace(size + secret, size + b"*" * len(secret))
        return octets


class Piece103(Piece091):
    """A frame of 10.3."""

    __slots__ = ()
    profile = V10_3


def _secret_of(said: Any) -> bytes:
    name = _SECRETS.get(said.plan.name) if isinstance(said, Method) else None
    found: bytes = b"" if name is None else getattr(said, name)
    return found


def fields_of_091(said: Any) -> dict[str, str]:
    """Arguments or properties that say something, as text and without secrets; empty ones are left out."""
    if said is None:
        return {}
    secret = _SECRETS.get(said.plan.name) if isinstance(said, Method) else None
    declared = cast("Any", type(said))
    shown = {each.name: getattr(said, each.name) for each in fields_of_class(declared)}
    return {
        name: f"<{len(value)} octets>" if name == secret else repr(value)
        for name, value in shown.items()
        if value not in (None, "", False, b"", {}) and not name.startswith("reserved")
    }


def reader_of_header(header: bytes) -> Reader | None:
    """What reads the frames behind this protocol header; None for one of another protocol."""
    for kind in (Piece091, Piece103):
        if header in kind.profile.headers:
            return partial(_piece_at, kind)
    return None


def reader_of_server(head: bytes) -> Reader | bool:
    """What reads a stream that begins so, as a server says no header; False: another protocol; True: more octets are needed."""
    if not _BEGINS.startswith(head[: len(_BEGINS)]):
        return False
    if len(head) <= _TELLS:
        return True
    return partial(_piece_at, Piece091 if head[_TELLS] else Piece103)


def _piece_at(kind: type[Piece091], buffer: bytes, pos: int) -> tuple[Piece | None, int]:
    """The frame that begins at ``pos`` and where it ends; None while octets are missing.

    Raises:
        RemoteProtocolError: the frame's head or end cannot be right.
    """
    frames = kind.profile.frames
    if len(buffer) < pos + frames.head_size:
        return None, pos
    try:
        frame_type, channel, size = frames.read_head(buffer, pos, LARGEST)
    except ReplyError as fault:
        raise RemoteProtocolError(str(fault)) from None
    end = pos + size + frames.overhead
    if len(buffer) < end:
        return None, pos
    if buffer[end - 1] != FRAME_END:
        raise RemoteProtocolError("a frame without its end octet")
    return _read(kind, buffer[pos:end], frame_type, channel), end


def _read(kind: type[Piece091], octets: bytes, frame_type: int, channel: int) -> Piece091:
    profile = kind.profile
    payload = octets[profile.frames.head_size : -1]
    said: Any = None
    try:
        if frame_type == METHOD:
            said, payload = profile.methods.read(payload, profile.letters), b""
        elif frame_type == HEADER:
            expected = profile.properties.get(int.from_bytes(payload[:2], "big"), BasicProperties)
            said, payload = read_header(payload, profile.letters, expected, profile.codes).properties, b""
    except ReplyError as fault:
        return kind(octets, channel, frame_type, fault=str(fault))
    assert said is None or isinstance(said, (Method, Properties))
    return kind(octets, channel, frame_type, said, payload)
