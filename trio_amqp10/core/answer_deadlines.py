"""AwaitedAnswers: the answers that a peer owes, and when the oldest is overdue.

Each engine has one. A program sends requests without a time, so the time for an answer begins when the engine next gets the
time, which is at once, by its timer. All answers have the same time-out, so the oldest is always due first, and
adding or removing one takes constant time.

Knows no clock and no protocol: the caller passes the time, and the keys of the requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

ANSWER_TIMEOUT: Final = 60.0
"""Seconds that a peer has for an answer, unless the limits set another time."""

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
        self._stamped = 0  # how many answers have a deadline: always the first ones
        self._held: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of awaited answers."""
        return len(self._due)

    def expect(self, key: Hashable, what: object) -> None:
        """Await an answer; do nothing if ``key`` is awaited already.

        Args:
            key: identifies the answer.
            what: its text names the request in errors.
        """
        if self._timeout is not None and key not in self._due:
            self._due[key] = None, what

    def answered(self, key: Hashable) -> None:
        """Stop awaiting this answer; do nothing if it is not awaited."""
        if self._due:
            due = self._due.pop(key, None)
            if due is not None and due[0] is not None:
                self._stamped -= 1
            if not self._due:
                self._due.clear()  # this frees its table, which an idle connection would keep

    def hold(self, reason: str) -> None:
        """Stop the time-outs until ``go_on`` is called for the same reason.

        Use it while the peer cannot answer, or its answers are not read.
        """
        self._held = tuple(dict.fromkeys((*self._held, reason)))

    def go_on(self, reason: str) -> None:
        """Restart the time-outs of all answers, if no other reason holds them."""
        if reason in self._held:
            self._held = tuple(each for each in self._held if each != reason)
            self._due = {key: (None, what) for key, (_, what) in self._due.items()}
            self._stamped = 0

    @staticmethod
    def describe(what: object, seconds: float | None) -> str:
        """Return the error message for an overdue answer."""
        return f"the peer did not answer {what} within {seconds:g} s (answer_timeout)"

    def deadline(self) -> float | None:
        """Return when to call ``take_overdue``; None for never.

        It is at once if the time-out of an answer has not begun.
        """
        if self._held or not self._due:
            return None
        if self._stamped < len(self._due):
            return _AT_ONCE
        due, _ = next(iter(self._due.values()))
        return due

    def take_overdue(self, now: float) -> list[tuple[Hashable, object]]:
        """Remove and return the overdue answers; begin the time-outs of new ones."""
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
