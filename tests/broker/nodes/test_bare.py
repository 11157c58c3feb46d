"""The bare message comes out of every node as it went in, to the octet, whatever changes around it (3.2)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.testing import open_container

HEADERS = [
    b"",
    encode(amqp.Described(amqp.ULong(0x70), [True, amqp.UByte(7), amqp.UInt(60_000), True, amqp.UInt(2)])),
]
DELIVERY_ANNOTATIONS = [b"", encode(amqp.Described(amqp.ULong(0x71), {amqp.Symbol("hop"): 1}))]
ANNOTATIONS = [b"", encode(amqp.Described(amqp.ULong(0x72), {amqp.Symbol("x-note"): "mine"}))]
FOOTERS = [b"", encode(amqp.Described(amqp.ULong(0x78), {amqp.Symbol("x-sum"): b"\x01"}))]


def octets(text: str) -> bytes:
    return bytes.fromhex(text)


def sized(kind: str, code: str, count: int, items: str, *, wide: bool) -> str:
    """A list or map by hand, with its size counted."""
    size = len(octets(items))
    if wide:
        return f"{kind} {code} {size + 4:08x} {count:08x} {items}"
    return f"{kind} {code} {size + 1:02x} {count:02x} {items}"


def properties(descriptor: str, *, wide: bool) -> str:
    return sized(descriptor, "d0" if wide else "c0", 4, "40 40 a1 01 71 b1 00 00 00 01 39", wide=wide)


DESCRIPTORS = [
    "00 53 73",
    "00 80 00 00 00 00 00 00 00 73",
    "00 a3 14 " + b"amqp:properties:list".hex(),
]
bare_messages = st.tuples(
    st.sampled_from(["", *(properties(each, wide=wide) for each in DESCRIPTORS for wide in (False, True))]),
    st.sampled_from(
        [
            "",
            *(
                sized("00 53 74", "d1" if wide else "c1", 2, "b1 00 00 00 01 6b 55 01", wide=wide)
                for wide in (False, True)
            ),
        ]
    ),
    st.sampled_from(
        [
            "00 53 75 a0 01 61",
            "00 53 75 b0 00 00 00 01 61 00 53 75 a0 00",
            "00 53 77 80 00 00 00 00 00 00 00 01",
            sized("00 53 77", "d1", 0, "", wide=True),
            sized("00 53 76", "d0", 1, "45", wide=True),
            sized("00 53 77", "c1", 2, "56 01 f0 00 00 00 05 00 00 00 00 40", wide=False),
        ]
    ),
).map(lambda parts: octets("".join(parts)))
around = st.tuples(*map(st.sampled_from, (HEADERS, DELIVERY_ANNOTATIONS, ANNOTATIONS, FOOTERS)))


def whole(bare: bytes, parts: tuple[bytes, ...]) -> bytes:
    *before, footer = parts
    return b"".join(before) + bare + footer


@given(bare=bare_messages, parts=around)
def test_bare_is_what_came_between_the_annotations_and_the_footer(bare: bytes, parts: Any) -> None:
    message = amqp.Message.from_payload(whole(bare, parts))
    assert message.bare == bare
    message.delivery_count = 5
    message.annotations = {"x-other": 1}
    message.delivery_annotations = {}
    message.footer = {"x-seal": b"\x02"}
    assert message.bare == bare
    assert bare in message.to_payload()


async def through(payload: bytes, into: str | None, out: str, *, copy: bool = False) -> list[bytes]:
    """What comes out of a container, twice where it is given back in between."""
    async with open_container(queues=["q"]) as container, container.connect() as conn:
        container.add_topic("t")
        source = amqp.Source(address=out, distribution_mode="copy" if copy else "move")
        async with conn.open_receiver(out, source=source) as receiver, conn.open_sender(into) as sender:
            await sender.send(amqp.Message.from_payload(payload))
            first = await receiver.receive()
            found = [first.message]
            if not copy and out == "q":
                first.modify(delivery_failed=True, annotations={"x-tried": True})
                again = await receiver.receive()
                found.append(again.message)
                assert again.message.delivery_count == first.message.delivery_count + 1
                assert again.message.annotations["x-tried"] is True
                again.accept()
            return [message.bare for message in found]


@pytest.mark.parametrize(
    ("into", "out", "copy", "times"), [("q", "q", False, 2), ("t", "t", False, 1), ("q", "q", True, 1)]
)
@settings(max_examples=25)
@given(bare=bare_messages, parts=around)
def test_bare_message_leaves_a_node_as_it_came(
    into: str, out: str, copy: bool, times: int, bare: bytes, parts: Any
) -> None:
    async def run() -> list[bytes]:
        return await through(whole(bare, parts), into, out, copy=copy)

    assert trio.run(run) == [bare] * times


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
@pytest.mark.parametrize("wide", [False, True])
async def test_bare_message_leaves_the_relay_as_it_came(descriptor: str, wide: bool) -> None:
    bare = octets(properties(descriptor, wide=wide) + "00 53 75 b0 00 00 00 01 61")
    assert (
        await through(whole(bare, (HEADERS[1], DELIVERY_ANNOTATIONS[1], b"", FOOTERS[1])), None, "q")
        == [bare] * 2
    )
