"""The oracle itself, against octets written by hand from the text of the standard."""

# pyright: reportUnusedExpression=false
# ``script << octets >> expected(...)`` is a statement here.

from __future__ import annotations

import struct
import uuid
from collections import deque
from typing import Any

import pytest
import trio
import trio.testing

from .codec import (
    NaiveError,
    Typed,
    array,
    compound,
    decode,
    decode_all,
    described,
    encode,
    listing,
    mapping,
    null,
)
from .peer import ScriptedPeer
from .performatives import (
    COMPOSITES,
    composite,
    empty_frame,
    frame,
    header,
    next_frame,
    parse_frames,
    parse_sections,
    raw_frame,
    sections,
    typed,
)
from .script import Script, expected, header_expected

UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

# Section 1.6, one line for each encoding of the table; the constructor first, then the body.
VECTORS = [
    (Typed("null", None, 0x40), "40"),
    (Typed("boolean", True, 0x41), "41"),
    (Typed("boolean", False, 0x42), "42"),
    (Typed("boolean", True, 0x56), "56 01"),
    (Typed("boolean", False, 0x56), "56 00"),
    (Typed("ubyte", 255, 0x50), "50 ff"),
    (Typed("ushort", 258, 0x60), "60 0102"),
    (Typed("uint", 16909060, 0x70), "70 01020304"),
    (Typed("uint", 7, 0x52), "52 07"),
    (Typed("uint", 0, 0x43), "43"),
    (Typed("ulong", 2**64 - 1, 0x80), "80 ffffffffffffffff"),
    (Typed("ulong", 16, 0x53), "53 10"),
    (Typed("ulong", 0, 0x44), "44"),
    (Typed("byte", -2, 0x51), "51 fe"),
    (Typed("short", -2, 0x61), "61 fffe"),
    (Typed("int", -2, 0x71), "71 fffffffe"),
    (Typed("int", -2, 0x54), "54 fe"),
    (Typed("long", -2, 0x81), "81 fffffffffffffffe"),
    (Typed("long", -2, 0x55), "55 fe"),
    (Typed("float", 1.5, 0x72), "72 3fc00000"),
    (Typed("double", 1.5, 0x82), "82 3ff8000000000000"),
    (Typed("decimal32", bytes(4), 0x74), "74 00000000"),
    (Typed("decimal64", bytes(8), 0x84), "84 0000000000000000"),
    (Typed("decimal128", bytes(16), 0x94), "94" + "00" * 16),
    (Typed("char", "\N{SNOWMAN}", 0x73), "73 00002603"),
    (Typed("timestamp", 1311704463521, 0x83), "83 0000013167adb8a1"),
    (Typed("uuid", UUID, 0x98), "98 00112233445566778899aabbccddeeff"),
    (Typed("binary", b"\x00\xff", 0xA0), "a0 02 00ff"),
    (Typed("binary", b"\x00\xff", 0xB0), "b0 00000002 00ff"),
    (Typed("string", "\u00fc", 0xA1), "a1 02 c3bc"),
    (Typed("string", "\u00fc", 0xB1), "b1 00000002 c3bc"),
    (Typed("symbol", "ab", 0xA3), "a3 02 6162"),
    (Typed("symbol", "ab", 0xB3), "b3 00000002 6162"),
    (listing(code=0x45), "45"),
    (listing(null, Typed("uint", 1), code=0xC0), "c0 04 02 40 5201"),
    (listing(null, Typed("uint", 1), code=0xD0), "d0 00000007 00000002 40 5201"),
    (mapping((Typed("symbol", "a"), null), code=0xC1), "c1 05 02 a30161 40"),
    (mapping((Typed("symbol", "a"), null), code=0xD1), "d1 00000008 00000002 a30161 40"),
    (array(0xA3, Typed("symbol", "a"), Typed("symbol", "b"), code=0xE0), "e0 06 02 a3 0161 0162"),
    (array(0xA3, Typed("symbol", "a"), code=0xF0), "f0 00000007 00000001 a3 0161"),
    (array(0x45, listing(), listing(), code=0xE0), "e0 02 02 45"),
    (
        array(0x52, Typed("uint", 9), descriptor=Typed("symbol", "x"), code=0xE0),
        "e0 07 01 00 a30178 52 09",
    ),
    (described(Typed("ulong", 0x24), listing()), "00 5324 45"),
]


@pytest.mark.parametrize(("value", "octets"), VECTORS, ids=lambda v: v if isinstance(v, str) else "")
def test_codec_agrees_with_hand_written_octets(value: Typed, octets: str) -> None:
    data = bytes.fromhex(octets)
    assert encode(value) == data
    assert decode(data + b"rest") == (value, b"rest")
    assert encode(decode(data)[0]) == data


def test_codec_takes_the_shortest_encoding_when_none_is_named() -> None:
    shortest = [
        (Typed("uint", 0), "43"),
        (Typed("uint", 256), "7000000100"),
        (Typed("ulong", 255), "53ff"),
        (Typed("long", -129), "81ffffffffffffff7f"),
        (Typed("boolean", False), "42"),
        (Typed("binary", bytes(256)), "b000000100" + "00" * 256),
        (listing(), "45"),
        (listing(Typed("binary", bytes(256))), "d000000109 00000001 b000000100" + "00" * 256),
    ]
    for value, octets in shortest:
        assert encode(value) == bytes.fromhex(octets)


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "00",
        "a1 02 61",
        "a1 01 ff",
        "a3 01 ff",
        "56 02",
        "73 00110000",
        "c1 03 01 4040",
        "c0 03 02 40",
        "e0 04 01 52 01 01",
        "ff",
    ],
)
def test_decode_refuses_octets_that_are_no_value(octets: str) -> None:
    with pytest.raises(NaiveError):
        decode(bytes.fromhex(octets))


def test_encode_refuses_a_value_that_no_encoding_takes() -> None:
    for bad in (Typed("ubyte", 256), Typed("uint", -1), Typed("uint", 1, 0x43), Typed("uint", 1, 0xFF)):
        with pytest.raises((NaiveError, struct.error)):
            encode(bad)


def test_compound_writes_a_count_that_lies() -> None:
    assert compound(0xC0, 9, b"\x40") == bytes.fromhex("c0020940")
    assert decode_all(b"\x40\x41") == [null, Typed("boolean", True)]


def test_table_has_33_composites_with_the_descriptors_of_the_standard() -> None:
    assert len(COMPOSITES) == 33
    assert {row.symbol for row in COMPOSITES.values()} == {f"amqp:{name}:list" for name in COMPOSITES}
    codes = {name: row.code for name, row in COMPOSITES.items()}
    assert [codes[n] for n in ("open", "close", "error", "received", "source", "coordinator")] == [
        16,
        24,
        29,
        35,
        40,
        48,
    ]
    assert sum(len(row.fields) for row in COMPOSITES.values()) == 125


def test_frame_writes_the_octets_of_an_open() -> None:
    octets = frame("open", container_id="me", channel_max=3)
    assert octets == bytes.fromhex("00000017 02 00 0000 00 5310 c0 0a 04 a1026d65 40 40 600003")
    (got,) = parse_frames(octets)
    assert (got.type, got.channel, got.name) == (0, 0, "open")
    assert got.fields == {"container_id": "me", "channel_max": 3}
    assert got["hostname"] is None
    with pytest.raises(KeyError):
        got["handle"]


def test_frame_writes_a_sasl_frame_with_a_multiple_field() -> None:
    octets = frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN", "X"])
    assert octets == bytes.fromhex("0000001a 02 01 0000 00 5340 c0 0d 01 e0 0a 02 a3 05504c41494e 0158")
    (got,) = parse_frames(octets)
    assert (got.type, got.name) == (1, "sasl-mechanisms")
    assert got["sasl_server_mechanisms"] == ["PLAIN", "X"]
    (single,) = parse_frames(frame("sasl-mechanisms", sasl_server_mechanisms="PLAIN"))
    assert single["sasl_server_mechanisms"] == ["PLAIN"]


def test_frame_writes_nested_composites_and_odd_encodings() -> None:
    plain = frame(
        "attach",
        name="x",
        handle=0,
        role=True,
        source=("source", {"address": "q", "filter": {"f": (7, "s")}}),
    )
    odd = frame(
        "attach", name="x", handle=Typed("uint", 0, 0x70), role=True, symbolic=True, list_code=0xD0, pad=True, doff=3,
        source=composite("source", {"address": "q", "filter": {"f": (7, "s")}}, symbolic=True),
    )  # fmt: skip
    assert len(odd) > len(plain)
    (a,), (b,) = parse_frames(plain), parse_frames(odd)
    assert a == b
    assert a["source"] == ("source", {"address": "q", "filter": {"f": (7, "s")}})
    with pytest.raises(NaiveError):
        frame("attach", nmae="x")


def test_parse_frames_checks_the_types_of_fields() -> None:
    with pytest.raises(NaiveError, match=r"attach\.handle is uint"):
        parse_frames(frame("attach", handle=Typed("ulong", 0)))
    with pytest.raises(NaiveError, match="end has 1 fields"):
        parse_frames(raw_frame(encode(described(Typed("ulong", 0x17), listing(null, null)))))


def test_parse_frames_recognises_headers_empty_frames_and_payloads() -> None:
    payload = sections(("header", {"durable": True}), ("application-properties", {"k": 1}), ("data", b"xy"))
    octets = (
        header("sasl")
        + header("amqp")
        + empty_frame()
        + frame("transfer", handle=0, delivery_tag=b"t", payload=payload)
    )
    sasl, amqp, empty, transfer = parse_frames(octets)
    assert (sasl["id"], amqp["id"], empty.name) == (3, 0, "empty")
    assert transfer.payload == payload
    assert parse_sections(payload) == [
        ("header", {"durable": True}),
        ("application-properties", {"k": 1}),
        ("data", b"xy"),
    ]
    assert next_frame(octets[:7]) is None
    with pytest.raises(NaiveError):
        parse_frames(octets[:-1])
    with pytest.raises(NaiveError):
        parse_frames(bytes.fromhex("00000007 02000000"))


def test_sections_write_a_message_of_hand_written_octets() -> None:
    octets = sections(("properties", {"message_id": 5, "to": "q"}), ("amqp-value", "hi"))
    assert octets == bytes.fromhex("00 5373 c0 07 03 5305 40 a10171 00 5377 a1026869")
    assert typed("id", "s") == Typed("string", "s")


class EchoEngine:
    """Answers an open with an open, everything else with itself; has a deadline once."""

    def __init__(self) -> None:
        self.out = b""
        self.events: deque[Any] = deque()
        self.deadline: float | None = 30.0
        self.partial = b""

    def receive_data(self, data: bytes, now: float) -> None:
        self.partial += data
        while (found := next_frame(self.partial)) is not None:
            got, self.partial = found
            self.events.append(got.name)
            self.out += frame("open", container_id="engine") if got.name == "open" else got.raw

    def receive_eof(self, now: float) -> None:
        self.events.append(("eof", now))

    def transport_lost(self) -> None:
        self.events.append("lost")

    def next_event(self) -> Any:
        return self.events.popleft() if self.events else None

    def has_output(self) -> bool:
        return True

    def data_to_send(self) -> bytes:
        out, self.out = self.out, b""
        return out

    def next_deadline(self) -> float | None:
        return self.deadline

    def handle_timer(self, now: float) -> None:
        self.deadline = None
        self.out += empty_frame()

    def take_touched(self) -> list[Any]:
        return []


def test_script_reads_as_a_two_way_transcript() -> None:
    script = Script(EchoEngine(), chunk=1)
    script << header() >> header_expected()
    script << frame("open", container_id="x") >> expected("open", container_id="engine", hostname=None)
    script.send(frame("begin", channel=1, next_outgoing_id=0), cuts=(3, 9))
    assert script.expect("begin", channel=1)["next_outgoing_id"] == 0
    script.expect_nothing()
    script.advance(31).expect("empty")
    assert script.now == 31
    script.eof().lose()
    assert script.events == ["protocol-header", "open", "begin", ("eof", 31.0), "lost"]
    assert script.expect_event(str) == "protocol-header"


def test_script_tells_what_differs_and_what_went_before() -> None:
    script = Script(EchoEngine())
    script.exchange_open()
    script << frame("attach", name="x", handle=3, role=False, source=("source", {"address": "a"}))
    with pytest.raises(AssertionError, match=r"handle: expected 4, got 3") as caught:
        script.expect("attach", handle=4, source=("source", {"address": "b"}))
    assert "source: expected" in str(caught.value)
    assert "<- open[0] container_id='engine'" in str(caught.value)
    with pytest.raises(AssertionError, match="nothing more was written"):
        script.expect("detach")
    script << frame("end")
    with pytest.raises(AssertionError, match="expected nothing more"):
        script.expect_nothing()


async def _peers() -> None:
    left, right = trio.testing.memory_stream_pair()
    a, b = ScriptedPeer(left), ScriptedPeer(right)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a.dial_open)
        got = await b.accept_open(max_frame_size=512)
    assert got["container_id"] == "peer"
    await a.send(empty_frame(), frame("begin", next_outgoing_id=1, incoming_window=1, outgoing_window=1))
    await b.accept_begin()
    await a.expect("begin", remote_channel=0)
    await a.send(frame("attach", name="l", handle=2, role=False, initial_delivery_count=9))
    await b.accept_attach(credit=10)
    await a.expect("attach", role=True, handle=2)
    await a.expect("flow", link_credit=10, delivery_count=9)
    await a.expect_nothing(1)
    with pytest.raises(AssertionError, match="expected detach, but after 30"):
        await a.expect("detach")
    await a.send(frame("end"), frame("close"))
    await b.accept_close()
    await a.expect("close", error=None)
    await b.aclose()
    await a.expect_eof()


async def _sasl() -> None:
    left, right = trio.testing.memory_stream_pair()
    a, b = ScriptedPeer(left), ScriptedPeer(right)
    await a.send(header("sasl"), frame("sasl-init", mechanism="ANONYMOUS"))
    await b.accept_anonymous()
    await a.expect_header("sasl")
    await a.expect("sasl-mechanisms", sasl_server_mechanisms=["ANONYMOUS"])
    await a.expect("sasl-outcome", code=0)


def test_scripted_peers_talk_to_each_other_over_a_stream() -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    trio.run(_peers, clock=clock)
    trio.run(_sasl)
