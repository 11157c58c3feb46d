"""Errors as performatives carry them, within a frame that the peer takes (2.8.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import TEXT_LIMIT, Condition, LocalProtocolError
from trio_amqp10.spec.transport import Error
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from trio_amqp10.errors import RemoteProtocolError

__all__ = ["error_of", "fit"]

_AROUND: Final = 64
"""More octets than the frame header and the performative around an error ever take."""


def error_of(fault: RemoteProtocolError, about: str = "") -> Error:
    """What we tell the peer of its fault; the text may quote it, and it can be long.

    ``about`` is put in front, and the name of the rule behind.
    """
    rule = f" [{fault.rule}]" if fault.rule else ""
    return Error(
        condition=fault.condition, description=f"{about}{fault.description}"[: TEXT_LIMIT - len(rule)] + rule
    )


def fit(error: Error | None, frame_size: int) -> Error | None:
    """``error`` with as much of its description as a frame of ``frame_size`` octets has room for.

    Raises:
        LocalProtocolError: it does not fit without a description either.
    """
    if error is None:
        return None
    excess = len(encode(error)) + _AROUND - frame_size
    if excess <= 0:
        return error
    text = (error.description or "").encode()
    if excess > len(text):
        raise LocalProtocolError(
            f"{Condition.FRAME_SIZE_TOO_SMALL}: an error that fits no frame of {frame_size} octets: shorten it"
        )
    short = text[: len(text) - excess].decode(errors="ignore")
    return Error(condition=error.condition, description=short, info=error.info)
