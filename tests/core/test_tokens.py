"""SAS tokens made and read, the expiry of a JWT, and resources that tokens cover."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.tokens import JWT, SAS, SasToken, Token, covers, is_below, path_of, sign_sas

RESOURCE = "sb://ns.servicebus.windows.net/orders"
KEY = "c2VjcmV0IHNlY3JldCBzZWNyZXQ="


def jwt(claims: Any) -> str:
    parts = [{"alg": "RS256"}, claims, "signature"]
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts
    )


# -- SAS


def test_sas_token_is_signed_as_its_users_expect() -> None:
    # The signature was made by hand: openssl dgst -sha256 -hmac KEY -binary | base64
    token = sign_sas(RESOURCE, "sender", KEY, 1700000000.9)
    assert token.value == (
        "SharedAccessSignature sr=sb%3A%2F%2Fns.servicebus.windows.net%2Forders"
        "&sig=%2BQuf2aXCOQZFS%2BXOGpcxhyLcGKjcUPi19rde0jb58uY%3D&se=1700000000&skn=sender"
    )
    assert token.type == SAS
    assert token.expires == 1700000000.0
    assert "SharedAccessSignature" not in repr(token)


@given(
    st.text(st.characters(codec="utf-8"), min_size=1),
    st.text(st.characters(codec="utf-8"), min_size=1),
    st.integers(0, 2**40),
)
def test_sas_token_reads_as_it_was_made(resource: str, name: str, expires: int) -> None:
    read = SasToken.parse(sign_sas(resource, name, KEY, expires).value)
    assert (read.resource, read.key_name, read.expires) == (resource, name, expires)
    assert read.is_signed_by(KEY)
    assert not read.is_signed_by(KEY + "=")


def test_sas_token_is_verified_by_its_resource_as_it_is_written() -> None:
    # Other libraries write escapes in lower case; the signature is over just that.
    lower = "sb%3a%2f%2fns.servicebus.windows.net%2forders"
    import hashlib
    import hmac

    signature = base64.b64encode(hmac.digest(KEY.encode(), f"{lower}\n7".encode(), hashlib.sha256)).decode()
    text = (
        f"SharedAccessSignature se=7&skn=a&sr={lower}&sig={signature.replace('=', '%3d').replace('+', '%2b')}"
    )
    read = SasToken.parse(text)
    assert read.resource == RESOURCE
    assert read.is_signed_by(KEY)


@pytest.mark.parametrize("name", ["sr", "sig", "se", "skn"])
def test_sas_token_that_was_changed_is_not_signed(name: str) -> None:
    text = sign_sas(RESOURCE, "sender", KEY, 7).value
    changed = {"sr": "ns.", "sig": "sig=", "se": "se=7", "skn": "skn=sender"}[name]
    other = {"sr": "xs.", "sig": "sig=AAAA", "se": "se=8", "skn": "skn=other"}[name]
    read = SasToken.parse(text.replace(changed, other))
    assert read.is_signed_by(KEY) == (name == "skn")  # the name only selects the key to try


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sr=a&sig=b&se=1&skn=c",
        "SharedAccessSignature ",
        "SharedAccessSignature sr=a&sig=YQ==&se=1",
        "SharedAccessSignature sr=a&sr=b&sig=YQ==&se=1&skn=c",
        "SharedAccessSignature sr=a&sig=YQ==&se=1&skn=c&",
        "SharedAccessSignature sr=a&sig=YQ==&se=-1&skn=c",
        "SharedAccessSignature sr=a&sig=YQ==&se=١&skn=c",
        f"SharedAccessSignature sr=a&sig=YQ==&se={'9' * 20}&skn=c",
        "SharedAccessSignature sr=a&sig=Y!&se=1&skn=c",
        "SharedAccessSignature sr=a&sig=ü&se=1&skn=c",
    ],
)
def test_sas_token_is_refused_when_it_is_none(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="no SAS token"):
        SasToken.parse(text)


def test_sas_token_shows_no_signature() -> None:
    assert "sig" not in repr(SasToken.parse(sign_sas(RESOURCE, "sender", KEY, 7).value))


@pytest.mark.parametrize(("resource", "name", "key"), [("", "a", "b"), ("a", "", "b"), ("a", "b", "")])
def test_sas_token_needs_all_its_parts(resource: str, name: str, key: str) -> None:
    with pytest.raises(LocalProtocolError):
        sign_sas(resource, name, key, 7)


# -- JWT


@pytest.mark.parametrize(
    ("claims", "expires"), [({"exp": 7}, 7.0), ({"exp": 7.5}, 7.5), ({"aud": "x"}, None)]
)
def test_jwt_says_when_it_ends(claims: dict[str, Any], expires: float | None) -> None:
    text = jwt(claims)
    assert Token.jwt(text) == Token(text, JWT, expires)


def test_jwt_that_is_encrypted_says_nothing() -> None:
    assert Token.jwt("a.b.c.d.e").expires is None


@pytest.mark.parametrize(
    "text", ["", "a.b", "a.!.c", "a.YQ.c", jwt([]), jwt({"exp": "7"}), jwt({"exp": True}), "a.b.c.d"]
)
def test_jwt_is_refused_when_it_is_none(text: str) -> None:
    with pytest.raises(LocalProtocolError, match="JWT"):
        Token.jwt(text)


# -- resources


@pytest.mark.parametrize(
    ("resource", "other", "covered"),
    [
        ("sb://ns/orders", "sb://ns/orders", True),
        ("sb://NS/orders/", "amqps://ns/orders", True),
        ("sb://ns/orders", "sb://ns/orders/Subscriptions/a", True),
        ("sb://ns", "sb://ns/orders", True),
        ("sb://ns/", "sb://ns", True),
        ("sb://ns/orders", "sb://ns", False),
        ("sb://ns/orders", "sb://ns/orders2", False),
        ("sb://ns/orders", "sb://ns/Orders", False),
        ("sb://ns/orders", "sb://other/orders", False),
        ("sb://ns/orders", "sb://ns//orders", False),
        ("orders", "orders", True),
        ("orders", "sb://ns/orders", False),
    ],
)
def test_resource_covers_what_is_below_it(resource: str, other: str, covered: bool) -> None:
    assert covers(resource, other) is covered


def test_path_is_what_follows_the_host() -> None:
    assert path_of("sb://ns/a/b") == "a/b"
    assert path_of("sb://ns//a") == "/a"
    assert path_of("sb://ns") == ""
    assert path_of("a/b/") == "a/b"
    assert is_below("a/b", "a")
    assert not is_below("ab", "a")
