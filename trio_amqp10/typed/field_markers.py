"""What an annotation can say of a field besides its type: ``Annotated[int, Key("unit-price")]``.

Knows nothing of codecs: ``build`` reads these.
"""

from __future__ import annotations

from typing import Final

__all__ = ["REST", "Key"]


class Key:
    """The key of a field in a map, where it is not its name in Python.

    In a dataclass, ``field(metadata={"amqp": "unit-price"})`` says the same.

    Args:
        name: the key; ASCII where the keys are symbols.
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
    """The class of ``REST``, which marks the field of a map that holds the keys of no other field."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "REST"


REST: Final = _Rest()
"""Marks the one field of a map that holds every key which is no other field's, both ways:
``others: Annotated[dict[str, Any], REST]``."""
