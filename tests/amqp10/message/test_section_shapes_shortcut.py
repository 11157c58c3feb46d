"""Learned shapes of sections: they read as the general reader, faults included."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp10.wire.strategies import same, scalars
from trio_amqp10.amqp10.message import Message, sections
from trio_amqp10.amqp10.message import readers_shortcut as usual_readers
from trio_amqp10.amqp10.message.header_and_properties_generated import read_properties
from trio_amqp10.amqp10.message.section_shapes_shortcut import MOST_MISSES, Learned, LearnedSpans
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Symbol, ULong

from .test_header_and_properties_generated import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Callable

READERS = {
    0x72: usual_readers.read_annotations,
    0x73: read_properties,
    0x74: usual_readers.read_application_properties,
}
read_spans = sections._read_usual_spans


class Counted:
    """A reader that counts its calls."""

    def __init__(self, code: int) -> None:
        self.read = READERS[code]
        self.calls = 0

    def __call__(self, buf: bytes, start: int, end: int) -> Any:
        self.calls += 1
        return self.read(buf, start, end)


def section(code: int, items: list[bytes], constructor: int = codes.MAP8) -> bytes:
    octets = b"".join(items)
    return bytes((0, 0x53, code, constructor, len(octets) + 1 & 255, len(items))) + octets


def listed(row: list[Any]) -> bytes:
    return section(0x73, [encode(each) for each in row], codes.LIST8)


def application_properties(**pairs: Any) -> bytes:
    return section(0x74, [encode(each) for pair in pairs.items() for each in pair])


def fed(learned: Learned, octets: bytes, read: Any) -> Any:
    """Read a section inside other octets; check that the general reader returns the same."""
    buf = b"--" + octets + b"--"
    values = learned.read(buf, 2, 2 + len(octets))
    assert same(values, read(buf, 2, 2 + len(octets)))
    if values is not None:
        values.clear()
    return values


sized = st.integers(0, 9).flatmap(
    lambda size: st.one_of(
        st.binary(min_size=size, max_size=size).map(lambda octets: b"\xa0" + bytes((size,)) + octets),
        st.text("ab", min_size=size, max_size=size).map(encode),
        st.text("ab", min_size=size, max_size=size).map(lambda text: encode(Symbol(text))),
        st.binary(min_size=size, max_size=size).map(lambda octets: b"\xa1" + bytes((size,)) + octets),
        st.sampled_from([b"\x41", b"\x42", b"\x56\x01", b"\x56\x02", b"\xb1\0\0\0\1a", b"\xb1\0\0\0\1b"]),
        scalars.map(encode),
    )
)


@st.composite
def alike(draw: st.DrawFn, code: int) -> list[bytes]:
    """Draw similar sections of one kind, some of them with one changed octet."""
    if code == 0x73:
        items = [draw(st.none() | each) for each in PROPERTIES[: draw(st.integers(0, 13))]]
        every = [items]
        for _ in range(draw(st.integers(2, 6))):
            other = list(items)
            for place in draw(st.sets(st.integers(0, 12), max_size=4)):
                if place < len(items) and items[place] is not None:
                    other[place] = draw(PROPERTIES[place])
            every.append(other)
        found = [section(code, [encode(each) for each in row], codes.LIST8) for row in every]
    else:
        keys = draw(st.lists(st.sampled_from("abc"), max_size=4))
        made = [encode(Symbol(key) if code == 0x72 else key) for key in keys]
        first = [draw(sized) for _ in made]
        found = []
        for _ in range(draw(st.integers(3, 7))):
            values = [draw(st.just(octets) | sized) for octets in first]
            found.append(section(code, [each for pair in zip(made, values, strict=True) for each in pair]))
    for place in draw(st.sets(st.integers(0, len(found) - 1), max_size=2)):
        changed = bytearray(draw(st.sampled_from(found)))
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
        found[place] = bytes(changed)
    return draw(st.permutations(found * 2))


@pytest.mark.parametrize("code", READERS)
@given(data=st.data())
def test_similar_sections_are_read_as_by_the_general_reader(code: int, data: st.DataObject) -> None:
    learned = Learned(READERS[code])
    for octets in data.draw(alike(code)):
        fed(learned, octets, READERS[code])


@given(data=st.data())
def test_section_of_a_learned_shape_with_other_octets_is_read_as_by_the_general_reader(
    data: st.DataObject,
) -> None:
    """The section has the learned size, so that the shape is tried."""
    makes: dict[int, Callable[[int], bytes]] = {
        0x73: lambda n: listed([ULong(n), None, "orders", None, None, f"c-{n}", Symbol("text/plain"), None]),
        0x74: lambda n: application_properties(n=n, b=n == 7_000, s=str(n), k="é"),
    }
    for code, make in makes.items():
        learned = Learned(READERS[code])
        for number in (7_000, 8_000):
            fed(learned, make(number), READERS[code])
        for _ in range(3):
            octets = bytearray(make(9_000))
            octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
            fed(learned, bytes(octets), READERS[code])


VALUES = [
    bytes.fromhex(octets)
    for octets in (
        "41",
        "42",
        "56 01",
        "50 05",
        "60 0005",
        "70 00000005",
        "52 05",
        "80 0000000000000005",
        "53 05",
        "51 05",
        "61 0005",
        "71 00000005",
        "54 05",
        "81 0000000000000005",
        "55 05",
        "72 00000005",
        "82 0000000000000005",
        "74 00000005",
        "84 0000000000000005",
        "94 00000000000000000000000000000005",
        "73 00000041",
        "83 0000000000000005",
        "98 00000000000000000000000000000005",
        "a0 02 0105",
        "a1 02 6162",
        "a3 02 6162",
    )
]


@pytest.mark.parametrize("octets", VALUES, ids=lambda octets: f"{octets[0]:#x}")
def test_section_in_which_one_value_differs_is_read_by_its_shape(octets: bytes) -> None:
    reader = Counted(0x74)
    learned = Learned(reader)
    last = {0x41: 0x42, 0x42: 0x41}.get(octets[-1], octets[-1] - 1) if octets[0] < 0x50 else octets[-1] - 1
    other = octets[:-1] + bytes((last,))
    fixed = [b"\xa1\1a", b"\xa1\1x", b"\xa1\1b"]
    for each in (octets, other):
        fed(learned, section(0x74, [*fixed, each]), reader.read)
    assert reader.calls == 2
    for each in (octets, other):
        fed(learned, section(0x74, [*fixed, each]), reader.read)
    assert reader.calls == 2


@pytest.mark.parametrize("count", range(6))
def test_section_in_which_up_to_three_values_differ_is_read_by_its_shape(count: int) -> None:
    reader = Counted(0x74)
    learned = Learned(reader)
    for number in range(5):
        pairs = {f"k{place}": number if place < count else -1 for place in range(5)}
        fed(learned, application_properties(**pairs), reader.read)
    assert reader.calls == (2 if count <= 3 else 5)


@pytest.mark.parametrize(
    "fault",
    [
        "a1 02 c328",  # not UTF-8
        "56 02",  # not a boolean
        "40",
        "a3 01 ff",
    ],
)
def test_fault_in_a_value_that_may_differ_is_raised_by_the_general_reader(fault: str) -> None:
    octets = bytes.fromhex(fault)
    good = {0xA1: (b"\xa1\2ab", b"\xa1\2cd"), 0x56: (b"\x56\0", b"\x56\1"), 0xA3: (b"\xa3\1a", b"\xa3\1b")}
    reader = Counted(0x74)
    learned = Learned(reader)
    for value in (*good.get(octets[0], (b"\x41", b"\x42")), octets):
        fed(learned, section(0x74, [b"\xa1\1k", value]), reader.read)
    assert reader.calls == 3


@pytest.mark.parametrize(
    "every",
    [
        [application_properties(**{key: 1}) for key in "abc"],
        [section(0x74, [b"\xa1\1k", b"\xb1\0\0\0\1" + text]) for text in (b"a", b"b", b"c")],
        [application_properties(k=text) for text in ("", "a", "ab")],
    ],
    ids=["keys", "long strings", "sizes"],
)
def test_section_of_another_shape_is_read_by_the_general_reader(every: list[bytes]) -> None:
    reader = Counted(0x74)
    learned = Learned(reader)
    for octets in every:
        fed(learned, octets, reader.read)
    assert reader.calls == 3


def test_section_that_no_shape_can_describe_is_not_learned() -> None:
    learned = Learned(read_properties)
    for _ in range(3):
        assert fed(learned, b"\0\x53\x73\x45", read_properties) is None


def test_shape_is_learned_again_when_sections_have_changed_for_a_while() -> None:
    reader = Counted(0x74)
    learned = Learned(reader)
    for subject in "aabbccdd":
        fed(learned, application_properties(subject=subject, n=1), reader.read)
    before = reader.calls
    for subject in "xyz" * 3:
        fed(learned, application_properties(subject=subject, n=1), reader.read)
    for subject in "pqr":
        fed(learned, application_properties(subject=subject, n=1), reader.read)
    assert reader.calls < before + 9

    for key in ("k", "l") * MOST_MISSES:
        fed(learned, application_properties(**{key * 7: key, "n": 1}), reader.read)
    calls = reader.calls
    for number in range(400):
        fed(learned, application_properties(another=str(number % 10), n=1), reader.read)
    assert reader.calls < calls + 200


def test_few_sections_are_tried_when_no_shape_fits() -> None:
    learned = Learned(read_properties)
    for number in range(1_000):
        octets = listed(["x" * (number % 200)])
        fed(learned, octets, read_properties)
    assert 20 < sum(misses for misses, _ in learned._met.values()) < 30


# Spans ----------------------------------------------------------------------------------------------


def found(learned: LearnedSpans, payload: bytes) -> Any:
    spans = learned.find(payload)
    assert spans == read_spans(payload)
    if spans is not None:
        spans.clear()
    return spans


payloads = st.builds(
    Message,
    st.binary(max_size=3) | st.text(max_size=3) | st.sampled_from([bytes(256), bytes(300), "t" * 300]),
    subject=st.none() | st.text("ab", max_size=3),
    durable=st.none() | st.booleans(),
    annotations=st.dictionaries(st.sampled_from("ab"), st.integers(0, 3)),
).map(Message.to_payload)


@given(every=st.lists(payloads, max_size=9), place=st.integers(0, 40), octet=st.integers(0, 255))
def test_spans_of_sections_equal_those_of_the_general_search(
    every: list[bytes], place: int, octet: int
) -> None:
    learned = LearnedSpans(read_spans)
    for payload in every * 2:
        found(learned, payload)
        found(learned, payload[:place] + bytes((octet,)) + payload[place + 1 :])
        found(learned, payload[:place])


def test_sections_at_learned_places_are_found_in_one_step() -> None:
    calls = 0

    def counted(payload: bytes) -> Any:
        nonlocal calls
        calls += 1
        return read_spans(payload)

    learned = LearnedSpans(counted)
    for number in range(9):
        found(learned, Message(bytes((number,)), subject=str(number)).to_payload())
    assert calls == 2
    for number in range(9):
        found(learned, Message(bytes((number,) * 2), subject="").to_payload())
    assert calls < 9
    for number in range(400):
        found(learned, Message(bytes(number % 200)).to_payload())
    assert len(learned._met) < 30
    found(learned, b"\0\x53\x75\xb0" + struct.pack(">I", 0))


@pytest.mark.parametrize("body", [bytes(256), "t" * 70_000])
def test_long_body_is_found_when_it_is_the_last_section(body: Any) -> None:
    learned = LearnedSpans(read_spans)
    payload = Message(body, subject="s", durable=True).to_payload()
    start = payload.index(encode(body))
    for _ in range(4):
        assert found(learned, payload) is not None
    assert learned.find(payload)[sections.BODY] == (start - 3, len(payload))  # type: ignore[index]
    for place in range(start, start + 5):  # the constructor, and each octet of the size
        changed = bytearray(payload)
        changed[place] ^= 0x10
        assert found(learned, bytes(changed)) is None
    assert found(learned, payload + b"\0") is None
    assert found(learned, Message(body, footer={"a": 1}).to_payload()) is None
    assert found(learned, payload[: start - 3] * 2 + payload[start - 3 :]) is None


def test_number_of_remembered_message_sizes_is_bounded() -> None:
    learned = LearnedSpans(read_spans)
    payload = Message(bytes(4_000), subject="s").to_payload()
    for size in range(3_000):
        learned._pause = 0
        for _ in range(2):
            found(learned, Message(bytes(300 + size), subject="s").to_payload())
        assert len(learned._met) <= 1_024
        assert len(learned._shapes) <= 1_024
    assert found(learned, payload) is not None
