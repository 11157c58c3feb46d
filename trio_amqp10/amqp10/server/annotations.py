"""Additions to the annotations of received messages (3.2.3, 3.4.5).

Keys must be symbols or ulongs (3.2.10). Other keys of a peer are passed on unchanged, so that no message is lost
because of them.

Knows maps; knows no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping


def merged(there: Mapping[Any, Any], more: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the annotations ``there`` with ``more``, which take precedence.

    Each key keeps its type; a plain str in ``more`` becomes a symbol.
    """
    if not _is_special(there) and not _is_special(more):
        return {**there, **more}
    pairs: PairMap[Any, Any] = PairMap()
    for key, value in more.items():
        pairs.add(Symbol(key) if key.__class__ is str else key, value)
    for key, value in there.items():
        pairs.add(key, value)  # A key that ``more`` has already added keeps its value.
    return pairs


def _is_special(annotations: Mapping[Any, Any]) -> bool:
    """Whether these annotations do not fit into a dict with keys that can be encoded."""
    if isinstance(annotations, PairMap):
        return True
    return not all(isinstance(key, (str, int)) and not isinstance(key, bool) for key in annotations)
