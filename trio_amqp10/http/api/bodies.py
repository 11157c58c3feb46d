"""Bodies of requests: read within limits, parsed and checked.

A body is an object of JSON whose values a message or an argument can have: whole numbers of 64 bits, finite numbers, text that is
Unicode, at most 32 levels deep.

Knows JSON; knows no operation.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast

from trio_amqp10.container.management.pace import Pace
from trio_amqp10.core.short_strings import is_unicode
from trio_amqp10.http.access import too_large
from trio_amqp10.http.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

T = TypeVar("T")

_DEEPEST: Final = 32
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_NAMES: Final[dict[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
    dict: "an object",
    list: "a list",
}
_MISSING: Final = object()


def bad(reason: str) -> RequestError:
    """Return the error for a request that is not valid."""
    return RequestError(400, "bad_request", reason)


async def read_object(request: Request, most: int) -> dict[str, Any]:
    """Return the object in the body of a request; an empty body has an empty one.

    Args:
        request: the request.
        most: octets at most.

    Raises:
        RequestError: 413, the body is larger; 400, it is not such an object.

    Cancelled: nothing has changed.
    """
    octets, more = bytearray(), True
    while more:  # an object of Starlette's would have to be closed when the limit is reached
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise bad("the body ended too early")
        octets += message.get("body", b"")
        if len(octets) > most:
            raise too_large(most)
        more = message.get("more_body", False)
    if not octets:
        return {}
    try:
        found = json.loads(octets.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as wrong:
        shown = "too deep" if isinstance(wrong, RecursionError) else str(wrong)[:128]
        raise bad(f"the body is not valid JSON: {shown}") from None
    if not isinstance(found, dict):
        raise bad("the body is no object of JSON, such as {}")
    await _check(found)
    return cast("dict[str, Any]", found)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}: expected a number of JSON")


async def _check(value: Any) -> None:
    """Check all values in an object, in pieces."""
    pace = Pace()
    rest: list[tuple[Any, int]] = [(value, 1)]
    while rest:
        await pace.pause()
        each, depth = rest.pop()
        if depth > _DEEPEST:
            raise bad(f"the body has more than {_DEEPEST} levels")
        if isinstance(each, dict):
            table = cast("dict[str, Any]", each)
            rest += [(key, depth + 1) for key in table]
            rest += [(inner, depth + 1) for inner in table.values()]
        elif isinstance(each, list):
            values: list[Any] = each  # pyright: ignore[reportUnknownVariableType]
            rest += [(inner, depth + 1) for inner in values]
        elif isinstance(each, str):
            check_text(each)
        elif isinstance(each, float):
            if not math.isfinite(each):
                raise bad("a number in the body is too large")
        elif isinstance(each, int) and not _SMALLEST <= each <= _LARGEST:
            raise bad("a whole number in the body has more than 64 bits")


def check_text(text: str) -> None:
    """Raise ``RequestError`` if a text is not Unicode: a surrogate is alone in it."""
    if not is_unicode(text):
        raise bad("a string has a surrogate that is alone: it is not valid Unicode")


def field(body: Mapping[str, Any], name: str, kind: type[T], default: Any = _MISSING) -> T:
    """Return a value of an object.

    Args:
        body: the object.
        name: the key.
        kind: the type of the value. As at RabbitMQ, ``"true"`` and ``"false"`` are booleans too, a text of digits is a number, and
            an empty list is an empty object.
        default: the value if there is none; without it, a value is needed.

    Raises:
        RequestError: 400, the value is missing, or of another type.
    """
    value: Any = body.get(name, _MISSING)
    if value is _MISSING:
        if default is _MISSING:
            raise bad(f"{name} is missing: expected {_NAMES[kind]}")
        return cast("T", default)
    if kind is bool and value in ("true", "false"):
        return cast("T", value == "true")
    if kind is int and isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) < 19:
        return cast("T", int(value))
    if kind is dict and value == []:
        return cast("T", {})
    if value.__class__ is not kind:
        raise bad(f"{name}={str(value)[:64]!r}: expected {_NAMES[kind]}")
    return value  # pyright: ignore[reportReturnType]
