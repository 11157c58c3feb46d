"""Mechanisms alone, without a frame: ANONYMOUS, PLAIN, and the shape of others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sasl.frames import CountClient, fetch_token
from trio_amqp10 import sasl
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from trio_amqp10.sasl.mechanism import check_name
from trio_amqp10.spec.security import SaslCode

CONTEXT = sasl.ClientContext("example.com", ("PLAIN",))
USERS = {"guest": "guest-secret", "zoë": "pässword"}


def respond(mechanism: sasl.ClientMechanism) -> bytes | None:
    step = mechanism.begin(CONTEXT).start()
    assert isinstance(step, sasl.Respond)
    return step.data


def check(message: bytes | None, users: dict[str, str] = USERS, *, permitted: bool = True) -> Any:
    return sasl.PlainServer(users, permitted=permitted).begin(sasl.ServerContext()).start(message)


# PLAIN


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
    with pytest.raises(LocalProtocolError, match="the password holds") as caught:
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


async def verify(username: str, password: str) -> bool:
    return (username, password) == ("guest", "guest-secret")


def ask(message: bytes) -> tuple[sasl.ServerExchange, sasl.Question]:
    exchange = sasl.PlainServer(verify=verify, permitted=True).begin(sasl.ServerContext())
    question = exchange.start(message)
    assert isinstance(question, sasl.Question)
    return exchange, question


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


def test_question_names_the_user_and_keeps_the_password_out_of_its_repr() -> None:
    _, question = ask(b"\0guest\0guest-secret")
    assert question.about == "PLAIN: verify user 'guest'"
    assert "secret" not in repr(question)


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


# ANONYMOUS


def test_anonymous_sends_trace_information() -> None:
    assert respond(sasl.Anonymous()) == b"anonymous"
    assert respond(sasl.Anonymous("joe@example.com")) == b"joe@example.com"
    assert repr(sasl.Anonymous("joe")) == "Anonymous()"


def test_anonymous_refuses_a_trace_that_is_too_long() -> None:
    with pytest.raises(LocalProtocolError, match="256 characters"):
        sasl.Anonymous("t" * 256)


def test_anonymous_sends_a_trace_of_255_characters() -> None:
    assert respond(sasl.Anonymous("\u00fc" * 255)) == "\u00fc".encode() * 255


@pytest.mark.parametrize("trace", [None, b"", b"joe@example.com", b"\xff", b"t" * 1020])
def test_anonymous_server_lets_everyone_in_as_anonymous(trace: bytes | None) -> None:
    step = sasl.AnonymousServer().begin(sasl.ServerContext()).start(trace)
    assert isinstance(step, sasl.Verified)
    assert step.name == "anonymous"


def test_anonymous_server_refuses_a_trace_that_no_255_characters_make() -> None:
    assert isinstance(sasl.AnonymousServer().begin(sasl.ServerContext()).start(b"t" * 1021), sasl.Refused)


# The shape


def test_exchange_of_one_message_takes_neither_challenge_nor_answer() -> None:
    client = sasl.Anonymous().begin(CONTEXT)
    with pytest.raises(RemoteProtocolError, match="a SASL challenge of 3 octets"):
        client.challenge(b"abc")
    with pytest.raises(LocalProtocolError, match="an answer of type bool"):
        client.answer(True)
    server = sasl.AnonymousServer().begin(sasl.ServerContext())
    assert isinstance(server.response(b""), sasl.Refused)
    assert isinstance(server.answer(True), sasl.Refused)


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256-PLUS", "X_1", "A" * 20])
def test_check_name_gives_back_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "plain", "A" * 21, "A B", "PLAIN\n", "Ü"])
def test_check_name_refuses_what_rfc_4422_does(name: str) -> None:
    with pytest.raises(LocalProtocolError, match="cannot be the name of a SASL mechanism"):
        check_name(name)


def test_steps_tell_sizes_and_not_octets_in_their_repr() -> None:
    assert repr(sasl.Respond(b"secret")) == "<Respond 6 octets>"
    assert repr(sasl.Respond(None)) == "<Respond nothing>"
    assert repr(sasl.Challenge(b"secret")) == "<Challenge 6 octets>"
    assert repr(sasl.Verified("joe", b"secret")) == "<Verified 'joe', 6 octets>"
    assert repr(sasl.Refused()) == "<Refused>"
    assert repr(sasl.Question("a token", fetch_token)) == "<Question 'a token'>"
    assert repr(CountClient()) == "CountClient()"


# Errors


@pytest.mark.parametrize(
    ("code", "text", "temporary"),
    [
        (SaslCode.OK, "did not prove", False),
        (SaslCode.AUTH, "refused the credentials", False),
        (SaslCode.SYS, "a system error on its side", False),
        (SaslCode.SYS_PERM, "will not pass by itself", False),
        (SaslCode.SYS_TEMP, "may succeed", True),
    ],
)
def test_authentication_error_tells_the_codes_apart(code: SaslCode, text: str, temporary: bool) -> None:
    assert str(sasl.AuthenticationError(None, "PLAIN")).endswith("keep to the mechanism (mechanism PLAIN)")
    error = sasl.AuthenticationError(code, "PLAIN")
    assert text in str(error)
    assert f"(mechanism PLAIN, code {code.value})" in str(error)
    assert (error.code, error.mechanism, error.temporary) == (code, "PLAIN", temporary)


def test_errors_of_the_sasl_layer_are_security_errors() -> None:
    for error in (
        sasl.AuthenticationError,
        sasl.NoAcceptableMechanismError,
        sasl.PlaintextPasswordError,
        sasl.SecurityDowngradeError,
    ):
        assert issubclass(error, SecurityError)


def test_mechanism_knows_no_name_where_the_client_claims_none() -> None:
    assert sasl.AnonymousServer().begin(sasl.ServerContext()).claimed_name is None
