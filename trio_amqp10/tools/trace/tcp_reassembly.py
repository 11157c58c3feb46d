"""Reassemble TCP conversations from IP packets, and find those of AMQP.

Handles retransmission, overlap and disorder. Missing octets are reported in the notes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import error as StructError  # noqa: N812 - the exception's own name is error
from struct import unpack_from
from typing import TYPE_CHECKING, Final, TypeAlias

from .frame_log import Record, Way

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .pcap import Packet

_TCP: Final = 6
_SKIPPED: Final = (0, 43, 60)  # extension headers of IPv6 that may precede TCP
_SYN, _ACK = 0x02, 0x10
_MAGIC: Final = b"AMQP"

Address: TypeAlias = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class _Segment:
    at: float
    source: Address
    target: Address
    sequence: int
    flags: int
    data: bytes


@dataclass(slots=True)
class _Direction:
    """The octets of one direction, put in order."""

    next: int | None = None
    waiting: dict[int, bytes] = field(default_factory=dict[int, bytes])

    def take(self, sequence: int, data: bytes) -> bytes:
        """Add a segment, and return the octets that are now next in order."""
        if self.next is None:
            self.next = sequence
        self.waiting[sequence] = max(self.waiting.get(sequence, b""), data, key=len)
        ready = b""
        while (found := self._overlapping()) is not None:
            start, octets = found
            del self.waiting[start]
            fresh = octets[_ahead(self.next, start) :]
            ready += fresh
            self.next = (self.next + len(fresh)) & 0xFFFFFFFF
        return ready

    def _overlapping(self) -> tuple[int, bytes] | None:
        assert self.next is not None
        for start, octets in self.waiting.items():
            if _ahead(self.next, start) >= 0:
                return start, octets
        return None


def _ahead(sequence: int, of: int) -> int:
    """Return the distance of two sequence numbers, in serial arithmetic."""
    return (sequence - of + 0x80000000) % 0x100000000 - 0x80000000


@dataclass(slots=True)
class _Conversation:
    dialler: Address
    directions: dict[Address, _Direction]
    records: list[tuple[Address, bytes, float]] = field(default_factory=list[tuple[Address, bytes, float]])

    @property
    def is_amqp(self) -> bool:
        """Whether either end begins with a protocol header."""
        begun: dict[Address, bytes] = {}
        for source, octets, _ in self.records:
            begun[source] = (begun.get(source, b"") + octets)[:4]
        return _MAGIC in begun.values()


@dataclass(frozen=True, slots=True)
class Conversations:
    """The AMQP conversations of a capture.

    Attributes:
        records: the octets of the AMQP conversations; times count from the first packet.
        notes: the hosts of each conversation, and its missing octets.
        others: the number of TCP conversations of other protocols.
    """

    records: list[Record]
    notes: list[str]
    others: int


def conversations(packets: Iterable[Packet]) -> Conversations:
    """Reassemble the packets of a capture; packets other than TCP are skipped."""
    all_of_them: list[_Conversation] = []
    current: dict[frozenset[Address], _Conversation] = {}
    for segment in filter(None, map(_segment, packets)):
        ends = frozenset((segment.source, segment.target))
        begins = segment.flags & _SYN and not segment.flags & _ACK
        talk = current.get(ends)
        if talk is None or (begins and talk.records):
            dialler = segment.target if segment.flags & _SYN and not begins else segment.source
            talk = current[ends] = _Conversation(
                dialler, {segment.source: _Direction(), segment.target: _Direction()}
            )
            all_of_them.append(talk)
        direction = talk.directions[segment.source]
        if segment.flags & _SYN:
            direction.next = (segment.sequence + 1) & 0xFFFFFFFF
        elif segment.data:
            ready = direction.take(segment.sequence, segment.data)
            if ready:
                talk.records.append((segment.source, ready, segment.at))
    return _numbered([talk for talk in all_of_them if talk.records])


def _numbered(talks: list[_Conversation]) -> Conversations:
    chosen = [talk for talk in talks if talk.is_amqp]
    began = min((talk.records[0][2] for talk in chosen), default=0.0)
    numbered: list[Record] = []
    notes: list[str] = []
    for number, talk in enumerate(chosen, 1):
        ends = {source: _shown(source) for source in talk.directions}
        (other,) = (ends[end] for end in ends if end != talk.dialler) if len(ends) == 2 else ("itself",)
        notes.append(f"conversation {number}: {ends[talk.dialler]} -> {other}")
        missing = sum(len(direction.waiting) for direction in talk.directions.values())
        if missing:
            notes.append(
                f"conversation {number}: the capture missed octets; the {missing} segments after them are left out"
            )
        for source, octets, at in talk.records:
            way: Way = ">" if source == talk.dialler else "<"
            numbered.append(Record(number, way, octets, round(at - began, 9)))
    numbered.sort(key=lambda record: record.at or 0.0)
    return Conversations(numbered, notes, len(talks) - len(chosen))


def _shown(address: Address) -> str:
    host, port = address
    if len(host) == 4:
        return f"{'.'.join(map(str, host))}:{port}"
    return f"[{':'.join(host[pos : pos + 2].hex() for pos in range(0, 16, 2))}]:{port}"


def _segment(packet: Packet) -> _Segment | None:
    """Return the TCP segment in an IP packet, or None if there is none."""
    octets = packet.octets
    try:
        return _of_ipv4(packet.at, octets) if octets[0] >> 4 == 4 else _of_ipv6(packet.at, octets)
    except (StructError, IndexError):
        return None  # the packet is cut short


def _of_ipv4(at: float, octets: bytes) -> _Segment | None:
    size, _, fragment = unpack_from(">HHH", octets, 2)
    if octets[9] != _TCP or fragment & 0x1FFF:
        return None
    return _tcp(at, octets[12:16], octets[16:20], octets[(octets[0] & 15) * 4 : size or len(octets)])


def _of_ipv6(at: float, octets: bytes) -> _Segment | None:
    (size,) = unpack_from(">H", octets, 4)
    kind, start = octets[6], 40
    while kind in _SKIPPED:
        kind, start = octets[start], start + (octets[start + 1] + 1) * 8
    if kind != _TCP:
        return None
    return _tcp(at, octets[8:24], octets[24:40], octets[start : 40 + size if size else len(octets)])


def _tcp(at: float, source: bytes, target: bytes, octets: bytes) -> _Segment:
    source_port, target_port, sequence = unpack_from(">HHI", octets)
    data = octets[(octets[12] >> 4) * 4 :]
    return _Segment(at, (source, source_port), (target, target_port), sequence, octets[13], data)
