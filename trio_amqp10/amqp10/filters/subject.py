"""Filters by subject, which replace bindings of AMQP 0-9-1 (apache-filters.xml).

``apache.org:legacy-amqp-direct-binding:string`` and ``apache.org:legacy-amqp-topic-binding:string``. Knows
nothing of the filter-set with the filter.
"""

# A filter reads sections by private methods: a section that is read by the public properties must be compared when the
# message is written again.
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message

from .errors import FilterError, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LENGTH: Final = 4096
"""The limit for the characters of a pattern, the same as for expressions."""

_PLACE: Final = Message.subject.place
_INDEX: Final = Message.subject.index


def exact_subject(value: Any) -> Callable[[Message], bool]:
    """Return a test for messages with exactly this subject.

    Raises:
        FilterError: ``value`` is not a string, or is too long.
    """
    subject = _text(value)

    def has_subject(message: Message) -> bool:
        return _subject(message) == subject

    return has_subject


def matching_subject(value: Any) -> Callable[[Message], bool]:
    """Return a test for messages whose subject matches the pattern.

    A subject has words with dots between them. ``*`` matches one word, and ``#`` any number of words, or
    none. A message without a subject matches only the pattern ``#``. Takes time linear in the subject.

    Raises:
        FilterError: ``value`` is not a string, or is too long.
    """
    pattern = _text(value)
    is_matching = _compile_topic(pattern)

    def has_matching_subject(message: Message) -> bool:
        subject = _subject(message)
        return pattern == "#" if subject is None else is_matching(subject)

    return has_matching_subject


def _compile_topic(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern to a function that follows all states at once.

    Bit i of the state is set if the first i words of the pattern are matched. ``#`` is not a word of the
    pattern, but a state that any word leaves unchanged.
    """
    stays = anything = words = 0
    places: dict[str, int] = {}
    for word in pattern.split("."):
        if word == "#":
            stays |= 1 << words
            continue
        if word == "*":
            anything |= 1 << words
        else:
            places[word] = places.get(word, 0) | 1 << words
        words += 1

    def is_matching(subject: str) -> bool:
        state = 1
        for word in subject.split("."):
            state = (state & (places.get(word, 0) | anything)) << 1 | state & stays
            if not state:
                return False
        return bool(state >> words & 1)

    return is_matching


def _subject(message: Message) -> str | None:
    fields = message._load(_PLACE)
    return None if fields is None else fields[_INDEX]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FilterError(f"a subject filter must be a string, not {excerpt(value)}")
    if len(value) > MAX_LENGTH:
        raise FilterError(f"a subject filter of {len(value)} characters: expected at most {MAX_LENGTH}")
    return value
