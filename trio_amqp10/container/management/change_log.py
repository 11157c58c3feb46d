"""The log of changes through management: logger ``trio_amqp10.management``.

A line consists of ``key=value``. The values are those of JSON, in ASCII and shortened, so no name that a peer chose can look like
another value or another line. A change is logged at INFO when it is over, a missing permission at WARNING.

Knows the names of operations; does none of them.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.net.urls import hide_login

from .errors import ManagementError
from .status import Imported, Redriven

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CHANGES: Final[dict[str, str]] = {
    "create_queue": "create-queue",
    "create_topic": "create-topic",
    "set_queue": "set-queue",
    "set_topic": "set-topic",
    "delete": "delete",
    "purge": "purge",
    "hold": "hold",
    "redirect": "redirect",
    "publish_content": "publish",
    "get": "get",
    "move": "move",
    "redrive": "redrive",
    "declare_queue": "declare-queue",
    "declare_exchange": "declare-exchange",
    "delete_exchange": "delete-exchange",
    "bind": "bind",
    "unbind": "unbind",
    "import_definitions": "import-definitions",
    "close_connection": "close-connection",
    "close_link": "close-link",
    "watch_frames": "watch-frames",
}
"""The calls of ``Management`` that are logged, with the operation in the line.

They change something, or show what passes on the connection of another.
"""

_HIDDEN: Final = {"content", "given"}
"""Arguments that are not logged: a message, and definitions."""
_MOST_TEXT: Final = 256
_MOST_ITEMS: Final = 16
_DEEPEST: Final = 3
_LARGEST: Final = 2**64

_log: Final = logging.getLogger("trio_amqp10.management")


@dataclass(frozen=True, slots=True)
class Asker:
    """The one on behalf of whom management works.

    Attributes:
        user: the authenticated name; None without one.
        face: the face of management that is used; None if it is not known.
        host: the IP address; None if there is none.
        connection: the number of its connection; None without a connection to the container.
    """

    user: str | None
    face: str | None
    host: str | None
    connection: int | None

    @classmethod
    def of(cls, who: Any, face: str | None) -> Asker:
        """Return the asker for a connected peer or an unconnected user."""
        return cls(user_of(who.identity), face, who.host, getattr(who, "number", None))


def logged(name: str, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a call of management that logs itself; its object has an ``asker``.

    Args:
        name: the name of the call.
        method: the call.
    """

    @wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        def write(level: int, outcome: str, **more: Any) -> None:
            if _log.isEnabledFor(level):
                given = inspect.signature(method).bind(self, *args, **kwargs).arguments
                _log.log(level, "%s", _line(CHANGES[name], self.asker, given, outcome, more))

        try:
            result = await method(self, *args, **kwargs)
        except ManagementError as refusal:
            level = logging.WARNING if refusal.reason == "forbidden" else logging.INFO
            write(level, "refused", error=refusal.reason, description=refusal.description)
            raise
        except BaseException:
            write(logging.INFO, "unknown")
            raise
        write(logging.INFO, "done", **_figures(result))
        return result

    return call


def _line(operation: str, asker: Asker, given: dict[str, Any], outcome: str, more: dict[str, Any]) -> str:
    """Return the line for a call with these arguments; the first is its object."""
    shown = [(key, value) for key, value in list(given.items())[1:] if key not in _HIDDEN]
    parts = [f"operation={operation}"]
    if shown:
        parts.append(f"name={_value(shown[0][1])}")
    if len(shown) > 1:
        rest = {
            key: hide_login(value) if key == "url" and isinstance(value, str) else value
            for key, value in shown[1:]
        }
        parts.append(f"arguments={_value(rest)}")
    parts += [f"user={_value(asker.user)}", f"face={_value(asker.face)}", f"host={_value(asker.host)}"]
    if asker.connection is not None:
        parts.append(f"connection={asker.connection}")
    parts.append(f"outcome={outcome}")
    parts += [f"{key}={_value(value)}" for key, value in more.items()]
    return " ".join(parts)


def _figures(result: object) -> dict[str, int]:
    """Return how much a call has done: messages, or definitions."""
    match result:
        case int():
            return {"count": int(result)}
        case list():
            return {"count": len(cast("list[object]", result))}
        case Redriven():
            return {"count": sum(result.moved.values())}
        case Imported():
            return {"count": sum(result.made.values()), "left_out": len(result.left_out)}
        case _:
            return {}


def _value(value: object) -> str:
    """Return a value as short JSON of printable ASCII."""
    return json.dumps(_plain(value))


def _plain(value: object, depth: int = 0) -> Any:
    """Return the beginning of a value of JSON, or the type of another value."""
    match value:
        case None | bool() | float():
            return value
        case int() if abs(value) < _LARGEST:
            return int(value)
        case str():
            return _cut(value)
        case Mapping() if depth < _DEEPEST:
            items = cast("Mapping[object, object]", value).items()
            shown = {
                f"{_plain(key, _DEEPEST)}": _plain(each, depth + 1)
                for key, each in islice(items, _MOST_ITEMS)
            }
            return shown if len(items) <= _MOST_ITEMS else {**shown, "...": len(items) - _MOST_ITEMS}
        case list() | tuple() if depth < _DEEPEST:
            values = cast("list[object] | tuple[object]", value)
            return [_plain(each, depth + 1) for each in islice(values, _MOST_ITEMS)]
        case _:
            return f"<{type(value).__name__}>"


def _cut(text: str) -> str:
    rest = len(text) - _MOST_TEXT
    return str(text) if rest <= 0 else f"{text[:_MOST_TEXT]}... and {rest} characters more"
