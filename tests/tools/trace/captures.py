"""Captures made by hand: Ethernet, IP and TCP as their standards draw them, without checksums."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from tests.naive.performatives import frame, header

if TYPE_CHECKING:
    from trio_amqp10.tools.trace.frame_log import Record


NULL, ETHERNET, RAW, SLL, SLL2 = 0, 1, 101, 113, 276
SYN, ACK = 2, 16


class End(NamedTuple):
    """One end of a TCP conversation."""

    host: bytes
    port: int


def _tcp(source: End, target: End, sequence: int, data: bytes, flags: int) -> bytes:
    header = struct.pack(">HHIIBBHHH", source.port, target.port, sequence, 0, 6 << 4, flags, 1024, 0, 0)
    return header + bytes(4) + data  # with four octets of options


def segment(source: End, target: End, sequence: int, data: bytes = b"", flags: int = ACK) -> bytes:
    """An IPv4 packet."""
    inner = _tcp(source, target, sequence, data, flags)
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0x4000, 64, 6, 0)
    return header + source.host + target.host + inner


def ipv6(source: End, target: End, sequence: int, data: bytes, *, extended: bool = False) -> bytes:
    """An IPv6 packet, with options for the destination in between if ``extended``."""
    inner = _tcp(source, target, sequence, data, ACK)
    if extended:
        inner = b"\x06\x00" + bytes(6) + inner
    return (
        struct.pack(">IHBB", 0x60000000, len(inner), 60 if extended else 6, 64)
        + source.host
        + target.host
        + inner
    )


def framed(link: int, packet: bytes, *, vlan: bool = False) -> bytes:
    """A packet in a frame of its link layer."""
    kind = b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"
    if link == ETHERNET:
        return bytes(12) + (b"\x81\x00\x00\x05" if vlan else b"") + kind + packet
    if link == SLL:
        return bytes(14) + kind + packet
    if link == SLL2:
        return kind + bytes(18) + packet
    return bytes(4) + packet if link == NULL else packet


def pcap(packets: list[bytes], *, link: int = ETHERNET, order: str = "<", nanoseconds: bool = False) -> bytes:
    """A file of the old format; the packets are a millisecond apart."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    unit = 1_000_000 if nanoseconds else 1_000
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link)]
    for number, packet in enumerate(packets):
        octets = framed(link, packet)
        parts += [struct.pack(f"{order}IIII", 1000, number * unit, len(octets), len(octets)), octets]
    return b"".join(parts)


def pcapng(
    packets: list[bytes], *, link: int = ETHERNET, order: str = "<", options: bytes = b"", tick: int = 10**6
) -> bytes:
    """A file of the new format, with a block that nobody knows; the packets are a millisecond apart."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = 12 + len(body)
        return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)

    parts = [
        block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(f"{order}HHI", link, 0, 65535) + options),
        block(0x0BAD, b"abc"),
    ]
    for number, packet in enumerate(packets):
        octets = framed(link, packet)
        when = number * tick // 1000
        head = struct.pack(f"{order}IIIII", 0, when >> 32, when & 0xFFFFFFFF, len(octets), len(octets))
        parts.append(block(6, head + octets))
    return b"".join(parts)


CLIENT = End(bytes((10, 0, 0, 1)), 40000)


SERVER = End(bytes((10, 0, 0, 2)), 5672)


SIX = End(bytes(15) + b"\1", 40000), End(bytes(15) + b"\2", 5672)


THERE = header() + frame("open", container_id="client") + frame("close")


BACK = header() + frame("open", container_id="server") + frame("close")


def talk(client: End = CLIENT, start: int = 100) -> list[bytes]:
    """A whole conversation, packet by packet."""
    return [
        segment(client, SERVER, start, flags=SYN),
        segment(SERVER, client, 7, flags=SYN | ACK),
        segment(client, SERVER, start + 1),
        segment(client, SERVER, start + 1, THERE[:20]),
        segment(SERVER, client, 8, BACK),
        segment(client, SERVER, start + 21, THERE[20:]),
    ]


def written(records: list[Record], way: str, conversation: int = 1) -> bytes:
    return b"".join(r.octets for r in records if r.way == way and r.conversation == conversation)
