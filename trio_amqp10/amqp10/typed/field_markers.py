"""Marks of a field beside its type, as in ``Annotated[int, Key("unit-price")]``.

Knows nothing of codecs: ``fields`` reads the marks.
"""

from __future__ import annotations

from typing import Final


class Key:
    """The key of a field in a map, if it differs from the name in Python.

    ``field(metadata={"amqp": "unit-price"})`` does the same in a dataclass.

    Args:
        name: the key; ASCII if the keys are symbols.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Key) else NotImplemented

    def __hash__(self) -> int:
        return hash((Key, self.name))

    def __repr__(self) -> str:
        return f"Key({self.name!r})"


class _Rest:
    """The class of ``REST``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REST"


REST: Final = _Rest()
"""Marks the field of a map with all keys that are not other fields, both ways.

``others: Annotated[dict[str, Any], REST]``
"""
