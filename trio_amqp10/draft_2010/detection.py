"""Which of the two standards a peer speaks that has begun with their common protocol header: its first frame says (D 310-318, 532-545).

The first frame is an open in both. Its descriptor is a number of domain 1 in the draft and of domain 0 in the final standard; the
symbol of an open is the same in both, and counts as the final standard's.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.wire import codes

__all__ = ["detect_draft"]

_HEADER: Final = 8
"""Octets of the header of a frame."""
_DRAFT_OPEN: Final = bytes((codes.DESCRIBED, codes.ULONG)) + (0x1_0000_0100).to_bytes(8, "big")


def detect_draft(octets: bytes) -> bool | None:
    """Whether the octets behind the protocol header are the first frame of a peer that speaks the draft.

    Args:
        octets: the beginning of the frame, as far as it has come.

    Returns:
        None: more octets are needed. At most 1,030 decide, which is the longest header of a frame and a descriptor.
    """
    if len(octets) < _HEADER:
        return None
    body = max(octets[4] * 4, _HEADER)
    found = octets[body : body + len(_DRAFT_OPEN)]
    if not _DRAFT_OPEN.startswith(found):
        return False
    return True if found == _DRAFT_OPEN else None
