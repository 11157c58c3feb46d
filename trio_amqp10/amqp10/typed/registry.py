"""Registry: declares classes, and converts their objects to AMQP values and back.

The public interface of the typed codec: it has the public names and errors, and its tables are in
``CodecTables``.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, TypeVar, overload

from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.wire.encode import write_value
from trio_amqp10.amqp10.wire.values import Symbol, ULong
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError

from .codec import Misfit
from .codec_tables import CodecTables
from .fields import is_struct
from .structs import Declaration, Encoding, Keys, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

C = TypeVar("C")
T = TypeVar("T")


class Registry:
    """Your classes and their encoding; see the docstring of ``trio_amqp10.typed``.

    Args:
        known: other registries, whose classes are known here as well; and composites of the standard, such as
            ``amqp.ErrorInfo``, to be found by their descriptors.
        keys: the type of the keys of maps: ``string``, or ``symbol``.
        rename: returns the key of a field by its name in Python, if the field has no key of its own.
        unknown: ``ignore`` or ``refuse`` keys, or elements, without a field. The last three are for classes
            that are not declared, and the defaults of ``composite`` and ``mapping``.

    Raises:
        TypeError: an argument is neither a registry nor a composite; or two have one descriptor.
    """

    def __init__(
        self,
        *known: Registry | type[Any],
        keys: Keys = "string",
        rename: Callable[[str], str] | None = None,
        unknown: Unknown = "ignore",
    ) -> None:
        self._book = CodecTables(Declaration(None, None, "map", keys, rename, unknown))
        for each in known:
            if isinstance(each, Registry):
                self._book.include(each._book)  # noqa: SLF001 - our own class
            else:
                plan = getattr(each, "__amqp__", None)
                if plan is None:
                    raise TypeError(f"{each!r} is not a composite of the standard: pass its registry")
                self._book.describe(each, frozenset({plan.code, plan.name}))

    # -- declarations

    def composite(
        self,
        name: str,
        code: int | None = None,
        *,
        encoding: Encoding = "list",
        keys: Keys | None = None,
        rename: Callable[[str], str] | None = None,
        unknown: Unknown | None = None,
    ) -> Callable[[type[C]], type[C]]:
        """Make a dataclass, a NamedTuple or a TypedDict a described type (1.3, 1.4).

        Its objects are then AMQP values like any other: ``await sender.send(order)`` works without a
        conversion. Not for a TypedDict, whose objects are dicts.

        Args:
            name: the symbolic descriptor; by custom ``domain:type:encoding``.
            code: the numeric descriptor; its upper half is the number of your domain. It is sent instead of
                the symbolic one, because it is shorter. Peers may send either.
            encoding: ``list`` for the fields in order, as the standard's own types; ``map`` for the fields by
                name; ``value`` for the value of the only field.
            keys, rename, unknown: as for the registry; None for those of the registry.

        Raises:
            TypeError: the class is none of these, it has an annotation without an AMQP type, or the
                descriptor is taken.
            LocalProtocolError: the name is not ASCII, or the code is out of the range of a ulong.
        """
        descriptors = Symbol(name), None if code is None else ULong(code)
        declaration = self._declaration(*descriptors, encoding, keys, rename, unknown)
        return self._declarer(declaration)

    def mapping(
        self,
        *,
        keys: Keys | None = None,
        rename: Callable[[str], str] | None = None,
        unknown: Unknown | None = None,
    ) -> Callable[[type[C]], type[C]]:
        """Make a dataclass, a NamedTuple or a TypedDict a map without a descriptor.

        Without it, a dataclass or a TypedDict is such a map with the options of the registry, and a
        NamedTuple is a list.

        Args:
            keys, rename, unknown: as for the registry; None for those of the registry.

        Raises:
            TypeError: as for ``composite``.
        """
        return self._declarer(self._declaration(None, None, "map", keys, rename, unknown))

    def adapt(
        self, cls: type[T], wire: Any, to_wire: Callable[[T], Any], from_wire: Callable[[Any], T]
    ) -> None:
        """Encode a class of another library as a known type.

        ``types.adapt(timedelta, float, timedelta.total_seconds, lambda s: timedelta(seconds=s))``

        Args:
            cls: the class, as annotations name it.
            wire: the annotation of the type to send.
            to_wire: converts an object to that type.
            from_wire: converts a value of that type to an object. A ValueError of either function means that
                it cannot be converted.

        Raises:
            TypeError: the class is in use already.
        """
        self._book.adapt(cls, (wire, to_wire, from_wire))

    # -- values

    def to_value(self, obj: Any, as_: Any = None) -> Any:
        """Return the AMQP value of an object, for a body, property or annotation.

        Args:
            obj: an object of a known class, or a collection with such objects.
            as_: the annotation to encode it by; needed for a TypedDict, or to give plain values types of
                their own, as in ``to_value([1, 2], list[ulong])``.

        Raises:
            LocalProtocolError: the object does not match its annotations; the text has the path.
            TypeError: an annotation has no AMQP type.
        """
        cls: type[Any] = obj.__class__
        if as_ is None:
            codec = self._book.made.get(cls) or self._book.anything
        else:
            codec = self._book.codec(as_)
        try:
            return codec.write(obj)
        except Misfit as misfit:
            raise LocalProtocolError(misfit.text(_root(cls if as_ is None else as_))) from misfit.__cause__
        except RecursionError:
            raise LocalProtocolError(f"a {cls.__name__} with too deeply nested objects") from None

    @overload
    def from_value(self, cls: type[T], value: object) -> T: ...
    @overload
    def from_value(self, cls: Any, value: object) -> Any: ...
    def from_value(self, cls: Any, value: object) -> Any:
        """Return the object of an AMQP value, such as the body of a message.

        Args:
            cls: its class, or any other annotation: ``list[Order]``, ``Order | Refund``. For ``object``,
                described values become objects of the classes of their descriptors.
            value: the value, as decoded.

        Raises:
            RemoteProtocolError: ``amqp:invalid-field`` with scope ``link``: the value does not match the
                annotations; the text has the path.
            TypeError: an annotation has no AMQP type.
        """
        codec = self._book.made.get(cls) if isinstance(cls, type) else None
        if codec is None:
            codec = self._book.codec(cls)
        try:
            return codec.read(value)
        except Misfit as misfit:
            raise _invalid(misfit.text(_root(cls))) from misfit.__cause__
        except RecursionError:
            raise _invalid("values are nested too deeply") from None

    # -- messages

    def message(self, obj: Any, as_: Any = None, /, **properties: Any) -> Message:
        """Return a message with the value of an object in an amqp-value section (3.2.8).

        Args:
            obj: as for ``to_value``.
            as_: as for ``to_value``.
            properties: the keyword arguments of ``Message``.

        Raises:
            LocalProtocolError, TypeError: as for ``to_value``, and as for ``Message``.
        """
        return Message(Value(self.to_value(obj, as_)), **properties)

    @overload
    def read(self, message: Message, cls: type[T]) -> T: ...
    @overload
    def read(self, message: Message, cls: Any = object) -> Any: ...
    def read(self, message: Message, cls: Any = object) -> Any:
        """Return the object in the body of a message.

        Args:
            message: as it was received.
            cls: as for ``from_value``; without it, described values become objects of the classes of their
                descriptors.

        Raises:
            RemoteProtocolError: with scope ``link``: as for ``from_value``; or the octets are not a message.
            TypeError: as for ``from_value``.
        """
        return self.from_value(cls, message.body)

    # -- looking up

    def lookup(self, descriptor: int | str) -> type[Any] | None:
        """Return the class of a numeric or symbolic descriptor, or None."""
        return self._book.described.get(descriptor)

    def __iter__(self) -> Iterator[type[Any]]:
        """Iterate over the described types."""
        return iter(dict.fromkeys(self._book.described.values()))

    def __contains__(self, cls: object) -> bool:
        return cls in self._book.described.values()

    def __repr__(self) -> str:
        return f"<Registry of {', '.join(cls.__name__ for cls in self) or 'nothing'}>"

    # -- declaring

    def _declaration(
        self,
        name: Symbol | None,
        code: ULong | None,
        encoding: Encoding,
        keys: Keys | None,
        rename: Callable[[str], str] | None,
        unknown: Unknown | None,
    ) -> Declaration:
        default = self._book.default
        return Declaration(
            name,
            code,
            encoding,
            keys or default.keys,
            rename or default.rename,
            unknown or default.unknown,
        )

    def _declarer(self, declaration: Declaration) -> Callable[[type[C]], type[C]]:
        def declare(cls: type[C]) -> type[C]:
            self._book.declare(cls, declaration)
            if not typing.is_typeddict(cls):
                cls.__amqp_encode_at__ = self._encode_at  # type: ignore[attr-defined]
            return cls

        return declare

    def _encode_at(self, obj: Any, out: bytearray, depth: int) -> None:
        write_value(out, self.to_value(obj), depth)


def _invalid(text: str) -> RemoteProtocolError:
    return RemoteProtocolError(text, Condition.INVALID_FIELD, "link")


def _root(annotation: Any) -> str:
    """Return the first step of a path in an error."""
    own = isinstance(annotation, type) and is_struct(annotation)
    return annotation.__name__ if own else "value"
