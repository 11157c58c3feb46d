"""Read a TOML file for a command, and report all that is wrong with it, by key.

Knows no key: the caller has them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

import click

from .command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

_MOST: Final = 64 * 1024 * 1024
"""The most octets of a file: a device would have no end."""

_TYPES: Final[dict[type, str]] = {
    str: "a string",
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    list: "an array",
    dict: "a table",
}


@dataclass(slots=True)
class Faults:
    """The faults of one file, each with its key.

    Attributes:
        file: the name of the file.
        lines: the faults, in the order in which they were found.
    """

    file: str
    lines: list[str] = field(default_factory=list[str])

    def add(self, key: str, fault: str) -> None:
        """Add a fault of a key, or of the whole file if the key is empty."""
        self.lines.append(f"{self.file}: {key}: {fault}" if key else f"{self.file}: {fault}")

    def unknown(self, found: Mapping[str, Any], known: Collection[str], where: str = "") -> None:
        """Note each key of a table that is not one of ``known``, and the nearest of these."""
        for key in found:
            if key not in known:
                shown = dotted(where, key)
                self.add(shown, f"unknown key{nearest(key, known)}")

    def typed(self, key: str, value: Any, *kinds: type) -> bool:
        """Whether a value has one of these types; a fault if not. A boolean is no number."""
        if value.__class__ in kinds:
            return True
        self.add(key, f"expected {_either(kinds)}, not {_shown(value)}")
        return False

    def parsed(self, key: str, parse: Callable[[Any], Any], value: Any) -> Any:
        """Return ``parse(value)``; a ``click.BadParameter`` becomes a fault, and None."""
        try:
            return parse(value)
        except click.BadParameter as wrong:
            self.add(key, wrong.message)
        return None

    def check(self) -> None:
        """Raise the faults, if there are any.

        Raises:
            CommandError: one line for each, with code 2.
        """
        if self.lines:
            raise CommandError("\namqp10: ".join(self.lines), 2)


def dotted(where: str, *keys: str) -> str:
    """Return the key of a member of ``where``, quoted as TOML requires."""
    names = [key if _is_bare(key) else _quoted(key) for key in keys]
    return ".".join([where, *names] if where else names)


def _is_bare(key: str) -> bool:
    return key.isascii() and all(part.isalnum() for part in key.replace("_", "-").split("-"))


def _quoted(key: str) -> str:
    text = key if len(key) <= 60 else f"{key[:60]}..."
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the nearest known word as a question, or else all known words."""
    names = sorted(known)
    if not names:
        return "; there are none here"
    close = get_close_matches(word, names, 1, 0.6)
    return f"; did you mean {close[0]}?" if close else f"; expected one of {', '.join(names)}"


def read_text(path: str) -> str:
    """Read a text file of UTF-8, with or without a byte order mark.

    Raises:
        CommandError: it is not UTF-8, or has no end.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        octets = file.read(_MOST + 1)
    if len(octets) > _MOST:
        raise CommandError(f"{path} has more than {_MOST} octets: is it the right file?", 2)
    try:
        return octets.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = octets.count(b"\n", 0, wrong.start) + 1
        raise CommandError(f"{path}: line {line} is not UTF-8: save the file as UTF-8", 2) from None


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        CommandError: it is not TOML, not UTF-8, or has no end.
        OSError: it cannot be read.
    """
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise CommandError(f"{path} is not TOML: {wrong}", 2) from None
    except (
        RecursionError,
        ValueError,
    ) as wrong:  # nested too deeply; a number of more digits than Python reads
        why = "the values are nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
        raise CommandError(f"{path} is not TOML that can be read: {why}", 2) from None


def type_name(value: Any) -> str:
    """Return the name of the type of a value of TOML or JSON."""
    return _TYPES.get(value.__class__, "null" if value is None else "a date or time")


def _either(kinds: Iterable[type]) -> str:
    return " or ".join(_TYPES[kind] for kind in kinds)


def _shown(value: Any) -> str:
    if isinstance(value, (str, bool, int, float)):
        text = (
            str(value).lower()
            if isinstance(value, bool)
            else repr(value)
            if isinstance(value, str)
            else str(value)
        )
        return f"{type_name(value)} ({text if len(text) <= 60 else text[:60] + '...'})"
    return type_name(value)
