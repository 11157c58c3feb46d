"""Message classes, one for each strictness of reading (1.6.23, 3.2).

Knows nothing of deliveries or links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .message import Message

if TYPE_CHECKING:
    from trio_amqp10.core.peer_rules import Strict


class _InOrder(Message):
    __slots__ = ()
    _in_order = True


class _LastOfDuplicates(Message):
    __slots__ = ()
    _allow_duplicates = True


class _LastOfDuplicatesInOrder(_InOrder, _LastOfDuplicates):
    __slots__ = ()


_CLASSES: Final[dict[tuple[bool, bool], type[Message]]] = {
    (True, True): _InOrder,
    (True, False): Message,
    (False, True): _LastOfDuplicatesInOrder,
    (False, False): _LastOfDuplicates,
}


def message_class(strict: Strict) -> type[Message]:
    """Return the class to read received octets with, by the strictness of two rules."""
    return _CLASSES[strict.duplicate_map_keys, strict.section_order]
