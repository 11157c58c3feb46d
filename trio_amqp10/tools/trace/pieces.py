"""A piece of a conversation: a protocol header, a frame, or other octets.

The sections are 2.2, 2.3 and 5.3.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

LARGEST: Final = 64 * 1024 * 1024
"""The largest credible size of a frame, in octets.

A larger size is read from octets that are not a frame: HTTP, TLS, or the middle of a stream.
"""
_ERRORS: Final = 300
"""The lowest reply code of a failure (RFC 011, 3.3)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A protocol header, a frame, or octets that are neither.

    Attributes:
        octets: all octets of the piece.
        channel: the channel of a frame; otherwise None.
        frame_type: 0 for AMQP, 1 for SASL (2.3.1, 5.3.1); None if the piece is not a frame.
        performative: the content of the frame; None for an empty frame, a header, or octets that cannot be decoded.
        payload: the octets after the performative (2.3.2).
        fault: why the octets cannot be decoded, or None.
    """

    octets: bytes
    channel: int | None = None
    frame_type: int | None = None
    performative: Any = None
    payload: bytes = b""
    fault: str | None = None

    @property
    def is_header(self) -> bool:
        """Whether this is a protocol header (2.2)."""
        return self.frame_type is None and self.fault is None

    @property
    def is_empty(self) -> bool:
        """Whether this is an empty frame, which only keeps the connection alive (2.4.5)."""
        return self.frame_type is not None and self.performative is None and self.fault is None

    @property
    def name(self) -> str:
        """The class of the performative, or ``header``, ``empty frame`` or ``octets``."""
        if self.performative is not None:
            return type(self.performative).__name__
        if self.fault is not None:
            return "octets"
        return "header" if self.is_header else "empty frame"


class OtherProtocolPiece(Piece, ABC):
    """A frame of another protocol than AMQP 1.0, which describes itself."""

    __slots__ = ()

    @property
    def is_error(self) -> bool:
        """Whether the frame reports a failure: a close, a return or a negative reply."""
        return int(getattr(self.performative, "reply_code", 0)) >= _ERRORS

    @abstractmethod
    def fields(self) -> dict[str, str]:
        """Return the fields that are set, as text without secrets."""

    def describe(self) -> str:
        """Describe the frame on one line, without secrets."""
        shown = ", ".join(f"{name}={value}" for name, value in self.fields().items())
        fields = "" if self.performative is None else f"({shown})"
        payload = f" + {len(self.payload)} octets" if self.payload else ""
        return f"{self.name}{fields}{payload}{' !' if self.is_error else ''}"

    @abstractmethod
    def redacted(self) -> bytes:
        """Return the octets, with every octet of a secret replaced by ``*``."""
