"""What a script expects, and every difference from what came."""

from __future__ import annotations

import pytest

from tests.naive.performatives import frame, header
from trio_amqp10.testing import (
    Attach,
    Open,
    Transfer,
)

from .test_scripted_peer import failure, peers


async def test_expect_takes_a_whole_performative() -> None:
    octets = frame("open", container_id="a", channel_max=3)
    assert await (await peers(octets)).expect(Open(container_id="a", channel_max=3))
    assert "channel_max: expected 65535" in await failure(await peers(octets), Open(container_id="a"))


async def test_expect_shows_every_difference() -> None:
    peer = await peers(header(), frame("open", container_id="a", channel_max=3, properties={"x": 1}))
    await peer.expect_header()
    await peer.send(b"AMQP\0\1\0\0")
    text = await failure(
        peer, Open, channel=1, container_id="b", channel_max=lambda most: most > 3, properties={"x": 2}
    )
    assert text.splitlines() == [
        "channel: expected 1",
        "         got      0",
        "container_id: expected 'b'",
        "              got      'a'",
        "channel_max: expected a value that <lambda> accepts",
        "             got      3",
        "properties: expected {'x': 2}",
        "            got      {Symbol('x'): 1}",
        "in [0] Open(container_id='a', channel_max=3, properties={Symbol('x'): 1})",
        "after:",
        "    <- header AMQP 0 1.0.0 (AMQP)",
        "    -> header AMQP 0 1.0.0 (AMQP)",
    ]


async def test_expect_looks_into_composites_where_it_is_given_a_mapping() -> None:
    octets = frame(
        "attach", name="l", handle=0, role=True, source=("source", {"address": "q", "capabilities": ["x"]})
    )
    await (await peers(octets)).expect(Attach, source={"address": "q", "capabilities": ["x"]})
    text = await failure(await peers(octets), Attach, source={"address": "r"}, role=1)
    assert "source.address: expected 'r'\n                got      'q'" in text
    assert "role: expected 1" in text  # no bool
    with pytest.raises(TypeError, match="Source has no field 'adress'; it has address, durable"):
        await (await peers(octets)).expect(Attach, source={"adress": "q"})


async def test_expect_refuses_fields_that_there_are_not() -> None:
    with pytest.raises(TypeError, match="Open has no field 'name'; it has container_id"):
        await (await peers()).expect(Open, name="x")


async def test_expect_shows_payloads_octet_by_octet() -> None:
    text = await failure(
        await peers(frame("transfer", payload=bytes(20), handle=1)), Transfer, payload=bytes(16) + b"abcd"
    )
    assert "    - 000010  61 62 63 64                                      abcd" in text
    assert "    + 000010  00 00 00 00                                      ...." in text
    assert text.splitlines()[1].startswith("      000000  00 00")
