"""The default mechanisms of a client."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError

BOUND = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS"]
STRONG = [*BOUND, "SCRAM-SHA-512", "SCRAM-SHA-256"]


async def fetch() -> str:
    return "token"


def names(*arguments: Any, **options: Any) -> list[str]:
    return [mechanism.name for mechanism in sasl.default_mechanisms(*arguments, **options)]


@pytest.mark.parametrize(
    ("arguments", "has_certificate", "expected"),
    [
        ((), False, ["ANONYMOUS"]),
        ((), True, ["EXTERNAL", "ANONYMOUS"]),
        (("ada", "enigma"), False, [*STRONG, "PLAIN"]),
        (("ada", None), False, [*STRONG, "PLAIN"]),
        (("ada", "enigma"), True, [*STRONG, "EXTERNAL", "PLAIN"]),
        ((None, None, fetch), True, ["OAUTHBEARER", "XOAUTH2"]),
        (("ada", "enigma", fetch), False, ["OAUTHBEARER", "XOAUTH2"]),
        (("ada", "t" * 300), False, ["PLAIN"]),  # a token in place of a password
        (("ada", "\U0001f600"), False, ["PLAIN"]),
    ],
)
def test_default_mechanisms_where_nobody_reads_along(
    arguments: Any, has_certificate: bool, expected: list[str]
) -> None:
    assert names(*arguments, secure=True, has_certificate=has_certificate) == expected


def test_default_mechanisms_in_the_clear_are_scram_or_nothing_that_needs_secrecy() -> None:
    assert names("ada", "enigma", secure=False) == [
        *BOUND, "SCRAM-SHA-1-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1",
    ]  # fmt: skip
    assert names(secure=False) == ["ANONYMOUS"]
    with pytest.raises(sasl.PlaintextPasswordError):
        sasl.check_allowed(sasl.default_mechanisms(None, None, fetch, secure=False), secure=False)


def test_default_mechanisms_raise_where_nothing_would_do() -> None:
    with pytest.raises(LocalProtocolError, match="a password must have"):
        sasl.default_mechanisms("ada", "p" * 300, secure=False)
    with pytest.raises(LocalProtocolError, match="user name"):
        sasl.default_mechanisms("", "enigma", secure=True)


def test_default_mechanisms_carry_the_credentials() -> None:
    for mechanism in sasl.default_mechanisms("ada", "enigma", secure=True):
        assert isinstance(mechanism, (sasl.Scram, sasl.Plain))
        assert mechanism.username == "ada"
    bearer, xoauth2 = sasl.default_mechanisms("ada", token_source=fetch, secure=True)
    for mechanism in (bearer, xoauth2):
        question = mechanism.begin(sasl.ClientContext()).start()
        assert isinstance(question, sasl.Question)
        assert question.ask == fetch
    assert isinstance(xoauth2, sasl.XOAuth2)
    assert xoauth2.username == "ada"


def test_default_mechanisms_name_nobody_and_send_no_password_unless_told() -> None:
    _, xoauth2 = sasl.default_mechanisms(token_source=fetch, secure=True)
    assert isinstance(xoauth2, sasl.XOAuth2)
    assert xoauth2.username == ""
    *_, plain = sasl.default_mechanisms("ada", None, secure=True)
    step = plain.begin(sasl.ClientContext()).start()
    assert isinstance(step, sasl.Respond)
    assert step.data == b"\0ada\0"
