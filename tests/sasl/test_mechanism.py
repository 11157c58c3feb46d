"""What all mechanisms share: names, questions, steps and their sizes."""

from __future__ import annotations

import pytest

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.sasl.mechanism import check_name

from .frames import CountClient, fetch_token
from .steps import CONTEXT, ask

# PLAIN


def test_question_names_the_user_and_keeps_the_password_out_of_its_repr() -> None:
    _, question = ask(b"\0guest\0guest-secret")
    assert question.about == "PLAIN: verify user 'guest'"
    assert "secret" not in repr(question)


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


def test_mechanism_knows_no_name_where_the_client_claims_none() -> None:
    assert sasl.AnonymousServer().begin(sasl.ServerContext()).claimed_name is None
