"""AMQP values as what JSON has, for people and for programs without AMQP (1.6).

Knows values only: which part of a message they are is the caller's business.
"""

from __future__ import annotations

import base64
import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from trio_amqp10.wire.pair_map import PairMap
from trio_amqp10.wire.values import Described, ZeroWidthArray

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["to_json"]


def to_json(value: Any) -> Any:
    """An AMQP value as what JSON has.

    Binary is ``{"base64": ...}``, a timestamp milliseconds, a uuid or a decimal a string, a
    described value ``{"descriptor": ..., "value": ...}``, and a map whose keys are not all
    strings, or not all different as such, a list of pairs.
    """
    raw: Any = value  # what a type checker does not narrow to a list or dict of unknowns
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (uuid.UUID, Decimal)):
        return str(value)
    if isinstance(value, (dict, PairMap)):
        return _map_to_json(raw)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in raw]
    if isinstance(value, Described):
        return {"descriptor": to_json(value.descriptor), "value": to_json(value.value)}
    if isinstance(value, ZeroWidthArray):
        return {"element_code": value.code, "count": value.count}
    return str(value)


def _map_to_json(items: Mapping[Any, Any]) -> Any:
    if all(isinstance(key, str) for key in items):
        named = {str(key): to_json(item) for key, item in items.items()}
        if len(named) == len(items):
            return named
    return [[to_json(key), to_json(item)] for key, item in items.items()]
