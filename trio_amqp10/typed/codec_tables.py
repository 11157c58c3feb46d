"""What a registry knows: how classes travel, whom descriptors mean, and the codecs made so far.

The inside of a ``Registry``, which is its door for people. Knows no value and no annotation itself:
``build`` makes codecs, the book keeps them.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.wire.composite_plan import descriptor_key

from .codec_builder import CodecBuilder, key_of
from .compounds import any_codec
from .fields import is_struct
from .scalars import PLAIN_CODECS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .codec import Codec
    from .structs import Declaration

__all__ = ["Adaptation", "CodecTables"]

Adaptation = tuple[Any, "Callable[[Any], Any]", "Callable[[Any], Any]"]
"""The annotation that a class of somebody else's travels as, and the functions there and back."""


class CodecTables:
    """What a registry knows.

    Args:
        default: how a class travels that is not declared.

    Attributes:
        anything: the codec of a value of any type.
        described: the class of each descriptor.
        made: the codecs so far, by ``key_of`` their annotations.
    """

    def __init__(self, default: Declaration) -> None:
        self.default = default
        self.described: dict[Any, type[Any]] = {}
        self.made: dict[Any, Codec] = {}
        self.anything: Final = any_codec(self._by_descriptor, self.object_codec)
        self._declared: dict[type[Any], Declaration] = {}
        self._adapted: dict[type[Any], Adaptation] = {}
        self._objects: dict[type[Any], Codec | None] = {}

    # -- writing it

    def include(self, other: CodecTables) -> None:
        """Know what another one knows.

        Raises:
            TypeError: a descriptor means one class there and another here.
        """
        for descriptor, cls in other.described.items():
            self.describe(cls, frozenset({descriptor}))
        self._declared |= other._declared
        self._adapted |= other._adapted

    def describe(self, cls: type[Any], descriptors: frozenset[Any]) -> None:
        """Let descriptors mean a class.

        Raises:
            TypeError: one of them means another class.
        """
        for descriptor in descriptors:
            other = self.described.get(descriptor)
            if other is not None and other is not cls:
                raise TypeError(f"{descriptor!r} describes {other.__name__} already")
        self.described |= dict.fromkeys(descriptors, cls)

    def declare(self, cls: type[Any], declaration: Declaration) -> None:
        """Let a class travel so; if it cannot, nothing is changed.

        Raises:
            TypeError: it is no class of fields, is in use, or has an annotation that says no type.
        """
        if not is_struct(cls):
            raise TypeError(f"{cls.__name__} is no dataclass, NamedTuple or TypedDict: put @dataclass below")
        self._check_unused(cls)
        self.describe(cls, declaration.descriptors)
        self._declared[cls] = declaration
        builder = CodecBuilder(self, self.made)
        try:
            builder.codec(cls)
        except NameError:  # of a class that comes later: the first use will tell
            pass
        except BaseException:
            del self._declared[cls]
            for descriptor in declaration.descriptors:
                del self.described[descriptor]
            raise
        else:
            self.made.update(builder.made)

    def adapt(self, cls: type[Any], adaptation: Adaptation) -> None:
        """Let a class of somebody else's travel as another annotation.

        Raises:
            TypeError: it is in use.
        """
        self._check_unused(cls)
        self._adapted[cls] = adaptation

    def _check_unused(self, cls: type[Any]) -> None:
        if cls in self.made or self._objects.get(cls) is not None or cls in self._declared:
            raise TypeError(f"{cls.__name__} is in use already: say how it travels before it does")

    # -- reading it

    def codec(self, annotation: Any) -> Codec:
        """The codec of an annotation, made at the first call.

        Raises:
            TypeError: it says no type of AMQP, or has a name that is not defined.
        """
        key = key_of(annotation)
        codec = self.made.get(key)
        if codec is None:
            builder = CodecBuilder(self, self.made)
            try:
                codec = builder.codec(annotation)
            except NameError as error:
                raise TypeError(f"an annotation inside of {annotation!r}: {error}") from error
            self.made.update(builder.made)
        return codec

    def declaration(self, cls: type[Any]) -> Declaration | None:
        """What a class or a base of it was declared as; None if it encodes itself, or that was in another registry."""
        for base in cls.__mro__:
            if base in self._declared:
                return self._declared[base]
        if hasattr(cls, "__amqp_encode_at__") or hasattr(cls, "__amqp_encode__"):
            return None
        return self.default._replace(encoding="list") if issubclass(cls, tuple) else self.default

    def adaptation(self, cls: type[Any]) -> Adaptation | None:
        """How ``adapt`` was told to carry it."""
        return self._adapted.get(cls)

    def object_codec(self, cls: type[Any]) -> Codec | None:
        """The codec of the objects of a class of fields or an adapted one; None for any other."""
        try:
            return self._objects[cls]
        except KeyError:
            pass
        adapted = next((base for base in cls.__mro__ if base in self._adapted), None)
        codec = None
        if adapted is not None and (cls is adapted or cls not in PLAIN_CODECS):
            codec = self.codec(adapted)
        elif is_struct(cls) and self.declaration(cls) is not None:
            codec = self.codec(cls)
        self._objects[cls] = codec
        return codec

    def subclass(self, bases: tuple[type[Any], ...], key: Any) -> Codec | None:
        """The codec of a descriptor, if its class is a subclass of one of ``bases``."""
        cls = self.described.get(key)
        if cls is None or typing.is_typeddict(cls) or not issubclass(cls, bases):
            return None
        return self.codec(cls)

    def names(self) -> dict[str, Any]:
        """The declared classes by name."""
        return {cls.__name__: cls for cls in self._declared}

    def _by_descriptor(self, descriptor: Any) -> Codec | None:
        cls = self.described.get(descriptor_key(descriptor))
        return None if cls is None else self.codec(cls)
