"""The unsettled map of an attach, complete or cut to the frame size (2.7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.frames import FRAME_HEADER_SIZE
from trio_amqp10.spec.transport import Attach
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_TAG", "has_tags", "unsettled_fields"]

MAX_TAG: Final = 32
"""Octets of a delivery-tag (2.8.7)."""

_AROUND: Final = 16
"""Octets by which the map's own header, and the wider one of the list around it, can make a frame grow."""
_MOST: Final = 8_192
"""Entries: who decodes a map has a limit to what one may cost, and each entry is several values."""


def unsettled_fields(fields: dict[str, Any], states: dict[bytes, Any], frame_size: int) -> dict[str, Any]:
    """What an attach of these ``fields`` says of what is unsettled, in a frame of this size."""
    bare = encode(Attach(**fields, unsettled={}, incomplete_unsettled=True))
    room = frame_size - FRAME_HEADER_SIZE - len(bare) - _AROUND
    unsettled: dict[bytes, Any] = {}
    for tag, state in states.items():
        room -= len(encode(tag)) + len(encode(state))
        if room < 0 or len(unsettled) == _MOST:
            break
        unsettled[tag] = state
    return {"unsettled": unsettled, "incomplete_unsettled": len(unsettled) < len(states)}


def has_tags(unsettled: Mapping[Any, Any]) -> bool:
    """Whether the keys of a peer's map are delivery-tags (2.7.3, 2.8.7)."""
    return all(isinstance(tag, bytes) and len(tag) <= MAX_TAG for tag in unsettled)
