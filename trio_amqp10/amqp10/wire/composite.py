"""Declared types: the ``@composite`` decorator and the ``Registry`` (1.3, 1.4).

This module turns a class into a codec. The classes of the standard are in ``spec``.

From annotation to codec
------------------------

A composite is written like the standard's own table, one line per field::

    @composite("amqp:flow:list", 0x13)
    class Flow:
        next_incoming_id: TransferNumber | None = None
        incoming_window: uint
        drain: boolean = False

When the class is created, each annotation is interpreted once; no code is generated, and nothing is looked up later:

* ``uint`` is ``Annotated[int, FieldType]``: a type checker sees ``int``, and the FieldType has a writer, and a reader for each
  constructor octet that a uint may have. A class can have its own FieldType as ``__amqp_field__`` (closed choices), or be a
  composite itself (``error: Error | None``).
* A field without a default is mandatory. A default other than None is the value of a null or omitted field.
* ``Multiple[symbol]`` means zero or more symbols. The constructor converts the value to a tuple, so that a single str counts
  as one symbol and not as its letters.

The result is a ``Plan``: the fields in order, each with its readers by octet (including null, if the field may be null), the
setter of its slot, and its writer. Decoding reads the fields in order: ``readers[octet](buf, pos + 1, budget)``, then the
setter; the remaining fields get their defaults. Encoding skips nulls and defaults, and fills a gap with nulls only when a value
follows, so that trailing nulls are never sent. Drafts of the standard have composites that are maps: their plan is a ``MapPlan``.

For type checkers the class is frozen: they refuse assignments. At run time it is a plain dataclass with slots, because creating a
frozen one takes five times as long. A plan decodes an attach in a few microseconds. Types that must be faster have
shortcuts: transfer and disposition in the engine, and header and properties of messages in
``message.header_and_properties_generated``.

Two details of the encoding are deliberate. An empty composite is written ``c0 01 00`` and never ``45``, which some peers cannot
read; both are accepted. And a registry decodes nested values with its own types in the budget, so that delivery states in
``attach.unsettled``, or lifetime policies in node properties, become instances of their classes.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, dataclass_transform

from trio_amqp10.core.peer_rules import PERFORMATIVE

from . import codes
from .composite_plan import Field, Plan, descriptor_key, descriptor_octets
from .composites_as_maps import MapPlan
from .decode import read_descriptor
from .decode_budget import MAX_DEPTH, Budget, read_fault, spend
from .encode import encode
from .values import Described, Symbol, ULong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trio_amqp10.core.errors import RemoteProtocolError, Scope

__all__ = ["PERFORMATIVE_NODES", "Field", "Plan", "Registry", "Section", "composite", "plan_of"]

C = TypeVar("C")

PERFORMATIVE_NODES: Final = 1_024
"""The default budget of values for one composite; no honest frame needs more."""


class Section:
    """A section of a message that is not a composite (3.2).

    Attributes:
        name: the symbolic descriptor.
        code: the numeric descriptor.
        prefix: the octets before the constructor of its value.
    """

    __slots__ = ("code", "name", "prefix")

    def __init__(self, name: str, code: int) -> None:
        self.name: Final[Symbol] = Symbol(name)
        self.code: Final[ULong] = ULong(code)
        self.prefix: Final[bytes] = descriptor_octets(code)

    def __repr__(self) -> str:
        return f"Section({str(self.name)!r}, {int(self.code):#04x})"


@dataclass_transform(frozen_default=True, kw_only_default=True)
def composite(
    name: str,
    code: int,
    *,
    provides: Iterable[str] = (),
    scope: Scope = "connection",
    encoding: Literal["list", "map"] = "list",
) -> Callable[[type[C]], type[C]]:
    """Turn a class of annotated fields into a composite type (1.4).

    The docstring of this module explains how.

    Args:
        name: the symbolic descriptor.
        code: the numeric descriptor.
        provides: the archetypes of the type, such as ``delivery-state``.
        scope: the connection, session or link that an invalid field ends, if a frame contains this type.
        encoding: whether it is a list of all fields, or a map of the fields with values.

    Raises:
        TypeError: an annotation has no AMQP type.
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
        kind = Plan if encoding == "list" else MapPlan
        plan = kind(made, name, code, fields, frozenset(provides), scope)
        made.__amqp__ = plan
        made.__amqp_field__ = plan.make_field_type()
        made.__amqp_encode__ = _encode
        made.__amqp_encode_at__ = _encode_at
        made.__repr__ = _repr
        return typing.cast("type[C]", made)

    return decorate


def _tuples(names: list[str]) -> Callable[[Any], None]:
    def post_init(self: Any) -> None:
        for name in names:
            setattr(self, name, _tuple(getattr(self, name)))

    return post_init


def _tuple(value: Any) -> tuple[Any, ...]:
    """Convert to a tuple; a str is one symbol, and None means no value."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (str, bytes, int)) else tuple(value)


def _encode(self: Any, out: bytearray) -> None:
    plan_of(self.__class__).encode(out, self, MAX_DEPTH)


def _encode_at(self: Any, out: bytearray, depth: int) -> None:
    plan_of(self.__class__).encode(out, self, depth)


def _repr(self: Any) -> str:
    plan = plan_of(self.__class__)
    shown = [
        f"{field.name}={value!r}"
        for field, value in zip(plan.fields, plan.values(self), strict=True)
        if field.mandatory or value != field.default
    ]
    return f"{type(self).__name__}({', '.join(shown)})"


def plan_of(cls: type[Any]) -> Plan:
    """Return the plan of a composite class."""
    plan: Plan = cls.__amqp__
    return plan


class Registry:
    """A set of composites that are allowed in one place, found by either descriptor.

    A registry is an object, not a global. The drafts, and users of the library, create further ones, from the classes of
    ``spec`` and from others: ``Registry(*TYPES, MyState)``.

    Args:
        classes: the classes that ``decode`` finds.
        nested: the registry for values inside their fields; None for this registry.
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

    def __contains__(self, cls: type[Any]) -> bool:
        return cls in self._classes

    def lookup(self, descriptor: int | str) -> type[Any] | None:
        """Return the class of a numeric or symbolic descriptor; None if it is unknown."""
        plan = self._by_descriptor.get(descriptor)
        return None if plan is None else plan.cls

    def decode(self, buf: bytes, pos: int = 0, budget: Budget | None = None) -> tuple[Any, int]:
        """Decode the composite at ``pos``; return it and the position after it.

        Args:
            buf: the octets of a frame's body.
            pos: the start of the described list or map.
            budget: the limits, by default 1,024 values; its ``types`` are replaced during the call.

        Raises:
            RemoteProtocolError: ``amqp:connection:framing-error`` if this is not a composite of the registry;
                ``amqp:invalid-field`` (an InvalidFieldError) for a field that is missing or of a wrong type; and the errors of
                ``decode.decode``.
        """
        if budget is None:
            budget = Budget(PERFORMATIVE_NODES)
        before, budget.types = budget.types, self._nested
        try:
            spend(budget, 1)
            plan, pos = self._find(buf, pos)
            return plan.decode(buf, pos, budget)
        except (IndexError, UnicodeDecodeError, struct.error) as error:
            raise read_fault(error) from None
        finally:
            budget.types = before

    def _find(self, buf: bytes, pos: int) -> tuple[Plan, int]:
        """Return the plan of the described value at ``pos``, and the value's position."""
        if buf[pos] != codes.DESCRIBED:
            raise _framing_error(f"expected a performative, got {buf[pos]:#04x}")
        descriptor, pos = self._descriptor(buf, pos + 1)
        plan = self._by_descriptor.get(descriptor)
        if plan is None:
            raise _framing_error(f"expected a performative, got descriptor {descriptor!r}")
        if buf[pos] not in plan.constructors:
            raise _framing_error(f"{plan.name} must be a {plan.shape}")
        return plan, pos

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        """Decode the composite with its descriptor at ``pos``; None if it is unknown.

        See ``Types``.
        """
        descriptor, pos = self._descriptor(buf, pos)
        plan = self._by_descriptor.get(descriptor)
        return None if plan is None else plan.decode(buf, pos, budget)

    def resolve(self, value: Any) -> Any:
        """Convert a ``Described`` that was decoded without types to its composite.

        The body of a message is such a value. Other values, and unknown descriptors, are returned unchanged.

        Raises:
            RemoteProtocolError: as ``decode``.
        """
        if (
            not isinstance(value, Described)
            or self._by_descriptor.get(descriptor_key(value.descriptor)) is None
        ):
            return value
        return self.decode(encode(value))[0]

    def _descriptor(self, buf: bytes, pos: int) -> tuple[Any, int]:
        if buf[pos] == codes.SMALL_ULONG:
            return buf[pos + 1], pos + 2
        descriptor, pos = read_descriptor(buf, pos)
        return descriptor_key(descriptor), pos


def _framing_error(text: str) -> RemoteProtocolError:
    return PERFORMATIVE.broken(text)
