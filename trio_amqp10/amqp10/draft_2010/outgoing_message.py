"""A message that is sent in fragments (D 1116-1138, 1474-1502).

It takes as many transfers as the frame size of the peer requires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .spec.transport import Fragment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .sections import DraftSection

FRAGMENT_OVERHEAD: Final = 48
"""The most octets that a fragment takes beyond its payload."""


class OutgoingMessage:
    """A delivery of which the engine may have written a part.

    Attributes:
        transfer_id, tag: its id in the session, and its delivery-tag.
        message_format: as in the final standard.
        count: the transfer-count of the link before it; ``credit`` is the credit of the link after it.
        settled, resume, batchable: the latest fields of the engine's transfers.
        state: the latest state, translated to the draft.
        chunks: the octets that the engine has written.
        opened: whether a transfer was sent for it.
    """

    __slots__ = (
        "batchable",
        "chunks",
        "count",
        "credit",
        "message_format",
        "opened",
        "resume",
        "settled",
        "state",
        "tag",
        "transfer_id",
    )

    def __init__(self, transfer_id: int, tag: bytes, message_format: int, count: int, credit: int) -> None:
        self.transfer_id: Final = transfer_id
        self.tag: bytes = tag
        self.message_format: int = message_format
        self.count: int = count
        self.credit: int = credit
        self.settled: bool = False
        self.state: Any = None
        self.resume: bool = False
        self.batchable: bool = False
        self.chunks: list[bytes] = []
        self.opened: bool = False


def cut(
    sections: Sequence[DraftSection], room: int, start: int = 0, stop: int | None = None
) -> Iterator[tuple[Fragment, ...]]:
    """Yield the fragments of each transfer.

    Args:
        sections: of the message, in their order.
        room: octets that one transfer has for its fragments; more than ``FRAGMENT_OVERHEAD``.
        start: octets of the message that the peer has already (D 1845).
        stop: the octet to end before; None for the end of the message.
    """
    gathered: list[Fragment] = []
    left = room
    offset = 0
    for code, octets in sections:
        if offset + len(octets) < start or (octets and offset + len(octets) == start):
            offset += len(octets)
            continue
        pos = max(0, start - offset)
        until = len(octets) if stop is None else min(len(octets), stop - offset)
        while until > 0 or (not octets and (stop is None or offset < stop)):
            if left <= FRAGMENT_OVERHEAD:
                yield tuple(gathered)
                gathered, left = [], room
            size = min(until - pos, left - FRAGMENT_OVERHEAD)
            last = pos + size == len(octets)
            payload = octets[pos : pos + size]
            gathered.append(
                Fragment(
                    first=pos == 0,
                    last=last,
                    format_code=int(code),
                    fragment_offset=offset + pos,
                    payload=payload,
                )
            )
            left -= FRAGMENT_OVERHEAD + size
            pos += size
            if pos == until:
                break
        offset += len(octets)
    yield tuple(gathered)
