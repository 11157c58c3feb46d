"""Detection of the standard that a peer uses (D 310-318, 532-545).

The protocol header is the same in both standards. The first frame is an open in both: its descriptor is a number of domain 1 in
the draft and of domain 0 in the final standard. The symbol of an open is the same in both, and counts as the final
standard's.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.amqp10.wire import codes

_HEADER: Final = 8
"""The octets of a frame header."""
_DRAFT_OPEN: Final = bytes((codes.DESCRIBED, codes.ULONG)) + (0x1_0000_0100).to_bytes(8, "big")


def detect_draft(octets: bytes) -> bool | None:
    """Whether the octets after the protocol header are the first frame of the draft.

    Args:
        octets: the beginning of the frame, as much as has arrived.

    Returns:
        None: more octets are needed. At most 1,030 are enough: the longest header of a frame, and a descriptor.
    """
    if len(octets) < _HEADER:
        return None
    body = max(octets[4] * 4, _HEADER)
    found = octets[body : body + len(_DRAFT_OPEN)]
    if not _DRAFT_OPEN.startswith(found):
        return False
    return True if found == _DRAFT_OPEN else None
