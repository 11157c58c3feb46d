"""Field types that only the draft has: several values, and options.

See 3, and Book III, 8.13.

Knows no composite.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.decode import TABLE, Reader
from trio_amqp10.amqp10.wire.encode import below, write_compound
from trio_amqp10.amqp10.wire.fields import FieldType, InvalidFieldError, Named, symbol_map
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.amqp10.wire.decode_budget import Budget

Options: TypeAlias = Annotated[symbol_map, Named("options")]
"""A map of options by name, which modify a type.

An unknown name that does not begin with ``x-opt-`` is an error (D 1508-1514).
"""

_DESCRIBED_TRUE: Final = bytes((codes.DESCRIBED, codes.TRUE))


def several(each: Any) -> Any:
    """Return the type of zero or more values of ``each`` (D 466).

    The encoding is null, a single value as it is, or a list with the descriptor true.

    Args:
        each: a name of ``wire.fields``, or a composite.
    """
    base = typing.cast("FieldType", getattr(each, "__amqp_field__", None) or typing.get_args(each)[1])

    def one(read: Reader) -> Reader:
        def read_one(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
            value, pos = read(buf, pos, budget)
            return (value,), pos

        return read_one

    single = base.readers.get(codes.DESCRIBED)

    def read_described(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        if buf[pos] == codes.TRUE:
            return _read_list(base, buf, pos + 1, budget)
        if single is None:
            raise InvalidFieldError(f"{base.name} expected, got a described value")
        value, pos = single(buf, pos, budget)
        return (value,), pos

    def write(out: bytearray, value: Any, depth: int) -> None:
        if isinstance(value, (str, bytes)):
            raise LocalProtocolError(f"{value!r}: expected a tuple of values of type {base.name}")
        values: Sequence[Any] = value
        if len(values) == 1:
            base.write(out, values[0], depth)
            return
        depth = below(depth, 2)
        body = bytearray()
        for item in values:
            base.write(body, item, depth)
        out += _DESCRIBED_TRUE
        write_compound(out, codes.LIST8, codes.LIST32, len(values), body)

    readers = {code: one(read) for code, read in base.readers.items()} | {codes.DESCRIBED: read_described}
    return FieldType(base.name, readers, write, base.requires)


def _read_list(base: FieldType, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    """Read the list after the descriptor true, whose elements have the field's type."""
    start = pos
    items, end = TABLE[buf[pos]](buf, pos + 1, budget)
    if items.__class__ is not list:
        raise InvalidFieldError(f"a list of {base.name} expected, got {buf[start]:#04x}")
    if not items:
        return (), end
    pos = start + (3 if buf[start] == codes.LIST8 else 9)
    values: list[Any] = []
    for _ in items:
        reader = base.readers.get(buf[pos])
        if reader is None:
            raise InvalidFieldError(f"{base.name} expected in a list of such values, got {buf[pos]:#04x}")
        value, pos = reader(buf, pos + 1, budget)
        values.append(value)
    return tuple(values), end
