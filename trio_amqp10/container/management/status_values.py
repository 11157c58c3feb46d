"""Statuses as values of AMQP, and back.

A status is a map of its fields, with ``-`` for ``_``; that of a node has its class in ``status``. Maps, tuples and statuses within
it are values too. Arguments of declarations are JSON in a string, because field tables have types that AMQP 1.0 does not have.

Knows the fields of statuses; knows no container and no request.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from trio_amqp10.broker.exchanges.argument_equality import from_json, to_json
from trio_amqp10.broker.nodes.policy import QueuePolicy
from trio_amqp10.core.errors import LocalProtocolError

from .status import ExchangeStatus, MessageStatus, NodeStatus, QueueStatus, StoreStatus, TopicStatus

S = TypeVar("S")

Values: TypeAlias = dict[str, Any]

_NODES: Final[dict[str, type[NodeStatus]]] = {
    "node": NodeStatus,
    "queue": QueueStatus,
    "topic": TopicStatus,
    "exchange": ExchangeStatus,
}
"""The classes of statuses of nodes, by their names in ``status``."""
_NAMES: Final = {cls: name for name, cls in _NODES.items()}

_NOT_SENT: Final[dict[type, tuple[str, ...]]] = {MessageStatus: ("queue", "message", "content")}

# -- to values ------------------------------------------------------------------------------


def to_values(status: Any) -> Values:
    """Return the fields of a status as values of AMQP."""
    values = {
        each.name.replace("_", "-"): _value_of(each.name, getattr(status, each.name))
        for each in fields(status)
    }
    name = _NAMES.get(status.__class__)
    return values if name is None else {"status": name, **values}


def _value_of(name: str, value: Any) -> Any:
    if name == "arguments":
        return write_arguments(value)
    if is_dataclass(value):
        return to_values(value)
    found, some = as_map(value), as_list(value)
    return dict(found) if found is not None else list(some) if some is not None else value


def write_arguments(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a declaration, or the headers of a message, as JSON."""
    return json.dumps({str(key): to_json(each) for key, each in arguments.items()})


def as_map(value: Any) -> Mapping[Any, Any] | None:
    """Return the value if it is a map, and None otherwise."""
    return value if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> Sequence[Any] | None:
    """Return the value if it is a list or a tuple, and None otherwise."""
    return value if isinstance(value, (list, tuple)) else None  # pyright: ignore[reportUnknownVariableType]


_DEEPEST: Final = 24
"""Levels of maps and lists within a reply, of the 32 that a message may have."""


def encodable(value: Any, depth: int = _DEEPEST) -> Any:
    """Return the value, or one like it that AMQP 1.0 can carry.

    Octets that are not UTF-8 are escaped in texts, decimals and numbers of more than 64 bits are texts, and what is nested too
    deep is ``"..."``.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Decimal) or (isinstance(value, int) and not -(2**63) <= value < 2**64):
        return str(value)
    found, some = as_map(value), as_list(value)
    if found is None and some is None:
        return value
    if not depth:
        return "..."
    if found is not None:
        return {encodable(key): encodable(each, depth - 1) for key, each in found.items()}
    return [encodable(each, depth - 1) for each in some or ()]


# -- from values ----------------------------------------------------------------------------


def from_values(cls: type[S], values: Any) -> S:
    """Return the status of this class that ``to_values`` has made values of.

    Of ``NodeStatus`` it may be a subclass. Further values, as of a later version, are ignored.

    Raises:
        ValueError: a value is missing, or of another type; or the status is of another class.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"a status is {type(values).__name__}: expected a map")
    given = cast("Mapping[str, Any]", values)
    made: Any = cls
    if issubclass(cls, NodeStatus):
        name = _text("status", given.get("status", _MISSING))
        made = _NODES.get(name, NodeStatus)
        if not issubclass(made, cls):
            raise ValueError(f"status={name!r:.64}: expected {_NAMES[cls]!r}")
    arguments = {name: read(key, given.get(key, _MISSING)) for name, key, read in _fields_of(made)}
    try:
        return cast("S", made(**arguments))
    except LocalProtocolError as fault:
        raise ValueError(str(fault)) from fault


def read_message_figures(values: Any) -> tuple[dict[str, Any], bytes]:
    """Return the figures of a message for ``MessageStatus``, and its octets.

    Raises:
        ValueError: a value is missing, or of another type.
    """
    given = _map("messages", values)
    payload = given.get("message", _MISSING)
    if not isinstance(payload, bytes):
        raise _fault("message", payload, "binary")
    found = {name: read(key, given.get(key, _MISSING)) for name, key, read in _fields_of(MessageStatus)}
    return found, payload


class _Missing:
    """The value that is not there."""

    def __repr__(self) -> str:
        return "nothing"


_MISSING: Final = _Missing()

_Read: TypeAlias = Callable[[str, Any], Any]


@cache
def _fields_of(cls: type) -> list[tuple[str, str, _Read]]:
    """Return the name, the key and the reader of each field of a status."""
    return [
        (each.name, each.name.replace("_", "-"), _reader(each.name, str(each.type)))
        for each in fields(cast("Any", cls))
        if each.name not in _NOT_SENT.get(cls, ())
    ]


def _reader(name: str, annotation: str) -> _Read:
    """Return a function of a key and a value that returns the value as this type."""
    kind = annotation.removesuffix(" | None")
    if kind.startswith("Literal["):
        read: _Read = partial(_choice, ast.literal_eval(kind.removeprefix("Literal")))
    else:
        read = read_arguments if name == "arguments" else _READERS[kind]
    return read if kind == annotation else partial(_optional, read)


def _fault(key: str, value: Any, expected: str) -> ValueError:
    return ValueError(f"{key}={value!r:.64}: expected {expected}")


def _optional(read: _Read, key: str, value: Any) -> Any:
    return None if value is None else read(key, value)


def _choice(choices: list[str], key: str, value: Any) -> str:
    if value not in choices:
        raise _fault(key, value, " or ".join(choices))
    return str(value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _fault(key, value, "a string")
    return str(value)


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _fault(key, value, "true or false")
    return value


def _whole(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _fault(key, value, "a whole number")
    return int(value)


def _number(key: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _fault(key, value, "a number")
    return float(value)


def _map(key: str, value: Any) -> dict[str, Any]:
    given = as_map(value)
    if given is None:
        raise _fault(key, value, "a map")
    return {_text(key, each): found for each, found in given.items()}


def read_counts(key: str, value: Any) -> dict[str, int]:
    """Return a map of whole numbers.

    Raises:
        ValueError: it is none.
    """
    return {each: _whole(f"{key} {each}", found) for each, found in _map(key, value).items()}


def read_arguments(key: str, value: Any) -> dict[str, Any]:
    """Return the arguments that ``write_arguments`` has made a text of.

    Raises:
        ValueError: it is no such text.
    """
    try:
        given: Any = json.loads(_text(key, value))
    except RecursionError as fault:
        raise ValueError(f"{key}: {fault}") from fault
    arguments = _map(key, given)
    try:
        return {each: from_json(found) for each, found in arguments.items()}
    except ValueError as fault:
        raise ValueError(f"{key}: {fault}") from fault


def _texts(key: str, value: Any) -> tuple[str, ...]:
    given = as_list(value)
    if given is None:
        raise _fault(key, value, "a list")
    return tuple(_text(key, each) for each in given)


_READERS: Final[dict[str, _Read]] = {
    "str": _text,
    "bool": _flag,
    "int": _whole,
    "float": _number,
    "Mapping[str, Any]": _map,
    "Mapping[str, int]": read_counts,
    "Mapping[Death, int]": read_counts,
    "tuple[str, ...]": _texts,
    "Overflow": _text,
    "Bound": _text,
    "QueuePolicy": lambda _, value: from_values(QueuePolicy, value),
    "StoreStatus": lambda _, value: from_values(StoreStatus, value),
}
"""The reader of each type of a field, by the text of its annotation."""
