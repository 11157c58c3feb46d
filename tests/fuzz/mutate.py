"""Good octets made worse: bits, octets, ranges, numbers, and frames that lie, go missing or come twice.

Only the standard library, and the same random numbers give the same octets.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_OCTETS = bytes(
    (0x00, 0x01, 0x02, 0x40, 0x41, 0x43, 0x44, 0x45, 0x53, 0x80, 0xA0, 0xA1, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0)
)
_OCTETS += bytes((0xF0, 0xFF, 0x7F, 0x10, 0x14, 0x70, 0x75, 0x77))
_NUMBERS = (0, 1, 7, 8, 0x7F, 0xFF, 0x100, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_MOST = 16_384


@dataclass(frozen=True)
class Framing:
    """How octets are cut into frames.

    Attributes:
        size_at: where the octets of a frame's size stand.
        head: octets before a frame's body.
        tail: what ends a frame.
        counted: octets of a frame that its size does not count.
        width: octets of the size.
    """

    size_at: int
    head: int
    tail: bytes = b""
    counted: int = 0
    width: int = 4

    def split(self, octets: bytes) -> list[bytes]:
        """Protocol headers, and frames as their sizes say; what is neither is one piece at the end."""
        frames: list[bytes] = []
        least = self.head + len(self.tail)
        while len(octets) >= least:
            size = int.from_bytes(octets[self.size_at : self.size_at + self.width], "big") + self.counted
            if octets.startswith(b"AMQP"):
                size = 8
            if not least <= size <= len(octets):
                break
            frames.append(octets[:size])
            octets = octets[size:]
        return [*frames, octets] if octets else frames

    def body(self, frame: bytes) -> bytes:
        """What a frame carries."""
        return frame[self.head : len(frame) - len(self.tail)]

    def with_body(self, frame: bytes, body: bytes) -> bytes:
        """The frame with another body, and a size that is true."""
        if len(frame) < self.head + len(self.tail):
            return frame
        size = self.head + len(body) + len(self.tail) - self.counted
        written = min(size, 256**self.width - 1).to_bytes(self.width, "big")
        return (
            frame[: self.size_at] + written + frame[self.size_at + self.width : self.head] + body + self.tail
        )


AMQP10: Final = Framing(size_at=0, head=8)
AMQP091: Final = Framing(size_at=3, head=7, tail=b"\xce", counted=8)


def mutated(random: Random, seeds: Sequence[bytes], framing: Framing | None) -> bytes:
    """One of the seeds after a few accidents.

    Args:
        framing: of the octets, None if they are no frames; some accidents then keep sizes right, to get further in.
    """
    octets = random.choice(seeds)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        if framing is not None and random.random() < 0.7:
            octets = _in_frames(random, octets, seeds, framing)
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


def _in_frames(random: Random, octets: bytes, seeds: Sequence[bytes], framing: Framing) -> bytes:
    frames = framing.split(octets)
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
        frames.insert(at, random.choice(framing.split(random.choice(seeds)) or frames))
    else:
        bodies = [framing.body(one) for one in frames]
        body = random.choice(_ACCIDENTS)(random, bodies[at], bodies)
        frames[at] = framing.with_body(frames[at], body)
    return b"".join(frames)
