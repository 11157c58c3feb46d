"""AwaitedAnswers: what the peer must answer, and when the oldest answer is overdue.

Each engine has one. The time for an answer begins when the engine next learns what time it is, which its timer does at once: a
program gives its orders without a time. All answers have the same time, so the oldest is always the first that is due, and
adding or removing one is a step of a dict.

Knows no clock and no protocol: the caller says what time it is and what is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["ANSWER_TIMEOUT", "AwaitedAnswers"]

ANSWER_TIMEOUT: Final = 60.0
"""Seconds that a peer has for an answer, unless the limits of the connection say otherwise."""

_AT_ONCE: Final = 0.0


class AwaitedAnswers:
    """The answers that one peer owes.

    Args:
        timeout: seconds that the peer has for each; None for any time.
    """

    __slots__ = ("_due", "_held", "_stamped", "_timeout")

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._due: dict[Hashable, tuple[float | None, object]] = {}
        self._stamped = 0  # of them, always the first
        self._held: set[str] = set()

    def __len__(self) -> int:
        """The answers that are awaited."""
        return len(self._due)

    def expect(self, key: Hashable, what: object) -> None:
        """Await an answer; the text of ``what`` names the request in errors. Nothing happens if ``key`` is awaited."""
        if self._timeout is not None and key not in self._due:
            self._due[key] = None, what

    def answered(self, key: Hashable) -> None:
        """Await this answer no more; nothing happens if it is not awaited."""
        if self._due:
            due = self._due.pop(key, None)
            if due is not None and due[0] is not None:
                self._stamped -= 1

    def hold(self, reason: str) -> None:
        """The peer cannot answer, or its answers are not read: no time passes until ``go_on`` for the same reason."""
        self._held.add(reason)

    def go_on(self, reason: str) -> None:
        """Let the time begin again for all answers, if this was the last reason to hold it."""
        if self._held:
            self._held.discard(reason)
            self._due = {key: (None, what) for key, (_, what) in self._due.items()}
            self._stamped = 0

    @staticmethod
    def describe(what: object, seconds: float | None) -> str:
        """Return the words of the error for an answer that is overdue."""
        return f"the peer did not answer {what} within {seconds:g} s (answer_timeout)"

    def deadline(self) -> float | None:
        """Return when ``take_overdue`` has something to do: at once if some have no time yet; None for never."""
        if self._held or not self._due:
            return None
        if self._stamped < len(self._due):
            return _AT_ONCE
        due, _ = next(iter(self._due.values()))
        return due

    def take_overdue(self, now: float) -> list[tuple[Hashable, object]]:
        """Return the answers that were awaited for too long, which are awaited no more; new ones have their time from ``now``."""
        if self._held or not self._due:
            return []
        if self._stamped < len(self._due):
            assert self._timeout is not None
            for key, (due, what) in self._due.items():
                if due is None:
                    self._due[key] = now + self._timeout, what
            self._stamped = len(self._due)
        overdue: list[tuple[Hashable, object]] = []
        for key, (due, what) in self._due.items():
            if due is None or now < due:
                break
            overdue.append((key, what))
        for key, _ in overdue:
            self.answered(key)
        return overdue
