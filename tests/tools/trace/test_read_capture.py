"""Captures of any kind are read, and files that are broken or none say why."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import empty_frame
from tests.places import ROOT
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.tools.trace.frame_log import FORMAT, entries_of
from trio_amqp10.tools.trace.frame_text import describe
from trio_amqp10.tools.trace.pcap import Packet, is_pcap, read_packets
from trio_amqp10.tools.trace.read_capture import read_capture

from .captures import CLIENT, SERVER, THERE, pcap, pcapng, segment, talk, written

if TYPE_CHECKING:
    from pathlib import Path

CORPUS = sorted((ROOT / "tests/corpus").glob("*.hex"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (pcap([]), "this capture has no AMQP: none of its 0 TCP"),
        (pcap([segment(CLIENT, SERVER, 1, b"GET / HTTP")]), "none of its 1 TCP conversations"),
        (pcap(talk(), link=147), "link layer 147"),
        (b"\xd4\xc3\xb2\xa1", "this capture is damaged"),
        (pcapng([])[:28] + struct.pack("<III", 1, 4, 0), "the block at 28 has 4 octets"),
        (pcapng([])[:28] + pcapng(talk())[28 + 20 :], "this capture is damaged"),
        (b'{"format": "other"}', "the file is not a frame log"),
        (b"{nothing", "line 1 of the frame log is not JSON"),
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
