"""OAUTHBEARER (RFC 7628) and XOAUTH2, and the secrecy of the token."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .frames import settle

TOKEN = "vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg=="


async def fetch() -> str:
    return TOKEN


async def verify(username: str, token: str) -> str | None:
    return (username or "owner") if token == TOKEN else None


def respond(mechanism: sasl.ClientMechanism) -> bytes:
    exchange = mechanism.begin(sasl.ClientContext())
    question = exchange.start()
    assert isinstance(question, sasl.Question)
    assert TOKEN not in repr(question)
    step = exchange.answer(settle(question))
    assert isinstance(step, sasl.Respond)
    assert TOKEN not in repr(step)
    assert step.data is not None
    return step.data


def check(server: Any, message: bytes | None) -> Any:
    exchange = server(verify).begin(sasl.ServerContext())
    step = exchange.start(message)
    if isinstance(step, sasl.Question):
        assert TOKEN not in repr(step)
        step = exchange.answer(settle(step))
    return step


# The client


def test_oauthbearer_spells_a_token_as_rfc_7628_does() -> None:
    assert respond(sasl.OAuthBearer(fetch)) == b"n,,\1auth=Bearer " + TOKEN.encode() + b"\1\1"
    named = respond(sasl.OAuthBearer(fetch, "user,=@example.com"))
    assert named == b"n,a=user=2C=3D@example.com,\1auth=Bearer " + TOKEN.encode() + b"\1\1"


@pytest.mark.parametrize(
    ("mechanism", "server"),
    [(sasl.OAuthBearer, sasl.OAuthBearerServer), (sasl.XOAuth2, sasl.XOAuth2Server)],
)
def test_bearer_carries_a_user_name_of_255_octets(mechanism: Any, server: Any) -> None:
    step = check(server, respond(mechanism(fetch, "u" * 255)))
    assert isinstance(step, sasl.Verified)
    assert step.name == "u" * 255


def test_bearer_says_what_it_asks_for() -> None:
    for mechanism in (sasl.OAuthBearer(fetch), sasl.XOAuth2(fetch)):
        question = mechanism.begin(sasl.ClientContext()).start()
        assert isinstance(question, sasl.Question)
        assert f"{mechanism.name}: a token" in repr(question)


def test_xoauth2_spells_a_token_as_its_servers_want_it() -> None:
    message = respond(sasl.XOAuth2(fetch, "user@example.com"))
    assert message == b"user=user@example.com\1auth=Bearer " + TOKEN.encode() + b"\1\1"
    assert respond(sasl.XOAuth2(fetch)).startswith(b"user=\1auth=Bearer ")


@pytest.mark.parametrize("mechanism", [sasl.OAuthBearer, sasl.XOAuth2])
@pytest.mark.parametrize("username", ["a\0b", "a\1b", "u" * 256, "\ud800"])
def test_bearer_refuses_a_user_name_that_cannot_be_sent(mechanism: Any, username: str) -> None:
    with pytest.raises(LocalProtocolError, match="user name"):
        mechanism(fetch, username)


@pytest.mark.parametrize("mechanism", [sasl.OAuthBearer(fetch, "ada"), sasl.XOAuth2(fetch, "ada")])
def test_bearer_needs_secrecy_and_shows_no_token(mechanism: sasl.ClientMechanism) -> None:
    assert mechanism.needs_secrecy
    assert repr(mechanism) == f"{type(mechanism).__name__}(..., 'ada')"
    with pytest.raises(sasl.PlaintextPasswordError, match="or a token"):
        sasl.check_allowed([mechanism], secure=False)


@pytest.mark.parametrize(
    "token", ["", "secret token", "secret\n", "secret\1", "s\u00e9cret", b"secret", None, 7]
)
def test_bearer_refuses_what_is_no_token_and_does_not_show_it(token: object) -> None:
    exchange = sasl.OAuthBearer(fetch).begin(sasl.ClientContext())
    exchange.start()
    with pytest.raises(LocalProtocolError, match="no bearer token") as caught:
        exchange.answer(token)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ('{"status":"invalid_token","scope":"example_scope"}', "the server refused the token: expired"),
        (
            '{"status":"401","schemes":"Bearer","scope":"https://mail.example.com/"}',
            "the server refused the token: expired",
        ),
        ('{"status":"insufficient_scope"}', "its scope is too small"),
        ('{"status":"invalid_request"}', "did not understand"),
        ('{"status":"' + TOKEN + '"}', "the server refused the token"),
        ('{"status":7}', "the server refused the token"),
        ('{"status":[]}', "the server refused the token"),
        ('["invalid_token"]', "the server refused the token"),
        (TOKEN, "the server refused the token"),
        ("", "the server refused the token"),
        ("\udcff", "the server refused the token"),
        ("[" * 8000, "the server refused the token"),
    ],
)
@pytest.mark.parametrize(("mechanism", "dummy"), [(sasl.OAuthBearer, b"\1"), (sasl.XOAuth2, b"")])
def test_bearer_answers_an_error_and_remembers_why_in_its_own_words(
    mechanism: Any, dummy: bytes, error: str, text: str
) -> None:
    exchange = mechanism(fetch).begin(sasl.ClientContext())
    exchange.start()
    exchange.answer(TOKEN)
    assert exchange.explain() is None
    step = exchange.challenge(error.encode(errors="surrogateescape"))
    assert step.data == dummy
    assert text in exchange.explain()
    assert TOKEN not in exchange.explain()
    assert "then it accepted the login" in exchange.finish(None)
    with pytest.raises(RemoteProtocolError, match="but the mechanism has none"):
        exchange.challenge(b"")


def test_bearer_believes_an_ok_without_an_error() -> None:
    exchange = sasl.OAuthBearer(fetch).begin(sasl.ClientContext())
    exchange.start()
    exchange.answer(TOKEN)
    assert exchange.finish(None) is None
    assert exchange.finish(b"whatever") is None


# The server

GOOD = b"auth=Bearer " + TOKEN.encode()


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (b"n,,\1" + GOOD + b"\1\1", "owner"),
        (b"y,,\1" + GOOD + b"\1\1", "owner"),
        (b"n,a=ada=2C,\1" + GOOD + b"\1\1", "ada,"),
        (b"n,a=ada,\1host=example.com\1port=5671\1" + GOOD + b"\1\1", "ada"),
        (b"n,,\1auth=BEARER  " + TOKEN.encode() + b"\1\1", "owner"),
    ],
)
def test_oauthbearer_server_lets_in_whom_the_application_names(message: bytes, name: str) -> None:
    step = check(sasl.OAuthBearerServer, message)
    assert isinstance(step, sasl.Verified)
    assert step.name == name


def test_xoauth2_server_lets_in_whom_the_application_names() -> None:
    for username, name in (("ada@example.com", "ada@example.com"), ("", "owner")):
        step = check(sasl.XOAuth2Server, f"user={username}".encode() + b"\1" + GOOD + b"\1\1")
        assert isinstance(step, sasl.Verified)
        assert step.name == name


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\1\1",
        b"n,,\1" + GOOD,
        b"n,,\1" + GOOD + b"\1",
        b"n,,\1" + GOOD + b"\1\1\1",
        b"n,,\1" + GOOD + b"\1x\1",
        b"n,,\1" + GOOD + b"\1" + GOOD + b"\1\1",
        b"p=tls-exporter,,\1" + GOOD + b"\1\1",
        b"n,ada,\1" + GOOD + b"\1\1",
        b"n,a=,\1" + GOOD + b"\1\1",
        b"n,a=a=b,\1" + GOOD + b"\1\1",
        b"n,a=" + b"u" * 256 + b",\1" + GOOD + b"\1\1",
        b"n,a=\xff,\1" + GOOD + b"\1\1",
        b"n,,x\1" + GOOD + b"\1\1",
        b"n,,,\1" + GOOD + b"\1\1",
        b"n,\1" + GOOD + b"\1\1",
        b"n,,\1auth=Basic " + TOKEN.encode() + b"\1\1",
        b"n,,\1auth=Bearer\1\1",
        b"n,,\1auth=Bearer a b\1\1",
        b"n,,\1auth=Bearer =\1\1",
        b"n,,\1" + GOOD + b"\xff\1\1",
        b"n,,\1=x\1" + GOOD + b"\1\1",
        b"n,,\1x\1" + GOOD + b"\1\1",
        b"n,,\1host=a\nb\x00\1" + GOOD + b"\1\1",
        b"n,,\1host=example.com\1\1",
        b"n,,\1auth=Bearer other\1\1",
    ],
)
def test_row_14_oauthbearer_server_answers_a_malformed_message_like_a_wrong_token(message: bytes) -> None:
    step = check(sasl.OAuthBearerServer, message)
    assert isinstance(step, sasl.Challenge)
    assert step.data == b'{"status": "invalid_token"}'


@pytest.mark.parametrize(
    "message",
    [b"", b"user=ada", b"ada\1" + GOOD + b"\1\1", b"user=\xff\1" + GOOD + b"\1\1", b"user=a\0b\1" + GOOD + b"\1\1",
     b"user=ada\1" + GOOD + b"\1", b"user=ada\1auth=Bearer other\1\1"],
)  # fmt: skip
def test_row_14_xoauth2_server_answers_a_malformed_message_like_a_wrong_token(message: bytes) -> None:
    step = check(sasl.XOAuth2Server, message)
    assert isinstance(step, sasl.Challenge)
    assert step.data == b'{"status": "401"}'


def test_bearer_server_says_where_to_get_a_token() -> None:
    server = sasl.OAuthBearerServer(
        verify, scope="amqp", openid_configuration="https://example.com/.well-known"
    )
    step = server.begin(sasl.ServerContext()).start(b"")
    assert isinstance(step, sasl.Challenge)
    assert json.loads(step.data) == {
        "status": "invalid_token",
        "scope": "amqp",
        "openid-configuration": "https://example.com/.well-known",
    }


@pytest.mark.parametrize("dummy", [b"\1", b"", b"n,,\1" + GOOD + b"\1\1"])
def test_bearer_server_refuses_after_its_error_whatever_is_answered(dummy: bytes) -> None:
    exchange = sasl.OAuthBearerServer(verify).begin(sasl.ServerContext())
    exchange.start(b"")
    assert isinstance(exchange.response(dummy), sasl.Refused)


def test_bearer_server_asks_for_the_message_where_it_is_missing() -> None:
    exchange = sasl.OAuthBearerServer(verify).begin(sasl.ServerContext())
    step = exchange.start(None)
    assert isinstance(step, sasl.Challenge)
    assert step.data == b""
    assert isinstance(exchange.response(b"n,,\1" + GOOD + b"\1\1"), sasl.Question)


@pytest.mark.parametrize("answer", [None, True, 1, b"ada", ""])
def test_bearer_server_lets_in_nobody_without_a_name(answer: object) -> None:
    exchange = sasl.OAuthBearerServer(verify).begin(sasl.ServerContext())
    question = exchange.start(b"n,,\1" + GOOD + b"\1\1")
    assert isinstance(question, sasl.Question)
    assert question.about == "OAUTHBEARER: verify a token"
    assert isinstance(exchange.answer(answer), sasl.Challenge)


def test_bearer_server_needs_secrecy_and_shows_nothing() -> None:
    for server in (sasl.OAuthBearerServer(verify), sasl.XOAuth2Server(verify)):
        assert server.needs_secrecy
        assert repr(server) == f"{type(server).__name__}()"
        assert sasl.Server(mechanisms=[server]).offer(secure=False) == []


tokens = st.from_regex(r"[A-Za-z0-9._~+/-]{1,30}={0,2}\Z", fullmatch=True)
usernames = st.text(max_size=20).filter(lambda name: "\0" not in name and "\1" not in name)


@given(token=tokens, username=usernames)
def test_bearer_server_reads_what_the_client_wrote(token: str, username: str) -> None:
    async def fetch_it() -> str:
        return token

    async def echo(name: str, value: str) -> str:
        return f"{name} {value}"

    for client, server in (
        (sasl.OAuthBearer(fetch_it, username), sasl.OAuthBearerServer(echo)),
        (sasl.XOAuth2(fetch_it, username), sasl.XOAuth2Server(echo)),
    ):
        question = server.begin(sasl.ServerContext()).start(respond(client))
        assert isinstance(question, sasl.Question)
        assert settle(question) == f"{username} {token}"


@given(message=st.binary(max_size=40) | st.lists(st.sampled_from([b"n,,", GOOD, b"", b"x"])).map(b"\1".join))
def test_bearer_server_raises_nothing_on_garbage(message: bytes) -> None:
    for server in (sasl.OAuthBearerServer, sasl.XOAuth2Server):
        assert isinstance(check(server, message), (sasl.Challenge, sasl.Verified))


# The end of a token, and the one after it


def jwt(**claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{middle}.c2ln"


@pytest.mark.parametrize(
    ("token", "answer", "expires"),
    [
        (TOKEN, "ada", None),
        (TOKEN, ("ada", 7.5), 7.5),
        (jwt(exp=12), "ada", 12.0),
        (jwt(exp=12), ("ada", 9.0), 9.0),
        (jwt(sub="ada"), "ada", None),
    ],
)
def test_bearer_server_knows_when_a_token_ends(token: str, answer: object, expires: float | None) -> None:
    exchange = sasl.OAuthBearerServer(verify).begin(sasl.ServerContext())
    exchange.start(b"n,,\1auth=Bearer " + token.encode() + b"\1\1")
    step = exchange.answer(answer)
    assert isinstance(step, sasl.Verified)
    assert (step.name, step.expires) == ("ada", expires)


@pytest.mark.parametrize("answer", [("ada", "soon"), ("ada",), ("", 1.0)])
def test_bearer_server_refuses_an_answer_that_names_no_end(answer: object) -> None:
    exchange = sasl.OAuthBearerServer(verify).begin(sasl.ServerContext())
    exchange.start(b"n,,\1auth=Bearer " + TOKEN.encode() + b"\1\1")
    assert isinstance(exchange.answer(answer), sasl.Challenge)


def test_bearer_server_verifies_the_token_that_replaces_another_for_the_same_user() -> None:
    asked: list[tuple[str, str]] = []

    async def remember(username: str, token: str) -> str:
        asked.append((username, token))
        return username

    exchange = sasl.XOAuth2Server(remember).begin(sasl.ServerContext())
    settle(exchange.start(b"user=ada\1auth=Bearer one\1\1"))  # type: ignore[arg-type]
    step = exchange.renewed(b"two")
    assert isinstance(step, sasl.Question)
    assert isinstance(exchange.answer(settle(step)), sasl.Verified)
    assert asked == [("ada", "one"), ("ada", "two")]
    assert isinstance(exchange.renewed(b"no token"), sasl.Refused)


def test_mechanism_without_tokens_has_nothing_to_verify_again() -> None:
    exchange = sasl.PlainServer({"ada": "secret"}, permitted=True).begin(sasl.ServerContext())
    assert exchange.renewed(b"other") is None
