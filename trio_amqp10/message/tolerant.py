"""Message classes that read less strictly, one for each setting (1.6.23, 3.2).

Knows nothing of deliveries or links: who reads the octets asks here what to read them as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .message import Message

if TYPE_CHECKING:
    from trio_amqp10.protocol_rules import Strict

__all__ = ["message_class"]


class _AnyOrder(Message):
    __slots__ = ()
    _in_order = False


class _LastOfDuplicates(Message):
    __slots__ = ()
    _allow_duplicates = True


class _Tolerant(_AnyOrder, _LastOfDuplicates):
    __slots__ = ()


_CLASSES: Final[dict[tuple[bool, bool], type[Message]]] = {
    (True, True): Message,
    (True, False): _AnyOrder,
    (False, True): _LastOfDuplicates,
    (False, False): _Tolerant,
}


def message_class(strict: Strict) -> type[Message]:
    """What to read received octets as, by the two rules about messages that can be held strictly or not."""
    return _CLASSES[strict.duplicate_map_keys, strict.section_order]
