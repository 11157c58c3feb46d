"""Convert errors to their wire form, within the peer's frame size (2.8.14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.errors import TEXT_LIMIT, Condition, LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.core.errors import RemoteProtocolError

_AROUND: Final = 64
"""A bound for the octets of frame header and performative around an error."""


def error_of(fault: RemoteProtocolError, about: str = "") -> Error:
    """Return the error that reports ``fault`` to the peer.

    The description is cut to ``TEXT_LIMIT`` characters, because it may quote the peer. ``about`` is put
    before it and the name of the rule after it.
    """
    rule = f" [{fault.rule}]" if fault.rule else ""
    return Error(
        condition=fault.condition, description=f"{about}{fault.description}"[: TEXT_LIMIT - len(rule)] + rule
    )


def fit(error: Error | None, frame_size: int) -> Error | None:
    """Return ``error`` with its description shortened to fit a frame.

    Raises:
        LocalProtocolError: it does not fit ``frame_size`` octets even without a description.
    """
    if error is None:
        return None
    excess = len(encode(error)) + _AROUND - frame_size
    if excess <= 0:
        return error
    text = (error.description or "").encode()
    if excess > len(text):
        raise LocalProtocolError(
            f"{Condition.FRAME_SIZE_TOO_SMALL}: the error does not fit a frame of {frame_size} octets: shorten its info"
        )
    short = text[: len(text) - excess].decode(errors="ignore")
    return Error(condition=error.condition, description=short, info=error.info)
