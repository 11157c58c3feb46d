"""SASLprep (RFC 4013), with the examples of its section 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp.utils import ScramException  # type: ignore[import-untyped]
from scramp.utils import saslprep as other_saslprep

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl.saslprep import prepare, saslprep


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("I\u00adX", "IX"),  # a soft hyphen is mapped to nothing
        ("user", "user"),
        ("USER", "USER"),  # case is kept
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("pass\u00a0word\u3000", "pass word "),
        ("pass\u1680word", "pass word"),  # which has no form of its own without the mapping
        ("e\u0301", "\u00e9"),
        ("\u05d0\u05d1", "\u05d0\u05d1"),
        ("\u06271\u0628", "\u06271\u0628"),
        ("\U0002f868", "\U0002136a"),  # by Unicode 3.2; corrected to another later
        ("", ""),
        ("\u200b", ""),
    ],
)
def test_saslprep_gives_the_one_form_of_a_text(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("secret\u0007", "a control character"),
        ("secret\u0000", "a control character"),
        ("secret\u0085", "a control character"),
        ("secret\ue000", "a private-use character"),
        ("secret\ufdd0", "a non-character"),
        ("secret\ud800", "a lone surrogate"),
        ("secret\ufffd", "no plain text"),
        ("secret\u2ff0", "an ideographic description"),
        ("secret\u202e", "displayed"),
        ("secret\U000e0041", "a tagging character"),
        ("secret\U0001f600", "Unicode 3.2 has not"),
        ("\u06271", "directions"),  # the example of RFC 4013
        ("1\u0627", "directions"),
        ("\u0627secret\u0628", "directions"),
    ],
)
def test_saslprep_refuses_what_is_prohibited_and_quotes_none_of_it(text: str, reason: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"the password .*{reason}") as caught:
        saslprep(text, "password")
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_saslprep_says_text_where_it_is_told_nothing_else() -> None:
    with pytest.raises(LocalProtocolError, match=r"^the text contains a control character"):
        saslprep("\0")


def test_prepare_bounds_the_octets() -> None:
    assert prepare("u" * 255, "user name") == "u" * 255
    assert prepare("", "password", empty=True) == ""
    for text in ("u" * 256, "\u00fc" * 128, "\u00ad"):
        with pytest.raises(LocalProtocolError, match="a user name must have 1 to 255 octets, not"):
            prepare(text, "user name")
    with pytest.raises(LocalProtocolError, match="a password must have"):
        prepare("p" * 256, "password", empty=True)


@given(text=st.text(max_size=12))
def test_saslprep_agrees_with_a_second_implementation_and_is_stable(text: str) -> None:
    try:
        prepared = saslprep(text)
    except LocalProtocolError:
        with pytest.raises(ScramException):
            other_saslprep(text)
        return
    assert prepared == other_saslprep(text)
    assert saslprep(prepared) == prepared
