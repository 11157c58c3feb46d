"""Short strings of AMQP before 1.0: octets that are not UTF-8 are surrogates.

Their octets come back by ``errors="surrogateescape"``. AMQP 1.0, JSON and SQLite take Unicode alone.
"""

from __future__ import annotations

from typing import Any, Final

MOST_OCTETS: Final = 255


def to_text(text: str) -> str:
    """Return a short string as Unicode.

    Octets that are not UTF-8 become replacement characters.
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def is_short(text: Any) -> bool:
    """Whether ``text`` is a valid short string."""
    return (
        isinstance(text, str)
        and len(text.encode("utf-8", "surrogateescape")) <= MOST_OCTETS
        and "\0" not in text
    )


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogate, so that UTF-8 can encode it."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
