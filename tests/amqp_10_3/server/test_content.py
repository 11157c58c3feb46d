"""Contents of other protocols become contents of 10.3."""

from __future__ import annotations

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.container import Container

from .script import opened


async def test_headers_of_other_protocols_are_narrowed() -> None:
    from tests.amqp091.server.script import opened as opened091

    container = Container()
    async with opened091(container) as old, opened(container) as client:
        await client.declare()
        headers = {
            "t": True,
            "l": 1 << 40,
            "d": 1.5,
            "x": b"\xff",
            "V": None,
            "A": [1],
            "F": {"t": True, "s": "s"},
            "9": 1,
            "a-b": 2,
            "s": "text",
        }
        await old.publish("", "q", b"x", headers=headers, message_id="m")
        heard = await client.ask(spec.BasicGet(queue="q"))
        while heard.name == "basic.get-empty":
            heard = await client.ask(spec.BasicGet(queue="q"))
        assert dict(heard.properties[2]) == {
            b"t": ("I", 1),
            b"l": ("S", str(1 << 40).encode()),
            b"d": ("S", b"1.5"),
            b"x": ("S", b"\xff"),
            b"F": ("F", [(b"t", ("I", 1)), (b"s", ("S", b"s"))]),
            b"a_b": ("I", 2),
            b"s": ("S", b"text"),
        }
        assert heard.properties[8] == b"m"
