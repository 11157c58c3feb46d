"""Messages from JSON: one object for each, with body and fields.

It is the form that ``receive --json`` writes.

Knows no connection.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.message import Data, Message, Sequence, Value
from trio_amqp10.core.errors import LocalProtocolError

from .json_types import from_json, pointer
from .message_text import FIELDS, MAPS
from .toml_file import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

_BODY_TYPES: Final = ("data", "value", "sequence")
_MEMBERS: Final = ("body", "body_type", "types", *FIELDS, *MAPS)
_RAW: Final = ("undecodable", "message_format")


def message_from_json(line: bytes) -> Message:
    """Return the message of one line of JSON.

    The object has the members that ``message_json`` writes, all of them optional. ``{"undecodable": ..., "message_format": ...}``
    stands for the octets of a message.

    Raises:
        ValueError: it is not such an object; the text names the member that is wrong.
    """
    try:
        text = line.decode()
        found: Any = json.loads(text, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("the line is not UTF-8: write JSON as UTF-8") from None
    except json.JSONDecodeError as wrong:
        raise ValueError(f"the line is not JSON: {wrong.msg} at column {wrong.colno}") from None
    except RecursionError:
        raise ValueError("the line is nested too deeply: flatten its body") from None
    if not isinstance(found, dict):
        raise ValueError(f'{text[:60]!r}: expected a JSON object, as in {{"body": "tea"}}')
    members = cast("dict[str, Any]", found)
    if "undecodable" in members:
        return _raw(members)
    for name in members:
        if name not in _MEMBERS:
            raise ValueError(f"unknown member {name!r}{nearest(name, _MEMBERS)}")
    types = members.get("types", {})
    if not isinstance(types, dict):
        raise ValueError(f"types={types!r:.60}: expected an object of types by JSON pointers")
    given = cast("dict[str, Any]", types)
    try:
        return Message(
            _body(members, given),
            **{
                name: from_json(members[name], pointer("", name), given) for name in FIELDS if name in members
            },
            **{name: _section(members[name], pointer("", name), given) for name in MAPS if name in members},
        )
    except LocalProtocolError as wrong:
        raise ValueError(str(wrong)) from None
    except RecursionError:
        raise ValueError("the line is nested too deeply: flatten its body") from None


def _no_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON; write it as a string with the type double", name, 0)


def _body(members: Mapping[str, Any], types: Mapping[str, Any]) -> Any:
    kind = members.get("body_type")
    value = from_json(members.get("body"), "/body", types)
    if kind is None:
        return value
    if kind not in _BODY_TYPES:
        raise ValueError(f"body_type {kind!r}: expected one of {', '.join(_BODY_TYPES)}")
    if kind == "data":
        octets = value.encode() if isinstance(value, str) else value
        if not isinstance(octets, bytes):
            raise ValueError('body: a body of data is a string or {"base64": "..."}')
        return Data(octets)
    if kind == "value":
        return Value(value)
    if value.__class__ is not list:
        raise ValueError("body: a sequence is an array")
    return Sequence(value)


def _section(value: Any, where: str, types: Mapping[str, Any]) -> Any:
    """Return a map of a message, whose keys that are no strings are written as pairs."""
    read = from_json(value, where, types)
    if isinstance(value, list) and where not in types:
        pairs = cast("list[Any]", read)
        if not all(pair.__class__ is list and len(pair) == 2 for pair in pairs):
            raise ValueError(f"{where}: expected an object, or an array of pairs of key and value")
        try:
            return dict(cast("list[tuple[Any, Any]]", pairs))
        except TypeError:
            raise ValueError(f"{where}: a key must be a string or a number") from None
    if not hasattr(read, "items"):
        raise ValueError(f"{where}: expected an object")
    return read


def _raw(members: Mapping[str, Any]) -> Message:
    for name in members:
        if name not in _RAW:
            raise ValueError(f"unknown member {name!r} beside undecodable{nearest(name, _RAW)}")
    octets, version = from_json(members["undecodable"], "/undecodable", {}), members.get("message_format", 0)
    if not isinstance(octets, bytes):
        raise ValueError(f'undecodable={members["undecodable"]!r:.60}: expected {{"base64": "..."}}')
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 2**32:
        raise ValueError(f"message_format={version!r}: expected a number from 0 to {2**32 - 1}")
    return Message.from_payload(octets, version)
