"""SASL on its way through the layers: both sides, failures, questions (5.3)."""

from __future__ import annotations

import pytest

from tests.naive.performatives import empty_frame, frame, header, raw_frame
from tests.naive.script import expected
from tests.sasl.frames import CountClient, CountServer
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.events import (
    Authenticated,
    ConnectionLost,
    ConnectionOpened,
    QuestionAsked,
    SessionBegun,
)
from trio_amqp10.amqp10.engine.layer_stack import Layer
from trio_amqp10.amqp10.engine.states import ConnectionState
from trio_amqp10.core.errors import LocalProtocolError, SecurityError

from .helpers import BEGIN, refused
from .stacks import (
    AMQP,
    GOOD,
    MECHANISMS,
    OK,
    OPEN,
    aborted,
    dialling,
    init,
    listening,
    never,
    security_error,
)

# -- SASL, accepting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_stack_authenticates_and_reads_on_when_all_comes_in_one_read(chunk: int | None) -> None:
    stack, script = listening()
    script.send(header("sasl") + init() + AMQP + frame("begin", **BEGIN), chunk=chunk)
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms", sasl_server_mechanisms=["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"])
    script >> expected("sasl-outcome", code=0)
    script.expect_header("amqp")
    script.expect_nothing()
    identity = script.expect_event(Authenticated).identity
    assert (identity.name, identity.mechanism) == ("guest", "PLAIN")
    assert stack.identity is identity
    script.expect_event(ConnectionOpened)
    script.expect_event(SessionBegun).session.begin()
    script >> expected("open") >> expected("begin", remote_channel=0)


def test_stack_takes_amqp_without_sasl_when_that_is_allowed() -> None:
    stack, script = listening(plain=True)
    script << AMQP
    script.expect_event(ConnectionOpened)
    script.expect_header("amqp")
    stack.connection.open()
    script >> expected("open")
    assert stack.identity is None


def test_stack_hands_a_fault_of_the_amqp_layer_up_when_it_comes_with_the_header() -> None:
    stack, script = listening(plain=True)
    assert refused(script, AMQP + OPEN).condition == "amqp:illegal-state"
    script.expect_header("amqp")
    script >> expected("open") >> expected("close", error=("error", {"condition": "amqp:illegal-state"}))
    assert stack.layer is Layer.AMQP


def aborts(octets: bytes) -> None:
    """These octets, in place of a sasl-init, end the transport without a frame."""
    stack, script = listening()
    script << header("sasl")
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms")
    refused(script, octets)
    script.expect_event(ConnectionLost)
    aborted(stack, script)


def test_row_8_large_frame_aborts_on_its_size_alone() -> None:
    aborts(raw_frame(b"", frame_type=1, size=8193)[:4])


@pytest.mark.parametrize(
    "octets",
    [
        empty_frame(),
        raw_frame(b"", frame_type=1),
        raw_frame(init()[8:] + b"\x40", frame_type=1),
        raw_frame(init()[8:] * 2, frame_type=1),
    ],
    ids=["empty AMQP frame", "empty", "trailing octet", "two values"],
)
def test_row_9_frame_that_does_not_hold_one_performative_aborts(octets: bytes) -> None:
    aborts(octets)


@pytest.mark.parametrize(
    "octets",
    [OPEN, raw_frame(OPEN[8:], frame_type=1), raw_frame(init()[8:], frame_type=0)],
    ids=["AMQP frame", "AMQP performative", "SASL performative in an AMQP frame"],
)
def test_row_10_frame_of_the_amqp_layer_aborts(octets: bytes) -> None:
    aborts(octets)


@pytest.mark.parametrize("octets", [MECHANISMS, OK], ids=["mechanisms", "outcome"])
def test_row_11_performative_of_a_server_aborts(octets: bytes) -> None:
    aborts(octets)


@pytest.mark.parametrize("octets", [frame("sasl-outcome", code=0), init()], ids=["outcome", "init"])
def test_row_10_sasl_performative_in_the_amqp_layer_closes(octets: bytes) -> None:
    stack, script = listening()
    script << header("sasl") + init() + AMQP
    script.events.clear()
    assert refused(script, octets).condition == "amqp:connection:framing-error"
    assert [f.name for f in script.inbox.frames][-2:] == ["open", "close"]
    assert stack.layer is Layer.AMQP


def refuses(octets: bytes) -> None:
    """These octets, in place of good credentials, end in the one outcome that all failures have."""
    stack, script = listening()
    script.now = 3.0
    script << header("sasl")
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms")
    script << octets
    script.expect_event(ConnectionLost, reason="the peer failed to authenticate")
    assert not script.over
    script << init() + AMQP  # a second attempt, or whatever it is, is dropped
    script.expect_nothing()
    assert stack.next_deadline() == 4.0
    script.advance(0.9)
    script.expect_nothing()
    script.advance(0.1)
    got = script.expect("sasl-outcome", code=1)
    assert got["additional_data"] is None
    aborted(stack, script)
    assert stack.next_deadline() is None


def test_row_11_response_before_init_is_a_failure() -> None:
    refuses(frame("sasl-response", response=b""))


def test_row_12_mechanism_that_was_not_offered_is_a_failure() -> None:
    refuses(init(mechanism="ANONYMOUS"))


@pytest.mark.parametrize(
    "message",
    [
        b"guest",
        b"\0guest\xff\0guest-secret",
        b"\0guest\0guest-secret\0",
        b"\0" + b"u" * 256 + b"\0guest-secret",
    ],
    ids=["no parts", "no UTF-8", "a NUL too many", "256 octets of user"],
)
def test_row_14_malformed_credentials_are_a_failure_like_any_other(message: bytes) -> None:
    refuses(init(message))


@pytest.mark.parametrize("message", [b"\0guest\0guess", b"\0nobody\0guest-secret"], ids=["password", "user"])
def test_row_16_wrong_credentials_are_told_after_a_second_and_tried_once(message: bytes) -> None:
    refuses(init(message))


def test_stack_keeps_a_refusal_until_its_time_when_the_peer_ends_the_transport() -> None:
    _stack, script = listening()
    script << header("sasl") + init(b"bad")
    script.eof()
    script.advance(1.0)
    script.expect_header("sasl")


def test_stack_has_nothing_more_to_say_when_the_transport_is_lost_in_a_penalty() -> None:
    stack, script = listening()
    script << header("sasl") + init(b"bad")
    script.lose()
    assert script.over
    assert stack.next_deadline() is None


def test_row_15_endless_rounds_end_in_a_failure() -> None:
    stack, script = listening(mechanisms=[CountServer(rounds=100)])
    script << header("sasl") + frame("sasl-init", mechanism="X-COUNT")
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms")
    for _ in range(8):
        script >> expected("sasl-challenge")
        script << frame("sasl-response", response=b"x")
    script.expect_nothing()
    script.advance(1.0)
    script >> expected("sasl-outcome", code=1)
    aborted(stack, script)


# -- questions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 1])
def test_stack_asks_once_and_reads_what_came_meanwhile_when_it_is_answered(chunk: int | None) -> None:
    stack, script = listening(verify=never)
    script.send(header("sasl") + init() + AMQP, chunk=chunk)
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms")
    script.expect_event(QuestionAsked)
    script.expect_nothing()
    assert not script.events
    stack.answer(True, 2.0)
    script >> expected("sasl-outcome", code=0)
    script.expect_header("amqp")
    assert script.expect_event(Authenticated).identity.name == "guest"
    script.expect_event(ConnectionOpened)


@pytest.mark.parametrize("value", [False, None, "yes"])
def test_stack_refuses_when_the_answer_is_no(value: object) -> None:
    stack, script = listening(verify=never)
    script << header("sasl") + init() + AMQP
    script.expect_event(QuestionAsked)
    stack.answer(value, 2.0)
    script.advance(2.9)
    assert script.inbox.frames[-1].name == "sasl-mechanisms"
    script.advance(0.2)
    assert (script.inbox.frames[-1].name, script.inbox.frames[-1]["code"]) == ("sasl-outcome", 1)


def test_stack_tells_a_system_error_when_the_question_cannot_be_answered() -> None:
    stack, script = listening(verify=never)
    script << header("sasl") + init()
    script.expect_event(QuestionAsked)
    stack.abandon_question(OSError("no database"), 0.0)
    script.advance(1.0)
    assert (script.inbox.frames[-1].name, script.inbox.frames[-1]["code"]) == ("sasl-outcome", 2)
    assert script.collect().over


def test_stack_asks_a_second_question_of_the_same_exchange() -> None:
    stack, script = listening(mechanisms=[CountServer(rounds=0, asks=True)])
    script << header("sasl") + frame("sasl-init", mechanism="X-COUNT")
    script.expect_event(QuestionAsked)
    stack.answer(True, 0.0)
    script.collect()
    script.expect_event(Authenticated)


def test_stack_changes_nothing_when_there_is_no_question_to_answer() -> None:
    stack, script = listening()
    script << header("sasl")
    with pytest.raises(LocalProtocolError, match="no question"):
        stack.answer(True, 0.0)
    with pytest.raises(LocalProtocolError, match="no question"):
        stack.abandon_question(OSError(), 0.0)
    script << init()
    script.expect_event(Authenticated)


def test_stack_ignores_an_answer_when_the_conversation_is_over() -> None:
    stack, script = listening(verify=never)
    script << header("sasl") + init()
    script.advance(10.0)
    stack.answer(True, 10.0)
    stack.abandon_question(OSError(), 10.0)
    assert script.collect().over
    assert stack.identity is None


def test_stack_gives_up_a_peer_that_sends_without_end_while_the_application_thinks() -> None:
    stack, script = listening(verify=never)
    script << header("sasl") + init()
    script.collect().inbox.frames.clear()
    assert refused(script, bytes(40_000)).condition == "amqp:resource-limit-exceeded"
    script.events.clear()
    aborted(stack, script)


# -- SASL, dialling -----------------------------------------------------------------------------------


def test_dialler_writes_no_octet_of_amqp_before_the_outcome_is_ok() -> None:
    stack, script = dialling()
    script << header("sasl")
    script.expect_nothing()
    script << MECHANISMS
    script >> expected("sasl-init", mechanism="PLAIN", initial_response=GOOD, hostname="h")
    script.expect_nothing()
    script << OK
    script.expect_event(Authenticated, identity=None)
    script.expect_header("amqp")
    script >> expected("open") >> expected("begin", channel=0)
    script << AMQP
    script.expect_event(ConnectionOpened)
    assert stack.connection.state is ConnectionState.OPENED


def test_dialler_holds_all_but_the_header_until_it_is_answered_when_it_is_not_pipelined() -> None:
    _, script = dialling(pipelined=False)
    script << header("sasl") + MECHANISMS
    script >> expected("sasl-init")
    script << OK
    script.expect_header("amqp")
    script.expect_nothing()
    script << header()
    script >> expected("open")
    script.expect_nothing()
    script << OPEN
    script >> expected("begin")


@pytest.mark.parametrize("chunk", [None, 1])
def test_dialler_takes_the_whole_answer_in_one_read(chunk: int | None) -> None:
    _stack, script = dialling()
    begin = frame("begin", remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    script.send(header("sasl") + MECHANISMS + OK + AMQP + begin, chunk=chunk)
    script >> expected("sasl-init")
    script.expect_header("amqp")
    script >> expected("open") >> expected("begin")
    assert [type(e) for e in script.events] == [Authenticated, ConnectionOpened, SessionBegun]


def test_row_13_dialler_refuses_a_list_without_an_allowed_mechanism() -> None:
    for names in ([], ["ANONYMOUS", "GSSAPI"]):
        stack, script = dialling()
        octets = frame("sasl-mechanisms", sasl_server_mechanisms=names)
        failure = security_error(script, header("sasl") + octets)
        assert isinstance(failure, sasl.NoAcceptableMechanismError)
        assert failure.offered == tuple(names)
        script.expect_event(ConnectionLost)
        aborted(stack, script)


def test_row_12_dialler_tells_a_refusal_of_its_credentials() -> None:
    stack, script = dialling()
    script << header("sasl") + MECHANISMS
    script >> expected("sasl-init")
    failure = security_error(script, frame("sasl-outcome", code=1) + AMQP)
    assert isinstance(failure, sasl.AuthenticationError)
    aborted(stack, script)


@pytest.mark.parametrize(
    "octets",
    [OK, init(), MECHANISMS * 2, empty_frame(), OPEN, MECHANISMS + frame("sasl-challenge", challenge=b"x")],
    ids=["outcome first", "init", "twice", "empty", "AMQP", "challenge for PLAIN"],
)
def test_row_11_dialler_aborts_on_what_no_server_may_send_now(octets: bytes) -> None:
    stack, script = dialling()
    script << header("sasl")
    refused(script, octets)
    script.inbox.frames.clear()
    script.expect_event(ConnectionLost)
    aborted(stack, script)


def test_row_15_dialler_gives_up_a_server_that_challenges_without_end() -> None:
    stack, script = dialling(CountClient())
    script << header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=["X-COUNT"])
    script >> expected("sasl-init", mechanism="X-COUNT")
    for _ in range(8):
        script << frame("sasl-challenge", challenge=b"x")
        script >> expected("sasl-response", response=b"xx")
    assert (
        refused(script, frame("sasl-challenge", challenge=b"x")).condition == "amqp:resource-limit-exceeded"
    )
    aborted(stack, script)


def test_dialler_waits_for_its_token_and_says_it_when_it_comes() -> None:
    stack, script = dialling(CountClient(asks=True))
    script << header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=["X-COUNT"])
    script.expect_event(QuestionAsked)
    script.expect_nothing()
    stack.answer(b"token", 0.0)
    script >> expected("sasl-init", mechanism="X-COUNT", initial_response=b"token")
    script << frame("sasl-outcome", code=0, additional_data=b"proof")
    script.expect_event(Authenticated)


def test_dialler_raises_when_its_token_cannot_be_had() -> None:
    stack, script = dialling(CountClient(asks=True))
    script << header("sasl") + frame("sasl-mechanisms", sasl_server_mechanisms=["X-COUNT"])
    with pytest.raises(SecurityError, match="no credentials: no network") as caught:
        stack.abandon_question(OSError("no network"), 0.0)
    assert isinstance(caught.value.__cause__, OSError)
    aborted(stack, script)
