"""Declared types: the ``@composite`` decorator and the ``Registry`` that finds a type by descriptor (1.3, 1.4).

Knows how a class becomes a codec, and no class of the standard: those are in ``spec``.

From annotation to codec
------------------------

A composite is written as the standard's own table, one row per field::

    @composite("amqp:flow:list", 0x13)
    class Flow:
        next_incoming_id: TransferNumber | None = None
        incoming_window: uint
        drain: boolean = False

Nothing is generated before run time and nothing is looked up at it. When the class is made, each
annotation is opened once:

* ``uint`` is ``Annotated[int, FieldType]``: a type checker sees ``int``, and the FieldType holds a
  reader for each constructor octet that a uint may have, and a writer. A class may bring its own
  as ``__amqp_field__`` (closed choices) or be a composite itself (``error: Error | None``).
* no default means mandatory; a default other than None is what null and an omitted field read as.
* ``Multiple[symbol]`` is zero or more. The tuple is made on construction, so that one str counts as
  one symbol and not as its letters.

What comes out is a ``Plan``: the fields in order, each with its readers by octet (null among them,
if it may be null), the setter and getter of its slot, and its writer. Decoding walks fields and
octets side by side: ``readers[octet](buf, pos + 1, budget)``, then the setter; what is left of the
fields gets its defaults. Encoding walks the fields, leaves out nulls and defaults, and fills a gap
with nulls only when something follows it, so that trailing nulls never reach the wire.

The class is statically frozen and dynamically plain: type checkers refuse assignment, while at run
time it is a dataclass with slots, since a frozen one takes five times as long to construct. No code
is generated: a plan decodes an attach in a few microseconds, and what must be faster than that
(transfer, disposition, flow) is written by hand in the engine.

Two habits of the wire are deliberate. An empty composite is written ``c0 01 00`` and never ``45``,
which some peers cannot read; both are understood. And a registry reads with its own types in the
budget, so that delivery states inside ``attach.unsettled`` or lifetime policies inside node
properties come out as the classes they are.
"""

from __future__ import annotations

import dataclasses
import struct
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from struct import Struct
from typing import Any, Final, TypeVar, dataclass_transform

from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError, Scope

from . import codes
from .decode import (
    MAX_DEPTH,
    Budget,
    Reader,
    check_compound,
    malformed,
    read_descriptor,
    read_fault,
    size_fault,
    spend,
)
from .encode import below, encode, write_compound
from .fields import MULTIPLE, FieldType, InvalidFieldError, Named, OwnBudget, Requires, multiple_of
from .values import Described, Symbol, ULong

__all__ = ["PERFORMATIVE_NODES", "Field", "Plan", "Registry", "Section", "composite", "plan_of"]

C = TypeVar("C")

PERFORMATIVE_NODES: Final = 1_024
"""Values in one composite, where its caller gives no budget: ample for any honest frame."""

_U32: Final = Struct(">I")


class Section:
    """A section of a message that is not a composite: its descriptor alone (3.2).

    Attributes:
        name: the symbolic descriptor.
        code: the numeric descriptor.
        prefix: the octets that announce it, up to the constructor of its value.
    """

    __slots__ = ("code", "name", "prefix")

    def __init__(self, name: str, code: int) -> None:
        self.name: Final = Symbol(name)
        self.code: Final = ULong(code)
        self.prefix: Final = _descriptor_octets(code)

    def __repr__(self) -> str:
        return f"Section({str(self.name)!r}, {int(self.code):#04x})"


def _descriptor_octets(code: int) -> bytes:
    """Always ``53`` where it fits, also for 0: peers compare octets."""
    if code < 256:
        return bytes((codes.DESCRIBED, codes.SMALL_ULONG, code))
    return bytes((codes.DESCRIBED, codes.ULONG)) + code.to_bytes(8, "big")


class Field:
    """One row of a declaration, and the code that carries it.

    Attributes:
        name: the Python name; ``wire_name`` is the standard's.
        type: the standard's name of the type, ``*`` for any that provides ``requires``.
        default: what null and an omitted field read as.
    """

    __slots__ = (
        "default",
        "mandatory",
        "multiple",
        "name",
        "readers",
        "requires",
        "set",
        "type",
        "wire_name",
        "write",
    )

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name = name
        self.wire_name = name.replace("_", "-")
        self.mandatory = default is dataclasses.MISSING
        self.default: Any = None if self.mandatory else default
        says = _Annotation(annotation)
        field_type = typing.cast("FieldType", says.type)
        self.type = says.type_name
        self.requires = says.requires
        self.multiple = says.multiple
        if self.multiple:
            field_type = multiple_of(field_type, self.mandatory)
            self.default = ()
        self.write = field_type.write
        self.readers = dict(field_type.readers)
        if says.nodes:
            self.readers = {code: _apart(read, says.nodes) for code, read in self.readers.items()}
        if self.multiple or not self.mandatory:
            # A mandatory multiple field takes null as well: it says no more than an empty array
            # does, and one check of its user then finds both (5.3.3.1).
            self.readers[codes.NULL] = _null_as(self.default)
        self.set: Callable[[Any, Any], None]


def _null_as(default: Any) -> Reader:
    return lambda _buf, pos, _budget: (default, pos)


def _apart(read: Reader, nodes: int) -> Reader:
    """The same reader under a node budget of its own."""

    def read_apart(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        rest, budget.nodes = budget.nodes, nodes
        value, pos = read(buf, pos, budget)
        budget.nodes = rest
        return value, pos

    return read_apart


class _Annotation:
    """What an annotation says about its field."""

    __slots__ = ("multiple", "nodes", "requires", "type", "type_name")

    def __init__(self, annotation: Any) -> None:
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            annotation = next(each for each in typing.get_args(annotation) if each is not types.NoneType)
        self.type: FieldType | None = getattr(annotation, "__amqp_field__", None)
        self.type_name = self.type.name if self.type else ""
        self.requires = self.type.requires if self.type else ""
        self.multiple = False
        self.nodes = 0
        if typing.get_origin(annotation) is typing.Annotated:
            inner, *marks = typing.get_args(annotation)
            for mark in marks:
                self._read(mark, inner)
        if self.type is None:
            raise TypeError(f"{annotation!r} says no AMQP type: use the names of wire.fields, or a composite")

    def _read(self, mark: Any, inner: Any) -> None:
        if mark == MULTIPLE:
            each = _Annotation(typing.get_args(inner)[0])
            self.type, self.type_name, self.requires = each.type, each.type_name, each.requires
            self.multiple = True
        elif isinstance(mark, FieldType):
            self.type, self.type_name, self.requires = mark, mark.name, mark.requires
        elif isinstance(mark, Named):
            self.type_name = mark.name
        elif isinstance(mark, Requires):
            self.requires = mark.archetype
        elif isinstance(mark, OwnBudget):
            self.nodes = mark.nodes


class Plan:
    """How one class travels: its descriptors, and its fields in the standard's order.

    Attributes:
        cls: the class.
        name: the symbolic descriptor; ``code`` the numeric one.
        fields: its rows.
        provides: the archetypes that it may stand for (1.3).
        scope: how much of the conversation a fault in one of its fields ends.
    """

    __slots__ = ("cls", "code", "fields", "name", "prefix", "provides", "scope", "values")

    def __init__(
        self,
        cls: type[Any],
        name: str,
        code: int,
        fields: tuple[Field, ...],
        provides: frozenset[str],
        scope: Scope,
    ) -> None:
        self.cls = cls
        self.name = Symbol(name)
        self.code = ULong(code)
        self.prefix = _descriptor_octets(code)
        self.fields = fields
        self.provides = provides
        self.scope: Scope = scope
        self.values = _values_getter([field.name for field in fields])

    def encode(self, out: bytearray, obj: Any, depth: int) -> None:
        """Append the described list of ``obj``."""
        depth = below(depth, 2)
        body = bytearray()
        count = 0
        for index, (field, value) in enumerate(zip(self.fields, self.values(obj), strict=True)):
            if value is None or (value == field.default and not field.mandatory) or value == ():
                if field.mandatory:
                    raise LocalProtocolError(f"{self.name}.{field.wire_name} is mandatory")
                continue
            if index > count:
                body += b"\x40" * (index - count)
            try:
                field.write(body, value, depth)
            except LocalProtocolError as error:
                raise LocalProtocolError(f"{self.name}.{field.wire_name}: {error}") from None
            count = index + 1
        out += self.prefix
        write_compound(out, codes.LIST8, codes.LIST32, count, body)

    def decode(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        """The object whose list's constructor is at ``pos``; readers' own exceptions pass through."""
        code = buf[pos]
        if code == codes.LIST8:
            end, count, pos = pos + 2 + buf[pos + 1], buf[pos + 2], pos + 3
        elif code == codes.LIST32:
            end, count, pos = (
                pos + 5 + _U32.unpack_from(buf, pos + 1)[0],
                _U32.unpack_from(buf, pos + 5)[0],
                pos + 9,
            )
        elif code == codes.LIST0:
            end, count, pos = pos + 1, 0, pos + 1
        else:
            raise malformed(f"{self.name} is a list, not what {code:#04x} constructs")
        check_compound(buf, pos, end, count)
        if count > len(self.fields):
            raise malformed(f"{self.name} has {len(self.fields)} fields, not {count}")
        spend(budget, count)
        budget.depth -= 2
        if budget.depth < 0:
            raise malformed("values are nested too deeply")
        obj = self.cls.__new__(self.cls)
        index = 0
        try:
            for field in self.fields[:count]:
                reader = field.readers.get(buf[pos])
                if reader is None:
                    raise InvalidFieldError(_refusal(field, buf[pos]))
                value, pos = reader(buf, pos + 1, budget)
                field.set(obj, value)
                index += 1
            for field in self.fields[count:]:
                if codes.NULL not in field.readers:
                    raise InvalidFieldError("mandatory, and missing")
                field.set(obj, field.default)
                index += 1
        except InvalidFieldError as error:
            raise self._place(error, obj, index) from None
        if pos != end:
            raise size_fault(pos, end)
        budget.depth += 2
        return obj, end

    def _place(self, error: InvalidFieldError, obj: Any, index: int) -> InvalidFieldError:
        """The same fault seen from here: a fault in a source ends what a fault in its attach ends."""
        detail = f"{error.composite}.{error.field}: {error.detail}" if error.composite else error.detail
        done = {field.name: getattr(obj, field.name) for field in self.fields[:index]}
        return InvalidFieldError(detail, str(self.name), self.fields[index].wire_name, self.scope, done)

    def make_field_type(self) -> FieldType:
        """The type of a field that is this composite and no other, such as the error of a detach."""

        def read(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
            descriptor, pos = read_descriptor(buf, pos, budget)
            if _key(descriptor) not in (self.code, self.name):
                raise InvalidFieldError(f"{descriptor!r} does not describe {self.name}")
            return self.decode(buf, pos, budget)

        def write(out: bytearray, value: Any, depth: int) -> None:
            if value.__class__ is not self.cls:
                raise LocalProtocolError(f"{value!r} is not {self.name}")
            self.encode(out, value, depth)

        return FieldType(
            self.name.removeprefix("amqp:").removesuffix(":list"), {codes.DESCRIBED: read}, write
        )


def _refusal(field: Field, code: int) -> str:
    if code == codes.NULL:
        return "mandatory, and null"
    row = codes.ENCODINGS.get(code)
    what = "a described value" if code == codes.DESCRIBED else row.type if row else f"{code:#04x}"
    return f"{field.requires or field.type} expected, got {what}"


def _values_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _obj: ()
    if len(names) == 1:
        (name,) = names
        return lambda obj: (getattr(obj, name),)
    return attrgetter(*names)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def composite(
    name: str, code: int, *, provides: Iterable[str] = (), scope: Scope = "connection"
) -> Callable[[type[C]], type[C]]:
    """Make a class of annotated fields a composite type (1.4); the module's docstring tells how.

    Args:
        name: the symbolic descriptor.
        code: the numeric descriptor.
        provides: the archetypes that it may stand for, such as ``delivery-state``.
        scope: what a bad field of it ends, when it is what a frame carries.

    Raises:
        TypeError: an annotation says no AMQP type.
    """

    def decorate(cls: type[C]) -> type[C]:
        annotations = typing.get_type_hints(cls, include_extras=True)
        fields = tuple(
            Field(each, annotation, cls.__dict__.get(each, dataclasses.MISSING))
            for each, annotation in annotations.items()
        )
        several = [field.name for field in fields if field.multiple]
        if several:
            cls.__post_init__ = _tuples(several)  # type: ignore[attr-defined]
        made: Any = dataclasses.dataclass(slots=True, kw_only=True, repr=False)(cls)
        for field in fields:
            field.set = made.__dict__[field.name].__set__
        plan = Plan(made, name, code, fields, frozenset(provides), scope)
        made.__amqp__ = plan
        made.__amqp_field__ = plan.make_field_type()
        made.__amqp_encode__ = lambda self, out: plan.encode(out, self, MAX_DEPTH)
        made.__amqp_encode_at__ = lambda self, out, depth: plan.encode(out, self, depth)
        made.__repr__ = _repr
        return typing.cast("type[C]", made)

    return decorate


def _tuples(names: list[str]) -> Callable[[Any], None]:
    def post_init(self: Any) -> None:
        for name in names:
            value = getattr(self, name)
            if value.__class__ is not tuple:
                one = value is None or isinstance(value, (str, bytes, int))
                setattr(self, name, (() if value is None else (value,)) if one else tuple(value))

    return post_init


def _repr(self: Any) -> str:
    plan: Plan = self.__amqp__
    shown = [
        f"{field.name}={value!r}"
        for field, value in zip(plan.fields, plan.values(self), strict=True)
        if field.mandatory or value != field.default
    ]
    return f"{type(self).__name__}({', '.join(shown)})"


def plan_of(cls: type[Any]) -> Plan:
    """The plan of a composite class."""
    plan: Plan = cls.__amqp__
    return plan


def _key(descriptor: Any) -> Any:
    """A descriptor to look up: 16 as a long, or a string, is none, though equal to one in Python."""
    return descriptor if descriptor.__class__ in (ULong, Symbol) else None


class Registry:
    """The composites that may stand in one place, found by either descriptor.

    An object, not a global: drafts and users of the library make their own, from those of ``spec``
    and classes of theirs: ``Registry(*TYPES, MyState)``.

    Args:
        classes: what ``decode`` may find.
        nested: what may stand inside their fields; without it, this registry itself.
    """

    __slots__ = ("_by_descriptor", "_classes", "_nested")

    def __init__(self, *classes: type[Any], nested: Registry | None = None) -> None:
        self._classes = classes
        self._nested = nested or self
        self._by_descriptor: dict[Any, Plan] = {}
        for cls in classes:
            plan = plan_of(cls)
            self._by_descriptor[plan.code] = plan
            self._by_descriptor[plan.name] = plan

    def __iter__(self) -> Iterator[type[Any]]:
        return iter(self._classes)

    def __contains__(self, cls: object) -> bool:
        return cls in self._classes

    def lookup(self, descriptor: int | str) -> type[Any] | None:
        """The class of a numeric or symbolic descriptor, or None."""
        plan = self._by_descriptor.get(descriptor)
        return plan and plan.cls

    def decode(self, buf: bytes, pos: int = 0, budget: Budget | None = None) -> tuple[Any, int]:
        """The composite at ``pos``, and the position after it.

        Args:
            buf: the octets of a frame's body.
            pos: where the described list begins.
            budget: what it may cost, 1,024 nodes unless given; its ``types`` are set to ours.

        Raises:
            RemoteProtocolError: ``amqp:connection:framing-error`` when this is not one of our
                composites; ``amqp:invalid-field`` (an InvalidFieldError) for a field that is
                missing or of a wrong type; and all that ``decode.decode`` raises.
        """
        if budget is None:
            budget = Budget(PERFORMATIVE_NODES)
        budget.types = self._nested
        try:
            if buf[pos] != codes.DESCRIBED:
                raise RemoteProtocolError(
                    f"{buf[pos]:#04x} where a performative is due", Condition.FRAMING_ERROR
                )
            descriptor, start = self._descriptor(buf, pos + 1, budget)
            plan = self._by_descriptor.get(descriptor)
            if plan is None:
                raise RemoteProtocolError(
                    f"descriptor {descriptor!r} where a performative is due", Condition.FRAMING_ERROR
                )
            if buf[start] not in _LISTS:
                raise RemoteProtocolError(f"{plan.name} that is not a list", Condition.FRAMING_ERROR)
            spend(budget, 1)
            return plan.decode(buf, start, budget)
        except (IndexError, UnicodeDecodeError, struct.error) as error:
            raise read_fault(error) from None

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        """The composite whose descriptor is at ``pos``, or None for one that is not ours (see ``Types``)."""
        descriptor, pos = self._descriptor(buf, pos, budget)
        plan = self._by_descriptor.get(descriptor)
        return plan and plan.decode(buf, pos, budget)

    def resolve(self, value: Any) -> Any:
        """A ``Described`` that was decoded without types, such as the body of a message, as our composite.

        Anything else, and what we do not know, comes back as it is.

        Raises:
            RemoteProtocolError: as for ``decode``.
        """
        if not isinstance(value, Described) or self._by_descriptor.get(_key(value.descriptor)) is None:
            return value
        return self.decode(encode(value))[0]

    def _descriptor(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        if buf[pos] == codes.SMALL_ULONG:
            return buf[pos + 1], pos + 2
        descriptor, pos = read_descriptor(buf, pos, budget)
        return _key(descriptor), pos


_LISTS: Final = (codes.LIST0, codes.LIST8, codes.LIST32)
