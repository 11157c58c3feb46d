"""Check the arguments that a program gives, before anything is sent.

A check raises ``LocalProtocolError``, with the name and the value of the argument.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from .errors import LocalProtocolError


def shown(value: object) -> str:
    """Return the ``repr`` of a value; that of a long one is shortened."""
    return reprlib.repr(value)


def check_type(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise unless ``value`` is of one of ``kinds``.

    Raises:
        LocalProtocolError: it is of another type; the message has ``expected``.
    """
    if not isinstance(value, kinds):
        raise LocalProtocolError(f"{name}={shown(value)}: expected {expected}")


def check_text(name: str, value: object) -> None:
    """Raise unless ``value`` is a ``str``.

    Raises:
        LocalProtocolError: it is of another type.
    """
    check_type(name, value, str, "a str")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise unless ``value`` is a whole number of at least ``least``.

    Raises:
        LocalProtocolError: it is of another type, or less.
    """
    if not isinstance(value, int) or value < least:
        raise LocalProtocolError(f"{name}={shown(value)}: expected a whole number, at least {least}")


def check_timeout(value: Any) -> None:
    """Raise unless ``value`` is a number of seconds.

    Raises:
        LocalProtocolError: it is of another type, less than 0, or not a number.
    """
    if not (isinstance(value, int | float) and value >= 0):
        raise LocalProtocolError(f"timeout={shown(value)}: expected seconds, 0 or more, or None for any time")


def check_callable(name: str, value: object) -> None:
    """Raise unless ``value`` can be called.

    Raises:
        LocalProtocolError: it cannot.
    """
    if not callable(value):
        raise LocalProtocolError(f"{name}={shown(value)}: expected an async function")


def table_of(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of a mapping; None is an empty one.

    Raises:
        LocalProtocolError: it is of another type.
    """
    check_type(name, value, (Mapping, type(None)), "a mapping, such as a dict, or None")
    return dict(value or {})
