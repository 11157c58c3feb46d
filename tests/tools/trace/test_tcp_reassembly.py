"""TCP is put together as it comes in bad weather."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.tools.trace.pcap import Packet
from trio_amqp10.tools.trace.tcp_reassembly import conversations

from .captures import BACK, CLIENT, SERVER, SIX, SYN, THERE, End, ipv6, segment, talk, written

if TYPE_CHECKING:
    from random import Random


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
    assert (
        found.notes[1] == "conversation 1: the capture missed octets; the 1 segments after them are left out"
    )


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
