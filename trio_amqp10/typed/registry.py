"""The registry: which classes travel, and how; the door to the typed codec.

What it knows is in its ``book``; here are the names that people use, and the faults as they see them.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, TypeVar, overload

from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message, Value
from trio_amqp10.wire.encode import write_value
from trio_amqp10.wire.values import Symbol, ULong

from .codec import Misfit
from .codec_tables import CodecTables
from .fields import is_struct
from .structs import Declaration, Encoding, Keys, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Registry"]

C = TypeVar("C")
T = TypeVar("T")


class Registry:
    """Which classes of yours travel, and how; see the docstring of ``trio_amqp10.typed``.

    Args:
        known: other registries, whose classes are known here as well; and composites of the standard,
            such as ``amqp.ErrorInfo``, to be found by their descriptors.
        keys: the type of the keys of maps: ``string``, or ``symbol``.
        rename: the key of a field by its name in Python, where the field does not say its own.
        unknown: what to do with keys, or elements, that are no field's: ``ignore`` or ``refuse`` them.
            The last three are for classes that are not declared, and the defaults of ``composite``
            and ``mapping``.

    Raises:
        TypeError: what is given is neither a registry nor a composite; or two have one descriptor.
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
                    raise TypeError(f"{each!r} is no composite of the standard's kind: give its registry")
                self._book.describe(each, frozenset({plan.code, plan.name}))

    # -- saying what travels

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

        Its objects are then AMQP values like any other: ``await sender.send(order)`` works as it is,
        but for a TypedDict, whose objects are dicts.

        Args:
            name: the symbolic descriptor; by custom ``domain:type:encoding``.
            code: the numeric descriptor, its upper half the number of your domain. It is what is sent,
                being shorter; without it the symbolic one is. Peers may send either.
            encoding: ``list`` for the fields in order, as the standard's own types; ``map`` for the
                fields by name; ``value`` for the value of the only field.
            keys, rename, unknown: as for the registry, whose own are taken where these are None.

        Raises:
            TypeError: the class is none of these, an annotation of it says no type of AMQP, or the
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
        """Make a dataclass, a NamedTuple or a TypedDict a map without a descriptor, in its own way.

        A dataclass or a TypedDict is such a map anyway; a NamedTuple is a list unless this says otherwise.

        Args:
            keys, rename, unknown: as for the registry, whose own are taken where these are None.

        Raises:
            TypeError: as for ``composite``.
        """
        return self._declarer(self._declaration(None, None, "map", keys, rename, unknown))

    def adapt(
        self, cls: type[T], wire: Any, to_wire: Callable[[T], Any], from_wire: Callable[[Any], T]
    ) -> None:
        """Carry a class of somebody else's as a type that is known.

        ``types.adapt(timedelta, float, timedelta.total_seconds, lambda s: timedelta(seconds=s))``

        Args:
            cls: the class, as annotations name it.
            wire: the annotation of what it travels as.
            to_wire: makes that of an object.
            from_wire: makes an object of that. A ValueError of either function says that it cannot.

        Raises:
            TypeError: the class is in use already.
        """
        self._book.adapt(cls, (wire, to_wire, from_wire))

    # -- values

    def to_value(self, obj: Any, as_: Any = None) -> Any:
        """The AMQP value of an object, for a body, a property or an annotation of a message.

        Args:
            obj: an object of a class that travels, or what holds such.
            as_: the annotation that it is sent as; needed for a TypedDict, or to give plain values
                types of their own, as in ``to_value([1, 2], list[ulong])``.

        Raises:
            LocalProtocolError: the object is not what its annotations say; the text has the path.
            TypeError: an annotation says no type of AMQP.
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
            raise LocalProtocolError(
                f"a {cls.__name__} that holds too many objects inside each other"
            ) from None

    @overload
    def from_value(self, cls: type[T], value: object) -> T: ...
    @overload
    def from_value(self, cls: Any, value: object) -> Any: ...
    def from_value(self, cls: Any, value: object) -> Any:
        """The object of an AMQP value, such as the body of a message.

        Args:
            cls: its class, or any other annotation: ``list[Order]``, ``Order | Refund``. For
                ``object``, described values become what their descriptors say.
            value: the value, as decoded.

        Raises:
            RemoteProtocolError: ``amqp:invalid-field`` with scope ``link``: the value is not what the
                annotations say; the text has the path.
            TypeError: an annotation says no type of AMQP.
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
        """A message whose body is the value of an object, as an amqp-value section (3.2.8).

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
        """The object that is the body of a message.

        Args:
            message: as it was received.
            cls: as for ``from_value``; without it, described values become what their descriptors say.

        Raises:
            RemoteProtocolError: with scope ``link``: as for ``from_value``; or the octets are no message.
            TypeError: as for ``from_value``.
        """
        return self.from_value(cls, message.body)

    # -- looking up

    def lookup(self, descriptor: int | str) -> type[Any] | None:
        """The class of a numeric or symbolic descriptor, or None."""
        return self._book.described.get(descriptor)

    def __iter__(self) -> Iterator[type[Any]]:
        """The described types."""
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
    """What paths begin with."""
    own = isinstance(annotation, type) and is_struct(annotation)
    return annotation.__name__ if own else "value"
