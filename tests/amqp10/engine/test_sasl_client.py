"""The client's side of the SASL layer."""

from __future__ import annotations

import pytest

from tests.sasl.frames import CountClient, fetch_token, frame, performatives
from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec.security import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trio_amqp10.amqp10.wire.frames import SASL_FRAME, encode_frame
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER
from trio_amqp10.sasl import SaslState

OK = frame(SaslOutcome(code=SaslCode.OK))
PLAIN = sasl.Plain("guest", "guest-secret")


def offer(*names: str) -> bytes:
    return frame(SaslMechanisms(sasl_server_mechanisms=names))


def start(*mechanisms: sasl.ClientMechanism, offered: tuple[str, ...] = ("X-COUNT",)) -> sasl.SaslClient:
    client = sasl.SaslClient(mechanisms or [CountClient()])
    client.receive_data(offer(*offered))
    return client


def test_client_sends_nothing_before_the_mechanisms() -> None:
    client = sasl.SaslClient([PLAIN])
    assert client.state is SaslState.EXPECT_MECHANISMS
    assert client.data_to_send() == b""
    assert (client.done, client.failed, client.mechanism, client.question) == (False, False, None, None)


def test_client_answers_the_mechanisms_with_an_init() -> None:
    client = sasl.SaslClient([PLAIN], hostname="example.com")
    client.receive_data(offer("PLAIN", "ANONYMOUS"))
    assert performatives(client.data_to_send()) == [
        SaslInit(mechanism="PLAIN", initial_response=b"\0guest\0guest-secret", hostname="example.com")
    ]
    assert client.data_to_send() == b""
    assert client.mechanism == "PLAIN"
    assert client.state is SaslState.EXPECT_CHALLENGE


def test_client_writes_the_octets_of_the_standard() -> None:
    client = start(sasl.Anonymous("t"), offered=("ANONYMOUS",))
    assert client.data_to_send() == bytes.fromhex(
        "0000001c 02 01 0000  00 53 41 c0 0f 02 a3 09 414e4f4e594d4f5553 a0 01 74"
    )


def test_client_chooses_by_its_own_order() -> None:
    assert start(CountClient(), PLAIN, offered=("PLAIN", "X-COUNT")).mechanism == "X-COUNT"
    assert start(PLAIN, CountClient(), offered=("X-COUNT", "PLAIN")).mechanism == "PLAIN"
    assert start(PLAIN, sasl.Anonymous(), offered=("EXTERNAL", "ANONYMOUS")).mechanism == "ANONYMOUS"


def test_client_takes_a_single_mechanism_as_symbol_or_as_array() -> None:
    single = bytes.fromhex("00 53 40 c0 08 01 a3 05 504c41494e")
    array = bytes.fromhex("00 53 40 c0 0b 01 e0 08 01 a3 05 504c41494e")
    for body in (single, array):
        client = sasl.SaslClient([PLAIN])
        client.receive_data(encode_frame(0, body, SASL_FRAME))
        assert client.mechanism == "PLAIN"


@pytest.mark.parametrize(
    "body",
    ["00 53 40 45", "00 53 40 c0 01 00", "00 53 40 c0 02 01 40", "00 53 40 c0 05 01 e0 02 00 a3"],
)
def test_row_13_client_refuses_an_empty_or_null_list(body: str) -> None:
    client = sasl.SaslClient([PLAIN])
    with pytest.raises(sasl.NoAcceptableMechanismError, match="the server offers nothing") as caught:
        client.receive_data(encode_frame(0, bytes.fromhex(body), SASL_FRAME))
    assert caught.value.offered == ()
    assert client.failed


def test_row_13_client_names_the_list_when_nothing_in_it_will_do() -> None:
    client = sasl.SaslClient([PLAIN, sasl.Anonymous()])
    with pytest.raises(
        sasl.NoAcceptableMechanismError,
        match="offers EXTERNAL, plain; acceptable here: PLAIN, ANONYMOUS",
    ) as caught:
        client.receive_data(offer("EXTERNAL", "plain"))  # names are compared as they are
    assert caught.value.offered == ("EXTERNAL", "plain")
    assert caught.value.acceptable == ("PLAIN", "ANONYMOUS")
    assert client.data_to_send() == b""


def test_client_makes_its_nonces_of_the_entropy_that_it_is_given() -> None:
    client = sasl.SaslClient([sasl.Scram("ada", "enigma")], entropy=bytes)
    client.receive_data(offer("SCRAM-SHA-256"))
    (init,) = performatives(client.data_to_send())
    assert init.initial_response == b"n,,n=ada,r=" + b"A" * 32


def test_client_needs_a_mechanism() -> None:
    with pytest.raises(LocalProtocolError, match="at least one mechanism"):
        sasl.SaslClient([])


def test_client_refuses_a_mechanism_with_an_impossible_name() -> None:
    class Odd(CountClient):
        name = "odd"

    with pytest.raises(LocalProtocolError, match="'odd'"):
        sasl.SaslClient([Odd()])


def test_client_is_done_by_an_outcome_of_ok() -> None:
    client = start(PLAIN, offered=("PLAIN",))
    client.receive_data(OK)
    assert client.done
    assert not client.failed
    assert client.take_rest() == b""
    assert repr(client) == "<SaslClient DONE>"


def test_client_keeps_what_follows_the_outcome_unread() -> None:
    client = start(PLAIN, offered=("PLAIN",))
    client.receive_data(OK + AMQP_HEADER[:3])
    client.receive_data(AMQP_HEADER[3:] + b"anything at all")
    assert client.take_rest() == AMQP_HEADER + b"anything at all"
    assert client.take_rest() == b""


def test_client_has_no_rest_before_the_outcome() -> None:
    with pytest.raises(LocalProtocolError, match="no SASL outcome yet"):
        sasl.SaslClient([PLAIN]).take_rest()


@pytest.mark.parametrize("code", [code for code in SaslCode if code is not SaslCode.OK])
def test_client_raises_by_the_code_of_another_outcome(code: SaslCode) -> None:
    client = start(PLAIN, offered=("PLAIN",))
    client.data_to_send()
    with pytest.raises(sasl.AuthenticationError) as caught:
        client.receive_data(frame(SaslOutcome(code=code)))
    assert (caught.value.code, caught.value.mechanism) == (code, "PLAIN")
    assert "secret" not in str(caught.value)
    assert client.failed
    assert client.data_to_send() == b""
    client.receive_data(b"whatever comes now is dropped")


def test_client_answers_challenges_and_verifies_the_outcome() -> None:
    mechanism = CountClient()
    client = sasl.SaslClient([mechanism], hostname="example.com")
    client.receive_data(offer("X-COUNT", "PLAIN"))
    assert mechanism.context == sasl.ClientContext("example.com", ("X-COUNT", "PLAIN"))
    client.receive_data(frame(SaslChallenge(challenge=b"ab")))
    client.receive_data(frame(SaslChallenge(challenge=b"")))
    assert performatives(client.data_to_send()) == [
        SaslInit(mechanism="X-COUNT", hostname="example.com"),
        SaslResponse(response=b"abab"),
        SaslResponse(response=b""),
    ]
    client.receive_data(frame(SaslOutcome(code=SaslCode.OK, additional_data=b"proof")))
    assert client.done


@pytest.mark.parametrize("data", [None, b"", b"forged"])
def test_client_does_not_believe_an_outcome_that_its_mechanism_doubts(data: bytes | None) -> None:
    client = start()
    with pytest.raises(sasl.AuthenticationError, match="did not prove its identity") as caught:
        client.receive_data(frame(SaslOutcome(code=SaslCode.OK, additional_data=data)))
    assert (caught.value.code, caught.value.mechanism) == (SaslCode.OK, "X-COUNT")
    assert client.failed


def test_row_15_client_ends_an_endless_exchange() -> None:
    client = start()
    for _ in range(8):
        client.receive_data(frame(SaslChallenge(challenge=b"x")))
    with pytest.raises(RemoteProtocolError, match="more than 8 SASL challenges") as caught:
        client.receive_data(frame(SaslChallenge(challenge=b"x")))
    assert caught.value.condition == "amqp:resource-limit-exceeded"


def test_client_asks_for_a_token_before_it_begins() -> None:
    client = start(CountClient(asks=True))
    question = client.question
    assert question is not None
    assert question.ask is fetch_token
    assert client.state is SaslState.ASKING
    assert client.data_to_send() == b""
    client.answer(b"token")
    assert client.question is None
    assert performatives(client.data_to_send()) == [SaslInit(mechanism="X-COUNT", initial_response=b"token")]


def test_client_reads_on_after_the_answer() -> None:
    client = start(CountClient(asks=True))
    client.receive_data(frame(SaslChallenge(challenge=b"a")) + frame(SaslChallenge(challenge=b"b"))[:9])
    client.answer(b"token")
    assert performatives(client.data_to_send())[1:] == [SaslResponse(response=b"aa")]


def test_client_takes_no_answer_without_a_question() -> None:
    client = start()
    with pytest.raises(LocalProtocolError, match="no question"):
        client.answer(True)
    assert not client.failed


def test_client_fails_with_its_mechanism() -> None:
    client = start(CountClient(asks=True))
    with pytest.raises(AssertionError):
        client.answer("not octets")
    assert client.failed


def test_row_8_client_sends_no_frame_over_the_limit() -> None:
    client = sasl.SaslClient([sasl.Plain("guest", "t" * 600)], max_frame_size=512)
    with pytest.raises(LocalProtocolError, match="would pass the limit of 512"):
        client.receive_data(offer("PLAIN"))
    assert client.failed


@pytest.mark.parametrize(
    "performative",
    [
        SaslOutcome(code=SaslCode.OK),
        SaslChallenge(challenge=b"x"),
        SaslInit(mechanism="PLAIN"),
        SaslResponse(response=b"x"),
    ],
)
def test_row_11_client_aborts_on_what_may_not_come_first(performative: object) -> None:
    client = sasl.SaslClient([PLAIN])
    with pytest.raises(RemoteProtocolError, match=f"{type(performative).__name__} while the client"):
        client.receive_data(frame(performative))
    assert client.failed
    assert client.data_to_send() == b""


@pytest.mark.parametrize(
    "performative",
    [
        SaslMechanisms(sasl_server_mechanisms=["PLAIN"]),
        SaslInit(mechanism="PLAIN"),
        SaslResponse(response=b"x"),
    ],
)
def test_row_11_client_aborts_on_what_may_not_come_after_its_init(performative: object) -> None:
    client = start()
    with pytest.raises(RemoteProtocolError, match=type(performative).__name__):
        client.receive_data(frame(performative))


def test_client_aborts_on_a_challenge_that_its_mechanism_has_not() -> None:
    client = start(PLAIN, offered=("PLAIN",))
    with pytest.raises(RemoteProtocolError, match="but the mechanism has none"):
        client.receive_data(frame(SaslChallenge(challenge=b"")))


def test_client_aborts_on_an_outcome_of_no_known_code() -> None:
    client = start()
    with pytest.raises(RemoteProtocolError) as caught:
        client.receive_data(encode_frame(0, bytes.fromhex("00 53 44 c0 03 01 50 05"), SASL_FRAME))
    assert caught.value.condition == "amqp:invalid-field"
