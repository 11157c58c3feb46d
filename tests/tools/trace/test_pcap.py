"""Captures of a network in every file format and link layer."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from trio_amqp10.tools.trace.pcap import Packet
from trio_amqp10.tools.trace.read_capture import read_capture
from trio_amqp10.tools.trace.tcp_reassembly import conversations

from .captures import (
    BACK,
    CLIENT,
    ETHERNET,
    NULL,
    RAW,
    SERVER,
    SIX,
    SLL,
    SLL2,
    THERE,
    framed,
    ipv6,
    pcap,
    pcapng,
    segment,
    talk,
    written,
)


@pytest.mark.parametrize("link", [NULL, ETHERNET, RAW, SLL, SLL2])
@pytest.mark.parametrize(
    "make",
    [
        lambda packets, **options: pcap(packets, **options),
        lambda packets, **options: pcap(packets, order=">", nanoseconds=True, **options),
        lambda packets, **options: pcapng(packets, **options),
        lambda packets, **options: pcapng(packets, order=">", **options),
    ],
    ids=["pcap", "pcap-big-endian-ns", "pcapng", "pcapng-big-endian"],
)
def test_capture_is_read_whatever_its_format_and_link_layer(make: Any, link: int) -> None:
    capture = read_capture(make(talk(), link=link))
    assert written(capture.records, ">") == THERE
    assert written(capture.records, "<") == BACK
    assert [record.at for record in capture.records] == pytest.approx([0.0, 0.001, 0.002], abs=1e-6)
    assert capture.notes == ["conversation 1: 10.0.0.1:40000 -> 10.0.0.2:5672"]


@pytest.mark.parametrize(
    ("options", "tick"),
    [
        (struct.pack("<HHB3x", 9, 1, 9), 10**9),
        (struct.pack("<HH4s", 1, 3, b"abc") + struct.pack("<HHB3x", 9, 1, 0x80 | 10), 1024),
        (struct.pack("<HH", 0, 0), 10**6),
    ],
    ids=["nanoseconds", "a power of two", "none"],
)
def test_pcapng_says_how_long_its_ticks_are(options: bytes, tick: int) -> None:
    packets = [packet for packet in talk()[3:5] for _ in range(500)]
    capture = read_capture(pcapng(packets, options=options, tick=tick))
    assert capture.records[-1].at == pytest.approx(0.5, abs=0.01)


def test_packets_of_other_kinds_are_left_out() -> None:
    tagged = framed(ETHERNET, talk()[3], vlan=True)
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    data = pcap([])
    for octets in (arp, tagged):
        data += struct.pack("<IIII", 0, 0, len(octets), len(octets)) + octets
    data += b"\0" * 7  # cut off in the header of the next
    assert written(read_capture(data).records, ">") == THERE[:20]
    data += struct.pack("<9xIIII", 0, 0, 100, 100) + bytes(3)
    udp = segment(CLIENT, SERVER, 1, THERE)
    udp = udp[:9] + b"\x11" + udp[10:]
    fragment = segment(CLIENT, SERVER, 1, THERE)
    fragment = fragment[:6] + b"\x00\x10" + fragment[8:]
    udp6 = ipv6(*SIX, 1, THERE)
    udp6 = udp6[:6] + b"\x11" + udp6[7:]
    packets = [udp, fragment, udp6, b"\x45", b"\x60\0", b""]
    assert conversations(Packet(0.0, packet) for packet in packets).records == []
