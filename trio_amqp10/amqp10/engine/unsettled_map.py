"""The unsettled map of an attach, complete or cut to the frame size (2.7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.transport import Attach
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TAG: Final = 32
"""Octets of a delivery-tag (2.8.7)."""

_AROUND: Final = 16
"""Octets that the headers of the map and of the list around it may add to a frame."""
_MOST: Final = 8_192
"""The largest number of entries, because decoders limit the number of values."""


def unsettled_fields(fields: dict[str, Any], states: dict[bytes, Any], frame_size: int) -> dict[str, Any]:
    """Return the fields of an attach that report unsettled deliveries (2.7.3).

    Args:
        fields: the other fields of the attach.
        states: delivery states by tag; only as many as fit are included.
        frame_size: octets of the frame.
    """
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
    """Whether all keys of a peer's map are delivery-tags (2.7.3, 2.8.7)."""
    return all(isinstance(tag, bytes) and len(tag) <= MAX_TAG for tag in unsettled)
