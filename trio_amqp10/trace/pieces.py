"""A piece of a conversation: a protocol header, a frame, or octets that are neither (2.2, 2.3, 5.3.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["LARGEST", "OtherProtocolPiece", "Piece"]

LARGEST: Final = 64 * 1024 * 1024
"""Octets of a frame that is believed: more begins no frame but HTTP, TLS, or the middle of something."""
_ERRORS: Final = 300
"""Reply codes from here on are of failures (RFC 011, 3.3)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A protocol header, a frame, or octets that are neither.

    Attributes:
        octets: all of it, from the first octet to the last.
        channel: of a frame; None for anything else.
        frame_type: 0 for AMQP, 1 for SASL (2.3.1, 5.3.1); None where it is no frame.
        performative: what the frame carries; None for an empty frame, a header, or what could not be read.
        payload: what follows the performative (2.3.2).
        fault: why it could not be read, or None.
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
        """Whether this is an empty frame, which only keeps a connection from going idle (2.4.5)."""
        return self.frame_type is not None and self.performative is None and self.fault is None

    @property
    def name(self) -> str:
        """What it is in a word: the class of the performative, ``header``, ``empty frame`` or ``octets``."""
        if self.performative is not None:
            return type(self.performative).__name__
        if self.fault is not None:
            return "octets"
        return "header" if self.is_header else "empty frame"


class OtherProtocolPiece(Piece, ABC):
    """A frame of another protocol than AMQP 1.0: it says itself what it is."""

    __slots__ = ()

    @property
    def is_error(self) -> bool:
        """Whether it reports a failure: a close, a return or a reply with such a code."""
        return int(getattr(self.performative, "reply_code", 0)) >= _ERRORS

    @abstractmethod
    def fields(self) -> dict[str, str]:
        """The fields of the performative that say something, as text and without secrets."""

    def describe(self) -> str:
        """On one line, without secrets."""
        shown = ", ".join(f"{name}={value}" for name, value in self.fields().items())
        said = "" if self.performative is None else f"({shown})"
        payload = f" + {len(self.payload)} octets" if self.payload else ""
        return f"{self.name}{said}{payload}{' !' if self.is_error else ''}"

    @abstractmethod
    def redacted(self) -> bytes:
        """The octets, every octet of a secret replaced by ``*``."""
