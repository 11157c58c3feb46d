"""Refuse text, as an environment variable has, in place of a number in options."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from .errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

_DECLARED: Final = {
    "int": ("__index__", False, "an int"),
    "int | None": ("__index__", True, "an int or None"),
    "float": ("__float__", False, "a number"),
    "float | None": ("__float__", True, "a number or None"),
}
"""Method, whether None is accepted, and words for an error, by declared type."""


def check_numbers(options: Any) -> None:
    """Check that each field declared as ``int`` or ``float`` is a number, and no bool.

    None is accepted if it is declared.

    Raises:
        LocalProtocolError: a field has a value of another type.
    """
    for name, (method, optional, expected) in _number_fields(options.__class__):
        value: Any = getattr(options, name)
        is_number = hasattr(value, method) and value.__class__ is not bool
        if not (is_number or (optional and value is None)):
            raise LocalProtocolError(f"{name}={value!r}: expected {expected}")


def check_range(name: str, value: float | None, least: float, most: float = inf) -> None:
    """Check that an option is None or in this range, so that it is not NaN.

    Raises:
        LocalProtocolError: it is not.
    """
    if value is not None and not least <= value <= most:
        expected = f"at least {least}" if most == inf else f"{least} to {most}"
        raise LocalProtocolError(f"{name}={value!r}: expected {expected}")


def check_time_limits(options: Any, *names: str) -> None:
    """Check that each of these fields is None or more than 0, to leave some time.

    Raises:
        LocalProtocolError: one is not.
    """
    for name in names:
        seconds = getattr(options, name)
        if seconds is not None and not seconds > 0:
            raise LocalProtocolError(f"{name}={seconds!r}: expected seconds above 0, or None for any time")


def check_ranges(options: Any, ranges: Mapping[str, tuple[float, ...]]) -> None:
    """Check that each field is None, or in its range; the others are at least 0.

    Args:
        options: a dataclass whose fields are numbers.
        ranges: the least value of a field and, if there is one, the largest, by its name.

    Raises:
        LocalProtocolError: a value is out of its range.
    """
    for field in fields(options):
        check_range(field.name, getattr(options, field.name), *ranges.get(field.name, (0,)))


@cache
def _number_fields(cls: type[object]) -> list[tuple[str, tuple[str, bool, str]]]:
    """Return the name of each number field, and its entry of ``_DECLARED``."""
    return [
        (field.name, _DECLARED[field.type]) for field in fields(cast("Any", cls)) if field.type in _DECLARED
    ]
