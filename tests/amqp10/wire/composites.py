"""Composites of a program, for tests of their codec."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from hypothesis import strategies as st

from trio_amqp10.amqp10.spec.transport import Error  # noqa: TC001 - annotations are read at run time
from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import Multiple, restricted, symbol, uint


@restricted("colour", "uint")
class Colour(IntEnum):
    RED = 0
    BLUE = 300


@composite("example:paint:list", 0x1_0000_0001, provides=["outcome"])
class Paint:
    """A composite of somebody's own, in a domain of its own."""

    colour: Colour
    layers: uint = 1
    names: Multiple[symbol] = ()
    sizes: Multiple[uint] = ()
    last: Error | None = None


@composite("example:brush:list", 0x00)
class Brush:
    """A composite with descriptor 0."""

    width: uint


def octets(obj: Any) -> str:
    return encode(obj).hex()


ATTACH: dict[str, Any] = {"name": "a", "handle": 0, "role": True}
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
