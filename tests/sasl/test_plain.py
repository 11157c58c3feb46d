"""PLAIN: its message, and the ways of a server to check it (RFC 4616)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError

from .steps import CONTEXT, ask, respond, verify

USERS = {"guest": "guest-secret", "zoë": "pässword"}


def check(message: bytes | None, users: dict[str, str] = USERS, *, permitted: bool = True) -> Any:
    return sasl.PlainServer(users, permitted=permitted).begin(sasl.ServerContext()).start(message)


def test_plain_sends_authzid_authcid_and_password_between_nuls() -> None:
    assert respond(sasl.Plain("guest", "guest-secret")) == b"\0guest\0guest-secret"
    assert respond(sasl.Plain("zoë", "pässword")) == b"\0zo\xc3\xab\0p\xc3\xa4ssword"


def test_plain_carries_names_of_1_to_255_octets_and_passwords_of_as_many() -> None:
    for size in (1, 255):
        message = respond(sasl.Plain("u" * size, "p" * size))
        step = check(message, {"u" * size: "p" * size})
        assert isinstance(step, sasl.Verified)
        assert step.name == "u" * size


def test_plain_server_refuses_a_user_whose_password_cannot_be_sent() -> None:
    assert isinstance(check(b"\0guest\0other", {"guest": "\ud800"}), sasl.Refused)


def test_plain_keeps_the_password_out_of_its_repr() -> None:
    plain = sasl.Plain("guest", "guest-secret")
    assert repr(plain) == "Plain('guest', ...)"
    assert "secret" not in repr(plain.begin(CONTEXT).start())


def test_plain_takes_a_token_for_a_password() -> None:
    assert respond(sasl.Plain("guest", "t" * 2000)) == b"\0guest\0" + b"t" * 2000


@pytest.mark.parametrize("username", ["", "u" * 256, "ü" * 128, "a\0b", "\ud800"])
def test_plain_refuses_a_user_name_that_cannot_be_sent(username: str) -> None:
    with pytest.raises(LocalProtocolError, match="user name"):
        sasl.Plain(username, "p")


@pytest.mark.parametrize("password", ["secret\0", "secret\ud800"])
def test_plain_tells_nothing_of_a_password_that_cannot_be_sent(password: str) -> None:
    with pytest.raises(LocalProtocolError, match="the password contains") as caught:
        sasl.Plain("guest", password)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(("username", "password"), USERS.items())
@pytest.mark.parametrize("with_authzid", [False, True])
def test_plain_server_verifies_the_right_password(username: str, password: str, with_authzid: bool) -> None:
    authzid = username.encode() if with_authzid else b""
    step = check(b"\0".join([authzid, username.encode(), password.encode()]))
    assert isinstance(step, sasl.Verified)
    assert (step.name, step.data) == (username, None)


@pytest.mark.parametrize(
    "message",
    [
        b"\0guest\0wrong",
        b"\0nobody\0guest-secret",
        b"\0nobody\0guest-secret?",
        b"admin\0guest\0guest-secret",  # to act for another user
    ],
)
def test_plain_server_refuses_wrong_credentials(message: bytes) -> None:
    assert isinstance(check(message), sasl.Refused)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"guest",
        b"\0guest",
        b"\0guest\0",
        b"\0\0guest-secret",
        b"\0guest\0guest-secret\0",
        b"\0guest\0guest\0secret",
        b"\0gu\xffest\0guest-secret",
        b"\0guest\0\xff",
        b"\0guest\0\xed\xa0\x80",  # a surrogate
        b"\0" + b"u" * 256 + b"\0p",
        b"\0guest\0" + b"p" * 256,
        b"z" * 256 + b"\0guest\0guest-secret",
    ],
)
def test_row_14_plain_server_refuses_a_malformed_message_like_a_bad_password(message: bytes) -> None:
    assert isinstance(check(message, {**USERS, "": "guest-secret", "u" * 256: "p"}), sasl.Refused)


@given(message=st.binary(max_size=40) | st.lists(st.binary(max_size=9), max_size=4).map(b"\0".join))
def test_plain_server_verifies_nobody_by_garbage(message: bytes) -> None:
    step = check(message)
    verified = any(
        message
        in (b"\0%b\0%b" % (u.encode(), p.encode()), b"%b\0%b\0%b" % (u.encode(), u.encode(), p.encode()))
        for u, p in USERS.items()
    )
    assert isinstance(step, sasl.Verified if verified else sasl.Refused)


def test_plain_server_sends_an_empty_challenge_without_an_initial_response() -> None:
    exchange = sasl.PlainServer(USERS, permitted=True).begin(sasl.ServerContext())
    step = exchange.start(None)
    assert isinstance(step, sasl.Challenge)
    assert step.data == b""
    assert isinstance(exchange.response(b"\0guest\0guest-secret"), sasl.Verified)


def test_plain_server_refuses_the_right_password_where_it_is_not_permitted() -> None:
    assert isinstance(check(b"\0guest\0guest-secret", permitted=False), sasl.Refused)
    assert isinstance(
        sasl.PlainServer(USERS).begin(sasl.ServerContext()).start(b"\0guest\0guest-secret"), sasl.Refused
    )


def test_plain_server_looks_users_up_at_every_attempt() -> None:
    users = {"guest": "old"}
    mechanism = sasl.PlainServer(users, permitted=True)
    users["guest"] = "new"
    assert isinstance(mechanism.begin(sasl.ServerContext()).start(b"\0guest\0new"), sasl.Verified)


def run(question: sasl.Question) -> object:
    """Run a coroutine that never waits."""
    try:
        question.ask().__await__().__next__()
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def test_plain_server_asks_the_application_with_user_name_and_password() -> None:
    exchange, question = ask(b"\0guest\0guest-secret")
    assert run(question) is True
    step = exchange.answer(True)
    assert isinstance(step, sasl.Verified)
    assert step.name == "guest"
    assert run(ask(b"\0guest\0wrong")[1]) is False


@pytest.mark.parametrize("answer", [False, None, 1, "yes", object()])
def test_plain_server_takes_true_alone_for_a_yes(answer: object) -> None:
    exchange, _ = ask(b"\0guest\0guest-secret")
    assert isinstance(exchange.answer(answer), sasl.Refused)


def test_plain_server_wants_exactly_one_way_to_check() -> None:
    with pytest.raises(LocalProtocolError, match="either users or verify"):
        sasl.PlainServer()
    with pytest.raises(LocalProtocolError, match="either users or verify"):
        sasl.PlainServer(USERS, verify=verify)


def test_plain_server_keeps_users_out_of_its_repr() -> None:
    assert repr(sasl.PlainServer(USERS)) == "PlainServer()"
