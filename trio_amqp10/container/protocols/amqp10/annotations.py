"""Annotations of received messages, with more of them on top (3.2.3, 3.4.5).

Keys are symbols or ulongs (3.2.10), yet a peer may send others, and a message is not to be lost for that: they go on as they came.

Knows maps; knows no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.wire.pair_map import PairMap
from trio_amqp10.wire.values import Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["merged"]


def merged(there: Mapping[Any, Any], more: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """``there`` with ``more`` on top, each key of the type that it has; a plain str of ``more`` is a symbol."""
    if not _is_special(there) and not _is_special(more):
        return {**there, **more}
    pairs: PairMap[Any, Any] = PairMap()
    for key, value in more.items():
        pairs.add(Symbol(key) if key.__class__ is str else key, value)
    for key, value in there.items():
        pairs.add(key, value)  # where it is not on top already
    return pairs


def _is_special(annotations: Mapping[Any, Any]) -> bool:
    """Whether a dict cannot hold them, or they have keys that cannot be sent out of a dict."""
    if isinstance(annotations, PairMap):
        return True
    return not all(isinstance(key, (str, int)) and not isinstance(key, bool) for key in annotations)
