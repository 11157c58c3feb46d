"""Claims: what a token permits, and the keys that sign tokens."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from trio_amqp10.container import Claim, RefusedError, SasKeys, TokenOffer
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.tokens import SAS, Token, sign_sas

KEYS = SasKeys(
    {"root": ("k1", "send receive create transact"), "sender": ("k2", "send"), "x": ("k3", ["receive"])}
)
HOST = "sb://ns.example"
NOW = 1_000_000.0
began = trio.lowlevel.RunVar("began", 0.0)


def wall() -> float:
    """A wall clock that goes with trio's, which begins anywhere."""
    return NOW + trio.current_time() - began.get()


def token(path: str = "/q", name: str = "root", *, seconds: float = 60.0, key: str | None = None) -> Token:
    keys = {"root": "k1", "sender": "k2", "x": "k3"}
    return sign_sas(f"{HOST}{path}", name, key or keys.get(name, "?"), wall() + seconds)


@pytest.mark.parametrize("entry", [("", "send"), ("k", ""), ("k", "sned"), ("k", "open")])
def test_sas_keys_need_a_key_and_rights(entry: tuple[str, str]) -> None:
    why = "'name': expected a key, and any of create, delete, receive, send, transact, not "
    with pytest.raises(LocalProtocolError, match=why):
        SasKeys({"name": entry})


@pytest.mark.parametrize(
    "rights", ["send receive create transact", ["send", "receive", "create", "transact"]]
)
def test_sas_keys_give_the_rights_of_the_key_that_signed(rights: Any) -> None:
    keys = SasKeys({"other": ("k2", "send"), "root": ("k1", rights)})
    signed = sign_sas(f"{HOST}/q", "root", "k1", NOW + 60)
    offer = TokenOffer(f"{HOST}/q", Token(signed.value, SAS), None, NOW)
    every = frozenset({"send", "receive", "create", "transact"})
    assert keys(offer) == Claim(f"{HOST}/q", NOW + 60, every, "root")


@pytest.mark.parametrize(
    ("name", "now", "why"),
    [
        ("x", NOW, "the signature was not made with the key that has this name here"),
        ("root", NOW + 60, "the token has expired"),
    ],
)
def test_sas_keys_refuse_with_unauthorized_access(name: str, now: float, why: str) -> None:
    signed = sign_sas(f"{HOST}/q", name, "k1", NOW + 60)
    with pytest.raises(RefusedError) as refused:
        SasKeys({"root": ("k1", "send")})(TokenOffer(f"{HOST}/q", Token(signed.value, SAS), None, now))
    assert (refused.value.condition, refused.value.description) == ("amqp:unauthorized-access", why)


@pytest.mark.parametrize("ignored", [False, True])
def test_case_of_a_resource_matters_unless_it_is_ignored(ignored: bool) -> None:
    keys = SasKeys({"root": ("k1", "send")}, ignore_case=ignored)
    offer = TokenOffer(
        f"{HOST}/Q", Token(sign_sas(f"{HOST}/q", "root", "k1", NOW + 60).value, SAS), None, NOW
    )
    if ignored:
        assert keys(offer).audience == f"{HOST}/Q"
    else:
        with pytest.raises(RefusedError, match=r"the token is for 'sb://ns\.example/q', not for"):
            keys(offer)


def test_claim_permits_what_begins_with_a_dollar_only_by_name() -> None:
    assert Claim("$management", None).permits("send", "$management")
    assert not Claim(HOST, None).permits("send", "$management")
    assert Claim(HOST, None).permits("send", "q")


def test_sas_keys_show_no_key() -> None:
    assert repr(KEYS) == "<SasKeys of 3 keys>"
