"""Read the IP packets of network captures, pcap and pcapng.

Knows the two file formats and the link layers that carry AMQP; knows nothing of TCP.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import error as StructError  # noqa: N812 - the exception's own name is error
from struct import unpack_from
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"

_NULL, _ETHERNET, _LOOP, _SLL, _SLL2 = 0, 1, 108, 113, 276
_RAW: Final = (12, 14, 101, 228, 229)
_IPV4, _IPV6, _VLANS = 0x0800, 0x86DD, (0x8100, 0x88A8)


@dataclass(frozen=True, slots=True)
class Packet:
    """An IP packet, and its time in seconds since 1970."""

    at: float
    octets: bytes


def is_pcap(data: bytes) -> bool:
    """Whether a file begins like a capture."""
    return data[:4] in _PCAP or data[:4] == _PCAPNG


def read_packets(data: bytes) -> Iterator[Packet]:
    """Read the IP packets of a capture.

    Other packets are skipped, and a packet that is cut off by the end of the file too.

    Raises:
        LocalProtocolError: the file is damaged.
    """
    try:
        for at, link, octets in _pcapng(data) if data[:4] == _PCAPNG else _pcap(data):
            packet = _ip(link, octets)
            if packet:
                yield Packet(at, packet)
    except (StructError, IndexError) as fault:
        raise LocalProtocolError(f"this capture is damaged: {fault}") from None


def _pcap(data: bytes) -> Iterator[tuple[float, int, bytes]]:
    order, unit = _PCAP[data[:4]]
    (link,) = unpack_from(f"{order}I", data, 20)
    pos = 24
    while pos + 16 <= len(data):
        seconds, fraction, size, _ = unpack_from(f"{order}IIII", data, pos)
        pos += 16
        yield seconds + fraction * unit, link & 0xFFFF, data[pos : pos + size]
        pos += size


def _pcapng(data: bytes) -> Iterator[tuple[float, int, bytes]]:
    order, pos = "<", 0
    interfaces: list[tuple[int, float]] = []  # the link layer of each interface, and the seconds of a tick
    while pos + 12 <= len(data):
        if data[pos : pos + 4] == _PCAPNG:
            order = "<" if data[pos + 8 : pos + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces.clear()
        kind, size = unpack_from(f"{order}II", data, pos)
        if size < 12:
            raise LocalProtocolError(
                f"this capture is damaged: the block at {pos} has {size} octets, less than its own header"
            )
        body = data[pos + 8 : pos + size - 4]
        if kind == 1:
            (layer,) = unpack_from(f"{order}H", body)
            interfaces.append((int(layer), _tick(body, order)))
        elif kind == 6 and len(body) >= 20:
            number, high, low, kept = unpack_from(f"{order}IIII", body)
            link, tick = interfaces[int(number)]
            yield ((high << 32) | low) * tick, link, body[20 : 20 + kept]
        pos += size


def _tick(body: bytes, order: str) -> float:
    """Return the seconds of a tick, from the option ``if_tsresol`` or 1e-6 by default."""
    pos = 8
    while pos + 4 <= len(body):
        code, size = unpack_from(f"{order}HH", body, pos)
        if code == 9:
            power = body[pos + 4]
            return 2.0 ** -(power & 0x7F) if power & 0x80 else 10.0**-power
        pos += 4 + (size + 3) // 4 * 4
    return 1e-6


def _ip(link: int, octets: bytes) -> bytes | None:
    """Return the IP packet in a frame of the link layer, or None if there is none."""
    if link in _RAW:
        return octets
    if link in (_NULL, _LOOP):
        return octets[4:]
    at = {_ETHERNET: 12, _SLL: 14, _SLL2: 0}.get(link)
    if at is None:
        raise LocalProtocolError(
            f"link layer {link} is not supported: capture on Ethernet, loopback or raw IP"
        )
    start = {_ETHERNET: 14, _SLL: 16, _SLL2: 20}[link]
    kind = int.from_bytes(octets[at : at + 2], "big")
    while kind in _VLANS:
        kind = int.from_bytes(octets[start + 2 : start + 4], "big")
        start += 4
    return octets[start:] if kind in (_IPV4, _IPV6) else None
