"""Captures of a network: every file format and link layer, TCP as it comes in bad weather, and files that are broken."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import empty_frame, frame, header
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.trace.frame_log import FORMAT, Record, entries_of
from trio_amqp10.trace.frame_text import describe
from trio_amqp10.trace.pcap import Packet, is_pcap, read_packets
from trio_amqp10.trace.read_capture import read_capture
from trio_amqp10.trace.tcp_reassembly import conversations

from .captures import ACK, ETHERNET, NULL, RAW, SLL, SLL2, SYN, End, framed, ipv6, pcap, pcapng, segment

if TYPE_CHECKING:
    from random import Random

CLIENT = End(bytes((10, 0, 0, 1)), 40000)
SERVER = End(bytes((10, 0, 0, 2)), 5672)
SIX = End(bytes(15) + b"\1", 40000), End(bytes(15) + b"\2", 5672)

CORPUS = sorted((Path(__file__).resolve().parents[1] / "corpus").glob("*.hex"))
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


@pytest.mark.parametrize("extended", [False, True])
def test_ipv6_is_read(extended: bool) -> None:
    found = conversations([Packet(0.0, ipv6(*SIX, 1, THERE, extended=extended))])
    assert written(found.records, ">") == THERE
    one, two = (f"[0000:0000:0000:0000:0000:0000:0000:000{last}]" for last in (1, 2))
    assert found.notes == [f"conversation 1: {one}:40000 -> {two}:5672"]


def test_packet_without_its_length_is_read_to_its_end() -> None:
    """Where the network card cuts packets up, what is captured has a length of 0."""
    four = segment(CLIENT, SERVER, 1, THERE)
    six = ipv6(*SIX, 1, THERE)
    found = conversations(
        [Packet(0.0, four[:2] + b"\0\0" + four[4:]), Packet(0.0, six[:4] + b"\0\0" + six[6:])]
    )
    assert written(found.records, ">", 1) == written(found.records, ">", 2) == THERE


@given(st.integers(0, 2**32 - 1), st.randoms(use_true_random=False))
def test_tcp_is_put_together_however_it_comes(start: int, random: Random) -> None:
    """In pieces that overlap, twice, out of order, and over the end of the sequence numbers."""
    edges = sorted({0, len(THERE), *(random.randrange(len(THERE)) for _ in range(6))})
    pieces = [
        (low, THERE[low : min(len(THERE), high + random.randrange(5))]) for low, high in pairwise(edges)
    ]
    pieces += random.sample(pieces, 2) if len(pieces) > 1 else []
    random.shuffle(pieces)
    packets = [segment(CLIENT, SERVER, start, flags=SYN)]
    packets += [segment(CLIENT, SERVER, (start + 1 + pos) % 2**32, data) for pos, data in pieces]
    found = conversations(Packet(float(n), packet) for n, packet in enumerate(packets))
    assert written(found.records, ">") == THERE


def test_missing_octets_are_said() -> None:
    packets = [packet for number, packet in enumerate(talk()) if number != 3]
    found = conversations(Packet(0.0, packet) for packet in packets)
    assert written(found.records, ">") == b""
    assert written(found.records, "<") == BACK
    assert found.notes[1] == "conversation 1: the capture missed octets; 1 segments behind them are left out"


def test_capture_may_begin_with_the_answer_or_without_a_handshake() -> None:
    late = conversations(Packet(0.0, packet) for packet in talk()[1:])
    assert written(late.records, ">") == THERE
    later = conversations(Packet(0.0, packet) for packet in talk()[2:])
    assert written(later.records, "<") == BACK


def test_conversations_are_told_apart_and_others_are_counted() -> None:
    http = [segment(End(CLIENT.host, 50000), SERVER, 1, b"GET / HTTP/1.1")]
    second = talk(End(CLIENT.host, 40001))
    again = talk(start=9000)
    found = conversations(Packet(float(n), packet) for n, packet in enumerate(talk() + http + second + again))
    assert found.others == 1
    assert [written(found.records, ">", number) for number in (1, 2, 3)] == [THERE] * 3
    assert [written(found.records, "<", number) for number in (1, 2, 3)] == [BACK] * 3


def test_end_that_talks_to_itself_has_one_direction() -> None:
    found = conversations([Packet(0.0, segment(CLIENT, CLIENT, 1, THERE))])
    assert found.notes == ["conversation 1: 10.0.0.1:40000 -> itself"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (pcap([]), "no AMQP in this capture: of 0 TCP"),
        (pcap([segment(CLIENT, SERVER, 1, b"GET / HTTP")]), "of 1 TCP conversations none"),
        (pcap(talk(), link=147), "link layer 147"),
        (b"\xd4\xc3\xb2\xa1", "this capture is broken"),
        (pcapng([])[:28] + struct.pack("<III", 1, 4, 0), "a block of 4 octets at 28"),
        (pcapng([])[:28] + pcapng(talk())[28 + 20 :], "this capture is broken"),
        (b'{"format": "other"}', "this is no frame log"),
        (b"{nothing", "line 1 of the frame log is no JSON"),
    ],
    ids=range(10),
)
def test_file_without_a_conversation_says_why(data: bytes, says: str) -> None:
    with pytest.raises(LocalProtocolError, match=says):
        read_capture(data)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_broken_capture_is_a_local_error_or_less(noise: bytes, at: int) -> None:
    for whole in (pcap(talk()), pcapng(talk())):
        broken = whole[:at] + noise + whole[at + len(noise) :]
        if is_pcap(broken):
            with suppress(LocalProtocolError):
                assert all(isinstance(packet, Packet) for packet in read_packets(broken))


@pytest.mark.parametrize(
    "data",
    [
        THERE,
        THERE.hex().encode(),
        THERE.hex(" ").upper().encode(),
        b"# a story\n" + THERE.hex(":", 16).encode() + b"  # the end\n\n",
        " ".join(f"0x{octet:02x}" for octet in THERE).encode(),
        b'{"format": "%s", "version": 1}\n\n{"way": ">", "octets": "%s"}'
        % (FORMAT.encode(), THERE.hex().encode()),
    ],
    ids=["raw", "hex", "spaced", "story", "0x", "log"],
)
def test_octets_are_read_however_they_are_written(data: bytes) -> None:
    capture = read_capture(data)
    assert written(capture.records, ">") == THERE
    assert capture.notes == []
    assert [entry.piece.name for entry in entries_of(capture.records)] == ["header", "Open", "Close"]


def test_octets_that_only_look_like_hex_are_raw() -> None:
    assert written(read_capture(b"abc").records, ">") == b"abc"
    assert written(read_capture(empty_frame()).records, ">") == empty_frame()


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_file_of_the_corpus_can_be_shown(file: Path) -> None:
    """What broke an engine once breaks nobody who looks at it."""
    entries = entries_of(read_capture(file.read_bytes()).records)
    assert entries
    assert all(describe(entry.piece) for entry in entries)
