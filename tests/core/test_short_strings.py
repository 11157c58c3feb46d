"""Short strings whose octets are not UTF-8, and what can take them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.short_strings import MOST_OCTETS, is_short, is_unicode, to_text


@given(st.binary(max_size=300))
def test_octets_are_shown_as_unicode_and_unicode_is_as_it_was(octets: bytes) -> None:
    text = octets.decode(errors="surrogateescape")
    assert to_text(text) == octets.decode(errors="replace")
    assert is_unicode(text) is (to_text(text) == text)
    assert is_unicode(to_text(text))
    assert is_short(text) is (len(octets) <= MOST_OCTETS and 0 not in octets)


def test_what_is_no_text_is_no_short_string() -> None:
    assert not is_short(b"x")
    assert not is_short(None)
