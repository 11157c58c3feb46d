"""Frames of AMQP 0-9-1 and 10.3 as pieces of a conversation.

Methods, content headers, bodies and heartbeats (0-9-1, 4.2.3).
"""

from __future__ import annotations

from dataclasses import fields as fields_of_class
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from trio_amqp10.amqp091.engine.profile import V091
from trio_amqp10.amqp091.wire.content import BasicProperties, Properties, read_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import BODY, FRAME_END, HEADER, HEARTBEAT, METHOD
from trio_amqp10.amqp091.wire.methods import Method
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_10_3.wire.frames import TRACE
from trio_amqp10.core.errors import RemoteProtocolError

from .pieces import LARGEST, OtherProtocolPiece, Piece

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.engine.profile import Profile

    Reader = Callable[[bytes, int], tuple[Piece | None, int]]

_BEGINS: Final = b"\1\0\0\0\0"
"""The first octets of a server's stream: a method of under 64 KiB on channel 0.

No frame of AMQP 1.0 begins with these octets (2.3.1).
"""
_CLASS_ID: Final = 8
"""The position of the octet that distinguishes the versions.

In 0-9-1 it is the lower octet of the class of the first method, 10; in 10.3 it is 0.
"""

CONNECTION: Final = b"\0\x0a"
"""The class of the methods of a login."""
_SECRETS: Final = {
    "connection.start-ok": "response",
    "connection.secure": "challenge",
    "connection.secure-ok": "response",
    "connection.update-secret": "new_secret",
}
_NAMES: Final = {METHOD: "method", HEADER: "header", BODY: "body", TRACE: "trace", HEARTBEAT: "heartbeat"}


class Piece091(OtherProtocolPiece):
    """A frame of AMQP 0-9-1.

    ``performative`` is a method, or the properties of a content header.
    """

    __slots__ = ()
    profile: ClassVar[Profile] = V091

    @property
    def name(self) -> str:
        """The name of the method, or ``header``, ``body`` or ``heartbeat``."""
        if self.fault is None and isinstance(self.performative, Method):
            return self.performative.plan.name
        return _NAMES[self.frame_type or 0]

    @property
    def is_empty(self) -> bool:
        """Whether this is a heartbeat."""
        return self.frame_type == HEARTBEAT

    def fields(self) -> dict[str, str]:
        return fields_of_091(self.performative)

    def describe(self) -> str:
        """Describe the frame on one line, without secrets; the channel is first."""
        return self.name if self.is_empty else f"[{self.channel}] {super().describe()}"

    def redacted(self) -> bytes:
        """Return the octets, with every octet of a secret replaced by ``*``."""
        octets = self.octets
        start = self.profile.frames.head_size
        if self.fault is not None and octets[:1] == bytes([METHOD]) and octets[start:].startswith(CONNECTION):
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


def _secret_of(content: Any) -> bytes:
    name = _SECRETS.get(content.plan.name) if isinstance(content, Method) else None
    found: bytes = b"" if name is None else getattr(content, name)
    return found


def fields_of_091(content: Any) -> dict[str, str]:
    """Return the arguments or properties that are set, as text without secrets."""
    if content is None:
        return {}
    secret = _SECRETS.get(content.plan.name) if isinstance(content, Method) else None
    declared = cast("Any", type(content))
    shown = {each.name: getattr(content, each.name) for each in fields_of_class(declared)}
    return {
        name: f"<{len(value)} octets>" if name == secret else repr(value)
        for name, value in shown.items()
        if value not in (None, "", False, b"", {}) and not name.startswith("reserved")
    }


def reader_of_header(header: bytes) -> Reader | None:
    """Return the reader of frames after this protocol header, or None if unknown."""
    for kind in (Piece091, Piece103):
        if header in kind.profile.headers:
            return partial(_piece_at, kind)
    return None


def reader_of_server(head: bytes) -> Reader | bool:
    """Return the reader of a server's stream, which has no protocol header.

    False: the stream is of another protocol. True: more octets are needed.
    """
    if not _BEGINS.startswith(head[: len(_BEGINS)]):
        return False
    if len(head) <= _CLASS_ID:
        return True
    return partial(_piece_at, Piece091 if head[_CLASS_ID] else Piece103)


def _piece_at(kind: type[Piece091], buffer: bytes, pos: int) -> tuple[Piece | None, int]:
    """Return the frame at ``pos`` and its end; None while octets are missing.

    Raises:
        RemoteProtocolError: the head or the end of the frame is not valid.
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
        raise RemoteProtocolError("the frame does not end with its end octet")
    return _read(kind, buffer[pos:end], frame_type, channel), end


READERS_091: Final[dict[str, Reader]] = {
    "AMQP 0-9-1": partial(_piece_at, Piece091),
    "AMQ Protocol 10.3": partial(_piece_at, Piece103),
}
"""The readers of frames, by the names of their protocols."""


def _read(kind: type[Piece091], octets: bytes, frame_type: int, channel: int) -> Piece091:
    profile = kind.profile
    payload = octets[profile.frames.head_size : -1]
    content: Any = None
    try:
        if frame_type == METHOD:
            content, payload = profile.methods.read(payload, profile.letters), b""
        elif frame_type == HEADER:
            expected = profile.properties.get(int.from_bytes(payload[:2], "big"), BasicProperties)
            content, payload = read_header(payload, profile.letters, expected, profile.codes).properties, b""
    except ReplyError as fault:
        return kind(octets, channel, frame_type, fault=str(fault))
    assert content is None or isinstance(content, (Method, Properties))
    return kind(octets, channel, frame_type, content, payload)
