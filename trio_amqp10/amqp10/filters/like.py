"""LIKE: match ``%`` and ``_`` in linear time (SQL-92, JMS 3.8.1.1).

A pattern comes from a peer and is never made into a regular expression. It is cut at each ``%`` into pieces
of known size. The first and last piece have one possible place. Of every other piece the first occurrence is
the best one, so the text is searched once, from left to right, without going back.

A piece without ``_`` inside is found by ``str.find``. A piece with ``_`` is found by a number (shift-and):
its bit i is set if the first i + 1 characters of the piece end at this position. Knows no expressions and no
messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Callable

ANY: Final = ""
"""The mark of a ``_`` in a piece."""


def compile_like(pattern: str, escape: str | None = None) -> Callable[[str], bool]:
    """Return a function that tests whether a whole text matches the pattern.

    Args:
        pattern: ``%`` matches any characters or none, ``_`` exactly one.
        escape: a character before a ``%``, ``_`` or itself that is matched literally.

    Raises:
        FilterError: ``escape`` is not one character, or is the last character of the pattern.
    """
    if escape is not None and len(escape) != 1:
        raise FilterError("ESCAPE needs a single character")
    pieces = [_Piece(characters) for characters in _cut(pattern, escape)]
    if len(pieces) == 1:
        return pieces[0].is_all_of
    first, last = pieces[0], pieces[-1]
    between = [piece for piece in pieces[1:-1] if piece.size]

    def is_like(text: str) -> bool:
        end = len(text) - last.size
        position = first.size
        if position > end or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        for piece in between:
            position = piece.find_end(text, position, end)
            if position < 0:
                return False
        return True

    return is_like


def _cut(pattern: str, escape: str | None) -> list[list[str]]:
    """Return the characters between each ``%`` and the next."""
    pieces: list[list[str]] = [[]]
    escaped = False
    for character in pattern:
        if escaped:
            pieces[-1].append(character)
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(ANY if character == "_" else character)
    if escaped:
        raise FilterError("a LIKE pattern ends with its escape character")
    return pieces


class _Piece:
    """Characters that follow each other; some may be any character."""

    __slots__ = ("_after", "_before", "_core", "_ends", "_masks", "_runs", "size")

    def __init__(self, characters: list[str]) -> None:
        self.size = len(characters)
        known = [index for index, character in enumerate(characters) if character is not ANY]
        self._before = known[0] if known else self.size
        self._after = self.size - known[-1] - 1 if known else 0
        core = characters[self._before : self.size - self._after]
        self._core = "".join(core)  # used only if no _ is inside
        self._runs = _runs(characters)
        self._masks: dict[str, int] | None = _masks(core) if ANY in core else None
        self._ends = 1 << len(core) >> 1

    def is_all_of(self, text: str) -> bool:
        return len(text) == self.size and self.is_at(text, 0)

    def is_at(self, text: str, position: int) -> bool:
        """Whether the piece is at ``position``, if the text is long enough."""
        return all(text.startswith(run, position + offset) for offset, run in self._runs)

    def find_end(self, text: str, start: int, end: int) -> int:
        """Return the end of the first occurrence after ``start``; or -1."""
        start += self._before
        end -= self._after
        if self._masks is not None:
            return self._find_end_by_bits(text, start, end)
        if start > end:
            return -1
        found = text.find(self._core, start, end)
        return found if found < 0 else found + len(self._core) + self._after

    def _find_end_by_bits(self, text: str, start: int, end: int) -> int:
        assert self._masks is not None
        masks = self._masks
        anything = masks[ANY]
        state = 0
        for position in range(start, end):
            state = (state << 1 | 1) & masks.get(text[position], anything)
            if state & self._ends:
                return position + 1 + self._after
        return -1


def _runs(characters: list[str]) -> list[tuple[int, str]]:
    """Return the runs of known characters, each with its offset."""
    runs: list[tuple[int, str]] = []
    for offset, character in enumerate(characters):
        if character is ANY:
            continue
        if runs and runs[-1][0] + len(runs[-1][1]) == offset:
            runs[-1] = (runs[-1][0], runs[-1][1] + character)
        else:
            runs.append((offset, character))
    return runs


def _masks(characters: list[str]) -> dict[str, int]:
    """Return the places of each character in the piece, as bits.

    Under ``ANY`` are the places of all other characters.
    """
    anything = sum(1 << place for place, character in enumerate(characters) if character is ANY)
    masks = {ANY: anything}
    for place, character in enumerate(characters):
        masks[character] = masks.get(character, anything) | 1 << place
    return masks
