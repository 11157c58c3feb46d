"""The tables of a registry: declared classes, descriptors, and finished codecs.

A ``Registry`` is the public interface of these tables. Knows no value and no annotation: ``codec_builder``
makes codecs, and the tables keep them.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.composite_plan import descriptor_key

from .codec_builder import CodecBuilder, key_of
from .compounds import any_codec
from .fields import is_struct
from .scalars import PLAIN_CODECS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .codec import Codec
    from .structs import Declaration

Adaptation = tuple[Any, "Callable[[Any], Any]", "Callable[[Any], Any]"]
"""The annotation that an adapted class is sent as, and two functions.

The functions convert an object to that annotation, and back.
"""


class CodecTables:
    """The tables of a registry.

    Args:
        default: the declaration of classes that are not declared.

    Attributes:
        anything: the codec of a value of any type.
        described: the class of each descriptor.
        made: the codecs so far, by the ``key_of`` their annotations.
    """

    def __init__(self, default: Declaration) -> None:
        self.default = default
        self.described: dict[Any, type[Any]] = {}
        self.made: dict[Any, Codec] = {}
        self.anything: Final = any_codec(self._by_descriptor, self.object_codec)
        self._declared: dict[type[Any], Declaration] = {}
        self._adapted: dict[type[Any], Adaptation] = {}
        self._objects: dict[type[Any], Codec | None] = {}

    # -- declarations

    def include(self, other: CodecTables) -> None:
        """Add all declarations of another registry.

        Raises:
            TypeError: a descriptor belongs to one class there and to another here.
        """
        for descriptor, cls in other.described.items():
            self.describe(cls, frozenset({descriptor}))
        self._declared |= other._declared
        self._adapted |= other._adapted

    def describe(self, cls: type[Any], descriptors: frozenset[Any]) -> None:
        """Assign descriptors to a class.

        Raises:
            TypeError: one of them belongs to another class.
        """
        for descriptor in descriptors:
            other = self.described.get(descriptor)
            if other is not None and other is not cls:
                raise TypeError(f"{descriptor!r} describes {other.__name__} already")
        self.described |= dict.fromkeys(descriptors, cls)

    def declare(self, cls: type[Any], declaration: Declaration) -> None:
        """Declare how a class is encoded; change nothing if that fails.

        Raises:
            TypeError: it is not a dataclass, NamedTuple or TypedDict, is in use, or has an annotation without
                an AMQP type.
        """
        if not is_struct(cls):
            raise TypeError(
                f"{cls.__name__} is not a dataclass, NamedTuple or TypedDict: put @dataclass below"
            )
        self._check_unused(cls)
        self.describe(cls, declaration.descriptors)
        self._declared[cls] = declaration
        builder = CodecBuilder(self, self.made)
        try:
            builder.codec(cls)
        except NameError:  # a class that is defined later; the first use raises if it is not
            pass
        except BaseException:
            del self._declared[cls]
            for descriptor in declaration.descriptors:
                del self.described[descriptor]
            raise
        else:
            self.made.update(builder.made)

    def adapt(self, cls: type[Any], adaptation: Adaptation) -> None:
        """Encode a class as another annotation.

        Raises:
            TypeError: the class is in use.
        """
        self._check_unused(cls)
        self._adapted[cls] = adaptation

    def _check_unused(self, cls: type[Any]) -> None:
        if cls in self.made or self._objects.get(cls) is not None or cls in self._declared:
            raise TypeError(f"{cls.__name__} is in use already: declare or adapt it before its first use")

    # -- look-ups

    def codec(self, annotation: Any) -> Codec:
        """Return the codec of an annotation, made at the first call.

        Raises:
            TypeError: it has no AMQP type, or has a name that is not defined.
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
        """Return the declaration of a class, or of its first declared base.

        None if the class encodes itself, or was declared in another registry.
        """
        for base in cls.__mro__:
            if base in self._declared:
                return self._declared[base]
        if hasattr(cls, "__amqp_encode_at__") or hasattr(cls, "__amqp_encode__"):
            return None
        return self.default._replace(encoding="list") if issubclass(cls, tuple) else self.default

    def adaptation(self, cls: type[Any]) -> Adaptation | None:
        """Return the adaptation of a class, or None."""
        return self._adapted.get(cls)

    def object_codec(self, cls: type[Any]) -> Codec | None:
        """Return the codec of a class with fields, or an adapted class.

        None for any other class.
        """
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
        """Return the codec of a descriptor whose class is a subclass of ``bases``."""
        cls = self.described.get(key)
        if cls is None or typing.is_typeddict(cls) or not issubclass(cls, bases):
            return None
        return self.codec(cls)

    def names(self) -> dict[str, Any]:
        """Return the declared classes by name."""
        return {cls.__name__: cls for cls in self._declared}

    def _by_descriptor(self, descriptor: Any) -> Codec | None:
        cls = self.described.get(descriptor_key(descriptor))
        return None if cls is None else self.codec(cls)
