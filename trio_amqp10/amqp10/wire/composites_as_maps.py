"""Composites that are encoded as described maps (draft of May 2010, Book II, 3.2).

A key is a symbol, the name of a field; a field without a value is omitted.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import DUPLICATE_MAP_KEYS

from . import codes
from .composite_plan import Field, Plan, refusal
from .decode import TABLE
from .decode_budget import Budget, check_compound, enter, malformed, size_fault
from .encode import below, write_compound
from .fields import InvalidFieldError
from .values import Symbol
from .writers import write_symbol

_U32: Final = Struct(">I")


class MapPlan(Plan):
    """The codec of one class whose composite is a map."""

    shape = "map"
    constructors: tuple[int, ...] = (codes.MAP8, codes.MAP32)

    __slots__ = ()

    def encode(self, out: bytearray, obj: Any, depth: int) -> None:
        """Append the described map of ``obj``."""
        depth = below(depth, 2)
        body = bytearray()
        count = 0
        for field, value in zip(self.fields, self.values(obj), strict=True):
            if value is None or (value == field.default and not field.mandatory) or value == ():
                if field.mandatory:
                    raise LocalProtocolError(f"{self.name}.{field.wire_name} is mandatory")
                continue
            write_symbol(body, field.wire_name, depth)
            try:
                field.write(body, value, depth)
            except LocalProtocolError as error:
                raise LocalProtocolError(f"{self.name}.{field.wire_name}: {error}") from None
            count += 2
        out += self.prefix
        write_compound(out, codes.MAP8, codes.MAP32, count, body)

    def decode(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        """Decode the map with its constructor at ``pos``; readers' exceptions propagate."""
        code = buf[pos]
        if code == codes.MAP8:
            end, count, pos = pos + 2 + buf[pos + 1], buf[pos + 2], pos + 3
        elif code == codes.MAP32:
            end, count = pos + 5 + _U32.unpack_from(buf, pos + 1)[0], _U32.unpack_from(buf, pos + 5)[0]
            pos += 9
        else:
            raise InvalidFieldError(f"{self.name} must be a map, not constructor {code:#04x}")
        check_compound(buf, pos, end, count)
        if count & 1:
            raise malformed(f"a map of {count} elements has a key without a value")
        enter(budget, count, levels=2)
        read: dict[str, Any] = {}
        for _ in range(count >> 1):
            field, pos = self._field(buf, pos, budget)
            if field.name in read and not budget.allow_duplicate_keys:
                raise malformed(f"map key {field.wire_name!r} appears twice", DUPLICATE_MAP_KEYS)
            reader = field.readers.get(buf[pos])
            try:
                if reader is None:
                    raise InvalidFieldError(refusal(field, buf[pos]))
                read[field.name], pos = reader(buf, pos + 1, budget)
            except InvalidFieldError as error:
                raise self._misread(error, field) from None
        if pos != end:
            raise size_fault(pos, end)
        budget.depth += 2
        return self._made(read), end

    def _field(self, buf: bytes, pos: int, budget: Budget) -> tuple[Field, int]:
        key, pos = TABLE[buf[pos]](buf, pos + 1, budget)
        if key.__class__ is Symbol:
            for field in self.fields:
                if field.wire_name == key:
                    return field, pos
        raise InvalidFieldError(f"{key!r} is not the name of a field", str(self.name), str(key), self.scope)

    def _misread(self, error: InvalidFieldError, field: Field) -> InvalidFieldError:
        detail = f"{error.composite}.{error.field}: {error.detail}" if error.composite else error.detail
        return InvalidFieldError(detail, str(self.name), field.wire_name, self.scope)

    def _made(self, read: dict[str, Any]) -> Any:
        obj: Any = self.make()
        for field in self.fields:
            if field.mandatory and field.name not in read:
                raise self._misread(InvalidFieldError("mandatory, but missing"), field)
            field.set(obj, read.get(field.name, field.default))
        return obj
