"""Classes of a program, declared in a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from trio_amqp10.amqp10.wire import fields  # noqa: TC001 - annotations are read at run time
from trio_amqp10.amqp10.wire.values import Described, UInt
from trio_amqp10.typed import Registry

TYPES = Registry()


@TYPES.composite("test:line:list", 0x1_0000_0002)
@dataclass
class Line:
    article: str
    count: fields.uint = 1


@TYPES.composite("test:pair:list", 0x1_0000_0003)
class Pair(NamedTuple):
    a: int
    b: Line


@TYPES.mapping()
@dataclass
class Mapped:
    a: int


LINE = Line("a", 2)
VALUE = Described(0x1_0000_0002, ["a", UInt(2)])
