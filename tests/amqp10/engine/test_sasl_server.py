"""The server's side of the SASL layer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sasl.frames import CountServer, fetch_token, frame, performatives, settle
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.sasl_layer import HELD_LIMIT
from trio_amqp10.amqp10.spec.security import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER
from trio_amqp10.sasl import SaslState
from trio_amqp10.sasl.tally import FAILURE_PENALTY

USERS = {"guest": "guest-secret"}
REFUSAL = [SaslOutcome(code=SaslCode.AUTH)]
COUNT = frame(SaslInit(mechanism="X-COUNT"))


def plain(message: bytes | None) -> bytes:
    return frame(SaslInit(mechanism="PLAIN", initial_response=message))


def listen(*mechanisms: sasl.ServerMechanism, **limits: Any) -> sasl.SaslServer:
    """Return a server that has already sent its list of mechanisms."""
    server = sasl.SaslServer(mechanisms or sasl.Server(USERS).offer(secure=True), **limits)
    server.data_to_send()
    return server


def sent(server: sasl.SaslServer) -> list[Any]:
    return performatives(server.data_to_send())


def test_server_offers_its_mechanisms_at_once() -> None:
    server = sasl.SaslServer(sasl.Server(USERS, anonymous=True).offer(secure=True))
    assert sent(server) == [
        SaslMechanisms(sasl_server_mechanisms=["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "ANONYMOUS"])
    ]
    assert server.state is SaslState.EXPECT_INIT
    assert (server.done, server.failed, server.identity, server.mechanism) == (False, False, None, None)
    assert (server.question, server.penalty, server.error) == (None, 0.0, None)


def test_server_offers_a_single_mechanism_as_an_array() -> None:
    server = sasl.SaslServer([sasl.AnonymousServer()])
    assert server.data_to_send() == bytes.fromhex(
        "0000001c 02 01 0000  00 53 40 c0 0f 01  e0 0c 01 a3 09 414e4f4e594d4f5553"
    )


def test_server_needs_something_to_offer() -> None:
    with pytest.raises(LocalProtocolError, match="at least one mechanism"):
        sasl.SaslServer(sasl.Server(verify=fetch_token).offer(secure=False))  # type: ignore[arg-type]


def test_server_is_done_by_the_right_password() -> None:
    server = listen()
    server.receive_data(plain(b"\0guest\0guest-secret"))
    assert sent(server) == [SaslOutcome(code=SaslCode.OK)]
    assert server.done
    assert server.identity == sasl.Identity("guest", "PLAIN")
    assert server.mechanism == "PLAIN"
    assert server.penalty == 0.0
    assert repr(server) == "<SaslServer DONE>"


def test_server_keeps_what_a_client_sent_without_waiting_for_the_outcome() -> None:
    server = listen()
    server.receive_data(plain(b"\0guest\0guest-secret") + AMQP_HEADER)
    server.receive_data(b"more")
    assert server.take_rest() == AMQP_HEADER + b"more"


def test_server_identifies_an_anonymous_client_by_its_mechanism() -> None:
    server = listen(sasl.AnonymousServer())
    server.receive_data(frame(SaslInit(mechanism="ANONYMOUS")))
    assert server.identity == sasl.Identity("anonymous", "ANONYMOUS")


def test_row_12_server_refuses_a_mechanism_that_it_did_not_offer() -> None:
    server = listen(sasl.AnonymousServer())
    server.receive_data(plain(b"\0guest\0guest-secret"))
    assert sent(server) == REFUSAL
    assert server.failed
    assert server.identity is None
    assert server.mechanism is None


@pytest.mark.parametrize(
    "message", [b"", b"guest", b"\0guest\0\xff", b"\0guest", b"\0" + b"u" * 256 + b"\0p", b"\0a\0b\0c"]
)
def test_row_14_server_refuses_a_malformed_message_like_a_wrong_password(message: bytes) -> None:
    server, other = listen(), listen()
    server.receive_data(plain(message))
    other.receive_data(plain(b"\0guest\0wrong"))
    assert server.data_to_send() == other.data_to_send()
    assert (server.penalty, server.state) == (other.penalty, other.state)
    assert (server.identity, server.error) == (other.identity, other.error) == (None, None)


def test_row_16_server_refuses_a_wrong_password_and_names_a_delay() -> None:
    server = listen()
    server.receive_data(plain(b"\0guest\0wrong"))
    assert server.failed
    assert server.penalty == FAILURE_PENALTY == 1.0
    server.receive_data(plain(b"\0guest\0guest-secret"))  # one attempt a connection
    assert sent(server) == REFUSAL
    assert not server.done
    with pytest.raises(LocalProtocolError):
        server.take_rest()


def test_server_knows_whom_the_client_asked_for() -> None:
    server = listen()
    assert server.hostname is None
    server.receive_data(frame(SaslInit(mechanism="PLAIN", initial_response=b"", hostname="b.example.com")))
    assert server.hostname == "b.example.com"


def test_server_knows_when_the_identity_of_its_client_ends() -> None:
    async def verify(username: str, _token: str) -> tuple[str, float]:
        return username, 7.5

    server = listen(sasl.XOAuth2Server(verify))
    message = b"user=ada\1auth=Bearer one\1\1"
    server.receive_data(frame(SaslInit(mechanism="XOAUTH2", initial_response=message)))
    assert server.question is not None
    server.answer(settle(server.question))
    assert server.identity == sasl.Identity("ada", "XOAUTH2")
    assert server.identity.expires == 7.5


def test_server_offers_more_mechanisms_than_a_short_list_holds() -> None:
    many = [CountServer(1) for _ in range(30)]
    for number, mechanism in enumerate(many):
        mechanism.name = f"X-COUNT-{number}"
    (offer,) = sent(sasl.SaslServer(many))
    assert [*offer.sasl_server_mechanisms] == [mechanism.name for mechanism in many]


def test_server_challenges_where_an_initial_response_is_missing() -> None:
    server = listen()
    server.receive_data(plain(None))
    assert sent(server) == [SaslChallenge(challenge=b"")]
    assert server.state is SaslState.EXPECT_RESPONSE
    server.receive_data(frame(SaslResponse(response=b"\0guest\0guest-secret")))
    assert server.done


def test_server_gives_additional_data_with_the_outcome() -> None:
    server = listen(CountServer(2))
    server.receive_data(COUNT)
    server.receive_data(frame(SaslResponse(response=b"1")))
    server.receive_data(frame(SaslResponse(response=b"2")))
    assert sent(server) == [
        SaslChallenge(challenge=b"c1"),
        SaslChallenge(challenge=b"c2"),
        SaslOutcome(code=SaslCode.OK, additional_data=b"proof"),
    ]


@pytest.mark.parametrize(("rounds", "done"), [(8, True), (9, False)])
def test_row_15_server_refuses_after_eight_rounds(rounds: int, done: bool) -> None:
    server = listen(CountServer(rounds))
    server.receive_data(COUNT)
    for _ in range(8):
        server.receive_data(frame(SaslResponse(response=b"")))
    assert server.done is done
    assert server.failed is not done
    assert sent(server)[8:] == (
        [SaslOutcome(code=SaslCode.OK, additional_data=b"proof")] if done else REFUSAL
    )


@pytest.mark.parametrize("performative", [SaslResponse(response=b""), SaslInit(mechanism="X-COUNT")])
def test_row_11_server_refuses_a_client_out_of_order(performative: Any) -> None:
    server = listen(CountServer(1))
    if isinstance(performative, SaslInit):  # a second one
        server.receive_data(COUNT)
        server.data_to_send()
    server.receive_data(frame(performative))
    assert sent(server) == REFUSAL
    assert server.failed


@pytest.mark.parametrize(
    "performative",
    [
        SaslMechanisms(sasl_server_mechanisms=["PLAIN"]),
        SaslChallenge(challenge=b""),
        SaslOutcome(code=SaslCode.OK),
    ],
)
def test_row_11_server_aborts_on_what_only_a_server_sends(performative: Any) -> None:
    server = sasl.SaslServer([CountServer(1)])
    with pytest.raises(RemoteProtocolError, match=f"{type(performative).__name__} while the server"):
        server.receive_data(frame(performative))
    assert server.failed
    assert server.data_to_send() == b""
    assert server.penalty == 0.0


def test_server_asks_the_application() -> None:
    server = listen(CountServer(0, asks=True))
    server.receive_data(COUNT)
    question = server.question
    assert question is not None
    assert question.ask is fetch_token
    assert server.state is SaslState.ASKING
    assert server.data_to_send() == b""
    server.answer(True)
    assert server.done
    assert server.question is None


def test_server_asks_about_user_name_and_password_of_plain() -> None:
    async def verify(_username: str, _password: str) -> bool:
        return True

    server = listen(*sasl.Server(verify=verify).offer(secure=True))
    server.receive_data(plain(b"\0guest\0guest-secret"))
    assert server.question is not None
    assert server.question.about == "PLAIN: verify user 'guest'"
    server.answer(False)
    assert sent(server) == REFUSAL


def test_server_keeps_octets_unread_while_it_asks() -> None:
    server = listen(CountServer(0, asks=True))
    server.receive_data(COUNT + b"not a")
    server.receive_data(b" frame")
    server.answer(True)
    assert server.take_rest() == b"not a frame"


def test_server_drops_octets_when_the_answer_is_no() -> None:
    server = listen(CountServer(0, asks=True))
    server.receive_data(COUNT + COUNT)
    server.answer(False)
    assert sent(server) == REFUSAL
    assert server.question is None


def test_row_18_server_bounds_what_it_keeps_before_anyone_is_authenticated() -> None:
    server = listen(CountServer(0, asks=True))
    server.receive_data(COUNT + bytes(HELD_LIMIT))
    with pytest.raises(RemoteProtocolError, match="before the outcome") as caught:
        server.receive_data(b"x")
    assert caught.value.condition == "amqp:resource-limit-exceeded"
    assert server.failed
    assert server.question is None
    assert server.data_to_send() == b""


def test_row_18_server_bounds_what_it_keeps_after_the_outcome_not_at_all() -> None:
    server = listen(sasl.AnonymousServer())
    server.receive_data(frame(SaslInit(mechanism="ANONYMOUS")) + bytes(2 * HELD_LIMIT))
    assert len(server.take_rest()) == 2 * HELD_LIMIT


def test_server_takes_no_answer_without_a_question() -> None:
    server = listen()
    with pytest.raises(LocalProtocolError, match="no question"):
        server.answer(True)
    with pytest.raises(LocalProtocolError, match="no question"):
        server.abandon()
    assert server.state is SaslState.EXPECT_INIT


def test_server_blames_the_system_when_a_question_is_abandoned() -> None:
    server = listen(CountServer(0, asks=True))
    server.receive_data(COUNT)
    error = OSError("the directory is down")
    server.abandon(error)
    assert sent(server) == [SaslOutcome(code=SaslCode.SYS)]
    assert server.failed
    assert server.error is error
    assert server.penalty == FAILURE_PENALTY


class Clumsy(CountServer):
    """A mechanism that raises an exception at the given step."""

    def __init__(self, at: str) -> None:
        super().__init__(1)
        self.at = at

    def begin(self, context: sasl.ServerContext) -> sasl.ServerExchange:
        if self.at == "begin":
            raise ValueError(self.at)
        exchange = super().begin(context)
        if self.at == "start":
            exchange.start = trip  # type: ignore[assignment, method-assign]
        elif self.at == "response":
            exchange.response = trip  # type: ignore[assignment, method-assign]
        return exchange


def trip(_data: bytes | None) -> Any:
    raise ValueError("secret")


@pytest.mark.parametrize("at", ["begin", "start", "response"])
def test_server_refuses_when_a_mechanism_raises(at: str) -> None:
    server = listen(Clumsy(at))
    server.receive_data(COUNT)
    if not server.failed:
        server.receive_data(frame(SaslResponse(response=b"")))
    assert sent(server)[-1:] == REFUSAL
    assert isinstance(server.error, ValueError)


def test_server_refuses_when_a_mechanism_gives_no_step() -> None:
    class Silent(CountServer):
        def begin(self, context: sasl.ServerContext) -> sasl.ServerExchange:
            exchange = super().begin(context)
            exchange.start = lambda _data: None  # type: ignore[assignment,method-assign,return-value]
            return exchange

    server = listen(Silent(1))
    server.receive_data(COUNT)
    assert sent(server) == REFUSAL


def test_server_refuses_when_a_step_does_not_fit_a_frame() -> None:
    server = listen(CountServer(0, proof=bytes(600)), max_frame_size=512)
    server.receive_data(COUNT)
    assert sent(server) == REFUSAL
    assert server.identity is None
    assert isinstance(server.error, LocalProtocolError)
