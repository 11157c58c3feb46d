"""Good octets made worse: bits, octets, ranges, numbers, and frames that lie, go missing or come twice.

Only the standard library, and the same random numbers give the same octets.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

__all__ = ["accident", "mutated", "refitted"]

_OCTETS = bytes(
    (0x00, 0x01, 0x02, 0x40, 0x41, 0x43, 0x44, 0x45, 0x53, 0x80, 0xA0, 0xA1, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0)
)
_OCTETS += bytes((0xF0, 0xFF, 0x7F, 0x10, 0x14, 0x70, 0x75, 0x77))
_NUMBERS = (0, 1, 7, 8, 0x7F, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_MOST = 16_384


def mutated(random: Random, seeds: Sequence[bytes], *, framed: bool) -> bytes:
    """One of the seeds after a few accidents.

    Args:
        framed: the octets are frames; some accidents then keep their sizes right, to get further in.
    """
    octets = random.choice(seeds)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        if framed and random.random() < 0.7:
            octets = _in_frames(random, octets, seeds)
        else:
            octets = random.choice(_ACCIDENTS)(random, octets, seeds)
    return octets[:_MOST]


def accident(random: Random, octets: bytes) -> bytes:
    """These octets after one accident."""
    return random.choice(_ACCIDENTS)(random, octets, [octets])


Accident = "Callable[[Random, bytes, Sequence[bytes]], bytes]"


def _place(random: Random, octets: bytes) -> int:
    return random.randrange(len(octets)) if octets else 0


def _flip(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    at = _place(random, octets)
    return (
        octets[:at] + bytes(one ^ 1 << random.randrange(8) for one in octets[at : at + 1]) + octets[at + 1 :]
    )


def _replace(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    at = _place(random, octets)
    return octets[:at] + bytes((random.choice(_OCTETS),)) + octets[at + 1 :]


def _insert(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    at = _place(random, octets)
    return (
        octets[:at] + random.choices(_OCTETS, k=1)[0].to_bytes() * random.choice((1, 1, 4, 300)) + octets[at:]
    )


def _number(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    at = _place(random, octets)
    return octets[:at] + struct.pack(">I", random.choice(_NUMBERS)) + octets[at + 4 :]


def _delete(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    at = _place(random, octets)
    return octets[:at] + octets[at + random.choice((1, 2, 4, 16)) :]


def _cut(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    return octets[: _place(random, octets)]


def _repeat(random: Random, octets: bytes, _seeds: Sequence[bytes]) -> bytes:
    at = _place(random, octets)
    piece = octets[at : at + random.choice((1, 3, 9, 40))]
    return octets[:at] + piece * random.choice((2, 3, 50)) + octets[at + len(piece) :]


def _splice(random: Random, octets: bytes, seeds: Sequence[bytes]) -> bytes:
    other = random.choice(seeds)
    return octets[: _place(random, octets)] + other[_place(random, other) :]


_ACCIDENTS = (_flip, _flip, _replace, _replace, _insert, _number, _delete, _cut, _repeat, _splice)


def _in_frames(random: Random, octets: bytes, seeds: Sequence[bytes]) -> bytes:
    frames = _split(octets)
    if not frames:
        return octets
    at = random.randrange(len(frames))
    what = random.randrange(6)
    if what == 0:
        del frames[at]
    elif what == 1:
        frames.insert(random.randrange(len(frames) + 1), frames[at])
    elif what == 2:
        other = random.randrange(len(frames))
        frames[at], frames[other] = frames[other], frames[at]
    elif what == 3:
        frames.insert(at, random.choice(_split(random.choice(seeds)) or frames))
    else:
        body = random.choice(_ACCIDENTS)(random, frames[at][8:], [one[8:] for one in frames])
        frames[at] = frames[at][:8] + body
    return refitted(frames)


def _split(octets: bytes) -> list[bytes]:
    """Frames as their sizes say; what is no frame is one piece at the end."""
    frames: list[bytes] = []
    while len(octets) >= 8:
        size = int.from_bytes(octets[:4], "big")
        if not 8 <= size <= len(octets):
            break
        frames.append(octets[:size])
        octets = octets[size:]
    return [*frames, octets] if octets else frames


def refitted(frames: Sequence[bytes]) -> bytes:
    """The frames with sizes that are true, but for what is no frame."""
    return b"".join(struct.pack(">I", len(one)) + one[4:] if len(one) >= 8 else one for one in frames)
