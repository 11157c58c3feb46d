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
with nulls only when something follows it, so that trailing nulls never reach the wire. Drafts of the standard have
composites that travel as maps: their plan is a ``MapPlan``.

The class is statically frozen and dynamically plain: type checkers refuse assignment, while at run
time it is a dataclass with slots, since a frozen one takes five times as long to construct. A plan
decodes an attach in a few microseconds without any code made for it. What must be faster than that has
a short way beside it: transfer and disposition by hand, in the engine; the header and the properties of
messages by the straight code of ``message.header_and_properties``.

Two habits of the wire are deliberate. An empty composite is written ``c0 01 00`` and never ``45``,
which some peers cannot read; both are understood. And a registry reads with its own types in the
budget, so that delivery states inside ``attach.unsettled`` or lifetime policies inside node
properties come out as the classes they are.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, dataclass_transform

from trio_amqp10.protocol_rules import PERFORMATIVE

from . import codes
from .composite_plan import Field, Plan, descriptor_key, descriptor_octets
from .decode import read_descriptor
from .decode_budget import MAX_DEPTH, Budget, read_fault, spend
from .encode import encode
from .map_plan import MapPlan
from .values import Described, Symbol, ULong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trio_amqp10.errors import RemoteProtocolError, Scope

__all__ = ["PERFORMATIVE_NODES", "Field", "Plan", "Registry", "Section", "composite", "plan_of"]

C = TypeVar("C")

PERFORMATIVE_NODES: Final = 1_024
"""Values in one composite, where its caller gives no budget: ample for any honest frame."""


class Section:
    """A section of a message that is not a composite: its descriptor alone (3.2).

    Attributes:
        name: the symbolic descriptor.
        code: the numeric descriptor.
        prefix: the octets that announce it, up to the constructor of its value.
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
    """Make a class of annotated fields a composite type (1.4); the module's docstring tells how.

    Args:
        name: the symbolic descriptor.
        code: the numeric descriptor.
        provides: the archetypes that it may stand for, such as ``delivery-state``.
        scope: what a bad field of it ends, when it is what a frame carries.
        encoding: what it is described as: a list of its fields, or a map of those that have a value.

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
    """A str is one symbol and not its letters; None is none."""
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
    """The plan of a composite class."""
    plan: Plan = cls.__amqp__
    return plan


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

    def __contains__(self, cls: type[Any]) -> bool:
        return cls in self._classes

    def lookup(self, descriptor: int | str) -> type[Any] | None:
        """The class of a numeric or symbolic descriptor, or None."""
        plan = self._by_descriptor.get(descriptor)
        return None if plan is None else plan.cls

    def decode(self, buf: bytes, pos: int = 0, budget: Budget | None = None) -> tuple[Any, int]:
        """The composite at ``pos``, and the position after it.

        Args:
            buf: the octets of a frame's body.
            pos: where the described list begins, or the map of one that travels so.
            budget: what it may cost, 1,024 nodes unless given; while it decodes, its ``types`` are ours.

        Raises:
            RemoteProtocolError: ``amqp:connection:framing-error`` when this is not one of our
                composites; ``amqp:invalid-field`` (an InvalidFieldError) for a field that is
                missing or of a wrong type; and all that ``decode.decode`` raises.
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
        """The plan of the described list at ``pos``, and where its list begins."""
        if buf[pos] != codes.DESCRIBED:
            raise _framing_error(f"{buf[pos]:#04x} where a performative is due")
        descriptor, pos = self._descriptor(buf, pos + 1)
        plan = self._by_descriptor.get(descriptor)
        if plan is None:
            raise _framing_error(f"descriptor {descriptor!r} where a performative is due")
        if buf[pos] not in plan.constructors:
            raise _framing_error(f"{plan.name} that is not a {plan.shape}")
        return plan, pos

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        """The composite whose descriptor is at ``pos``, or None for one that is not ours (see ``Types``)."""
        descriptor, pos = self._descriptor(buf, pos)
        plan = self._by_descriptor.get(descriptor)
        return None if plan is None else plan.decode(buf, pos, budget)

    def resolve(self, value: Any) -> Any:
        """A ``Described`` that was decoded without types, such as the body of a message, as our composite.

        Anything else, and what we do not know, comes back as it is.

        Raises:
            RemoteProtocolError: as for ``decode``.
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
