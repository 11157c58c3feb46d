"""The subject filters that stand in for bindings to the exchanges of older AMQP (apache-filters.xml).

``apache.org:legacy-amqp-direct-binding:string`` and ``apache.org:legacy-amqp-topic-binding:string``.
Knows nothing of the filter-set around them.
"""

# A filter reads what it needs without lending it out: what is lent must be compared again when the
# message is written.
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.message import Message

from .errors import FilterError, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["exact_subject", "matching_subject"]

MAX_LENGTH: Final = 4096
"""Characters of a pattern: as for expressions."""

_PLACE: Final = Message.subject.place
_INDEX: Final = Message.subject.index


def exact_subject(value: Any) -> Callable[[Message], bool]:
    """Messages with exactly this subject; none without a subject.

    Raises:
        FilterError: not a string.
    """
    subject = _text(value)

    def has_subject(message: Message) -> bool:
        return _subject(message) == subject

    return has_subject


def matching_subject(value: Any) -> Callable[[Message], bool]:
    """Messages whose subject, words with dots between, matches the pattern.

    ``*`` is one word and ``#`` any number of them, none included. A message without a subject
    matches only the pattern that is a single ``#``. Takes time linear in the subject.

    Raises:
        FilterError: not a string.
    """
    pattern = _text(value)
    is_matching = _compile_topic(pattern)

    def has_matching_subject(message: Message) -> bool:
        subject = _subject(message)
        return pattern == "#" if subject is None else is_matching(subject)

    return has_matching_subject


def _compile_topic(pattern: str) -> Callable[[str], bool]:
    """All states at once: bit i of a number says that the first i words of the pattern are matched.

    ``#`` is no word of the pattern but a state that any word leaves as it is.
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
        raise FilterError(f"a subject filter is a string, not {excerpt(value)}")
    if len(value) > MAX_LENGTH:
        raise FilterError(f"a subject filter of {len(value)} characters, more than {MAX_LENGTH}")
    return value
