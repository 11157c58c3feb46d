"""The layers of a conversation: SASL, then AMQP, each agreed by its header (2.2, 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.helpers import BEGIN, refused
from tests.naive.performatives import empty_frame, frame, header, raw_frame
from tests.naive.script import Script, expected
from tests.sasl.frames import CountClient, CountServer
from trio_amqp10 import sasl
from trio_amqp10.engine.connection import Connection
from trio_amqp10.engine.events import (
    Authenticated,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    QuestionAsked,
    SessionBegun,
)
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.stack import Layer, Stack
from trio_amqp10.engine.states import ConnectionState
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from trio_amqp10.spec.transport import Error

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN = frame("open", container_id="peer")
AMQP = header() + OPEN
USERS = {"guest": "guest-secret"}
GOOD = b"\0guest\0guest-secret"


async def never(user: str, password: str) -> bool:
    """Asked in these tests, and never awaited."""
    raise AssertionError


def listening(
    *, users: Any = USERS, plain: bool = False, verify: Any = None, mechanisms: Any = (), **options: Any
) -> tuple[Stack, Script]:
    """An accepting stack with PLAIN, unless the options say otherwise."""
    server = sasl.Server(None if verify or mechanisms else users, verify=verify, mechanisms=mechanisms)
    offer: Callable[[], sasl.SaslServer] = lambda: sasl.SaslServer(server.offer(secure=True))  # noqa: E731
    stack = Stack(Connection("engine", **options), 0.0, accept_sasl=offer, accept_plain=plain, accepting=True)
    return stack, Script(stack)


def dialling(*mechanisms: Any, pipelined: bool = True, **options: Any) -> tuple[Stack, Script]:
    """A dialling stack with its header out, which has opened and begun already."""
    connection = Connection("engine", pipelined=pipelined, **options)
    client = sasl.SaslClient(mechanisms or [sasl.Plain("guest", "guest-secret")], hostname="h")
    stack = Stack(connection, 0.0, sasl=client)
    connection.open()
    connection.session().begin()
    script = Script(stack)
    script.expect_header("sasl")
    return stack, script


def init(message: bytes = GOOD, mechanism: str = "PLAIN") -> bytes:
    return frame("sasl-init", mechanism=mechanism, initial_response=message)


MECHANISMS = frame("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])
OK = frame("sasl-outcome", code=0)


def security_error(script: Script, *octets: bytes) -> SecurityError:
    """What a dialler raises on these octets."""
    with pytest.raises(SecurityError) as caught:
        script.send(*octets)
    script.collect()
    return caught.value


def aborted(stack: Stack, script: Script) -> None:
    """The transport is to be aborted: not another octet, and nothing more is read."""
    script.expect_nothing()
    assert script.over
    assert stack.layer is Layer.DEAD
    assert stack.connection.state is ConnectionState.END
    script << AMQP
    script.expect_nothing()


# -- the first header -------------------------------------------------------------------------------

STRANGERS = {
    "HTTP": b"GET / HTTP/1.1\r\n",
    "TLS hello": b"\x16\x03\x01",
    "AMQP 0-9-1": b"AMQP\x00\x00\x09\x01",
    "id 1": b"AMQP\x01\x01\x00\x00",
    "version 1.1.0": b"AMQP\x00\x01\x01\x00",
    "first octet": b"H",
    "fifth octet": b"AMQP\x07",
}


@pytest.mark.parametrize("octets", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.parametrize("plain", [True, False])
def test_row_1_stranger_is_shown_an_acceptable_header(octets: bytes, plain: bool) -> None:
    stack, script = listening(plain=plain)
    assert refused(script, octets).condition == "amqp:connection:framing-error"
    script.expect_header("amqp" if plain else "sasl")
    script.expect_event(ConnectionLost)
    aborted(stack, script)


@pytest.mark.parametrize("octets", STRANGERS.values(), ids=STRANGERS)
def test_row_1_stranger_is_shown_our_header_when_there_is_no_sasl(octets: bytes) -> None:
    connection = Connection("engine")
    script = Script(connection)
    assert refused(script, octets).condition == "amqp:connection:framing-error"
    script.expect_header()
    script.expect_nothing()
    assert script.over
    assert connection.state is ConnectionState.END


def test_row_1_header_is_awaited_octet_by_octet_while_it_may_be_one() -> None:
    _, script = listening()
    for octet in header("sasl")[:-1]:
        script << bytes([octet])
        script.expect_nothing()
    script << header("sasl")[-1:]
    script.expect_header("sasl")


@pytest.mark.parametrize("name", ["amqp", "tls"])
def test_row_2_layer_that_is_not_taken_is_shown_the_header_of_one_that_is(name: str) -> None:
    stack, script = listening()
    assert "without SASL" in str(refused(script, header(name) + OPEN)) or name == "tls"
    script.expect_header("sasl")
    aborted(stack, script)


def test_row_2_stranger_is_pointed_at_tls_when_nothing_else_is_taken() -> None:
    stack = Stack(Connection("engine"), 0.0, accept_plain=False, accepting=True)
    script = Script(stack)
    refused(script, header("sasl"))
    script.expect_header("tls")
    aborted(stack, script)


@pytest.mark.parametrize("pipelined", [True, False])
def test_row_3_downgrade_is_refused_before_any_credentials_leave(pipelined: bool) -> None:
    stack, script = dialling(pipelined=pipelined)
    assert isinstance(security_error(script, AMQP), sasl.SecurityDowngradeError)
    aborted(stack, script)


def test_row_3_peer_that_wants_tls_is_an_error_of_security() -> None:
    stack, script = dialling()
    assert "TLS" in str(security_error(script, header("tls")))
    aborted(stack, script)


def test_row_3_answer_that_is_no_header_is_refused() -> None:
    stack, script = dialling()
    refused(script, b"HTTP/1.1 400")
    aborted(stack, script)


def test_row_4_octets_behind_a_tls_header_are_never_read() -> None:
    stack, script = listening(plain=True)
    refused(script, header("tls") + AMQP)
    script.expect_header("amqp")
    aborted(stack, script)


def test_connection_refuses_the_header_of_another_layer() -> None:
    connection = Connection("engine")
    connection.open()
    script = Script(connection)
    script.expect_header()
    script >> expected("open")
    assert "protocol id 3" in str(refused(script, header("sasl")))
    assert script.over


# -- deadlines of the handshake ---------------------------------------------------------------------


def test_row_5_peer_that_drips_is_given_up_at_the_deadline_of_the_header() -> None:
    stack, script = listening()
    for octet in header("sasl")[:6]:
        script.advance(0.8)
        script << bytes([octet])
    assert stack.next_deadline() == 5.0
    script.advance(0.3)
    script.expect_event(ConnectionLost, reason="the peer took too long, before its protocol header")
    aborted(stack, script)


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (header("sasl"), "before SASL was done"),
        (header("sasl") + init(), "before its open"),
        (header("sasl") + init() + header(), "before its open"),
    ],
    ids=["sasl", "header", "open"],
)
def test_row_5_handshake_is_given_up_at_its_own_deadline(octets: bytes, reason: str) -> None:
    stack, script = listening()
    script << octets
    script.advance(9.9)
    assert not any(isinstance(e, ConnectionLost) for e in script.events)
    script.advance(0.2)
    assert script.events[-1] == ConnectionLost(f"the peer took too long, {reason}")
    assert script.over
    assert stack.connection.state is ConnectionState.END


@pytest.mark.parametrize(("octets", "deadline"), [(b"", 5.0), (header(), 10.0)])
def test_row_5_dialler_without_sasl_gives_up_too(octets: bytes, deadline: float) -> None:
    connection = Connection("engine")
    stack = Stack(connection, 0.0)
    connection.open()
    script = Script(stack)
    script << octets
    script.advance(deadline - 0.1)
    assert connection.state in (ConnectionState.OPEN_PIPE, ConnectionState.OPEN_SENT)
    script.advance(0.1)
    script.expect_event(ConnectionLost)
    assert script.over


def test_stack_has_no_deadline_of_the_handshake_when_the_peer_has_opened() -> None:
    connection = Connection("engine", idle_timeout=None)
    stack = Stack(connection, 0.0)
    connection.open()
    script = Script(stack)
    script << AMQP
    script.advance(100.0)
    assert connection.state is ConnectionState.OPENED
    assert stack.next_deadline() is None


def test_stack_has_no_deadline_when_the_limits_say_so() -> None:
    stack, script = listening(limits=Limits(header_timeout=None, handshake_timeout=None))
    assert stack.next_deadline() is None
    script.advance(100.0)
    script << header("sasl")
    script.expect_header("sasl")


# -- SASL, accepting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_stack_authenticates_and_reads_on_when_all_comes_in_one_read(chunk: int | None) -> None:
    stack, script = listening()
    script.send(header("sasl") + init() + AMQP + frame("begin", **BEGIN), chunk=chunk)
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms", sasl_server_mechanisms=["PLAIN"])
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


# -- ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "reason"),
    [(b"", "before its protocol header"), (header("sasl"), "before SASL was done")],
)
@pytest.mark.parametrize("how", ["eof", "lose"])
def test_stack_tells_where_the_handshake_stood_when_the_transport_ends(
    octets: bytes, reason: str, how: str
) -> None:
    stack, script = listening()
    script << octets
    getattr(script, how)()
    getattr(script, how)()
    assert [type(e) for e in script.events] == [ConnectionLost]
    assert script.events[0].reason.endswith(reason)
    assert stack.layer is Layer.DEAD
    assert script.collect().over


@pytest.mark.parametrize("how", ["eof", "lose"])
def test_stack_leaves_the_end_of_the_transport_to_the_amqp_layer_when_that_began(how: str) -> None:
    _stack, script = listening(plain=True)
    script << AMQP
    script.expect_event(ConnectionOpened)
    getattr(script, how)()
    script.expect_event(ConnectionLost)
    assert script.collect().over


def test_stack_gives_up_the_handshake_when_it_is_closed() -> None:
    stack, script = listening()
    stack.close()
    stack.close()
    script.collect().expect_event(ConnectionLost, reason="closed by us during the handshake")
    aborted(stack, script)


def test_stack_closes_the_amqp_layer_when_that_began() -> None:
    stack, script = listening(plain=True)
    script << AMQP
    stack.close(Error(condition="amqp:connection:forced"), 7.0)
    script.expect_header()
    script >> expected("open") >> expected("close", error=("error", {"condition": "amqp:connection:forced"}))
    assert stack.connection.next_deadline() == 12.0
    script << frame("close")
    assert script.over
    assert not any(isinstance(e, ConnectionClosed) for e in script.events)


def test_stack_wakes_what_the_amqp_layer_touched() -> None:
    stack, _ = listening(plain=True)

    class Owner:
        touched = False

        def wake(self) -> None: ...

    owner = Owner()
    stack.connection.touch(owner)
    assert stack.take_touched() == [owner]


def test_stack_tells_the_deadline_of_the_amqp_layer_once_that_is_open() -> None:
    stack, script = listening(plain=True, idle_timeout=60.0)
    script << AMQP
    stack.connection.open()
    script.advance(20.0)
    assert stack.next_deadline() == 60.0
    with pytest.raises(RemoteProtocolError, match="no frame from the peer"):
        script.advance(40.0)
