"""The layers of a conversation, each agreed by its header, and their deadlines (2.2, 5.3)."""

from __future__ import annotations

import pytest

from tests.naive.performatives import frame, header
from tests.naive.script import Script, expected
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionClosed, ConnectionLost, ConnectionOpened
from trio_amqp10.amqp10.engine.layer_stack import Layer, Stack
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import RemoteProtocolError

from .helpers import refused
from .stacks import AMQP, OPEN, aborted, dialling, init, listening, security_error

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
    script.collect().expect_event(
        ConnectionLost, reason="this end closed the connection during the handshake"
    )
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


# -- a dialler without SASL -------------------------------------------------------------------------


def dialling_plain() -> tuple[Stack, Script]:
    connection = Connection("engine")
    stack = Stack(connection, 0.0)
    connection.open()
    script = Script(stack)
    script.expect_header()
    script >> expected("open")
    return stack, script


@pytest.mark.parametrize("layer", ["sasl", "tls"])
@pytest.mark.parametrize("chunk", [1, 3, 8])
def test_row_3_dialler_without_sasl_is_told_which_layer_the_peer_insists_on(layer: str, chunk: int) -> None:
    stack, script = dialling_plain()
    octets = header(layer)
    *firsts, last = [octets[start : start + chunk] for start in range(0, 8, chunk)]
    for first in firsts:
        script << first
    said = str(security_error(script, last + AMQP))
    assert f"accepts no connection without {layer.upper()}" in said
    assert {"sasl": "dial it with a mechanism, or a user", "tls": "dial it with amqps://"}[layer] in said
    script.expect_event(ConnectionLost)
    aborted(stack, script)


@pytest.mark.parametrize("chunk", [1, 4, 5, 8, 1000])
def test_dialler_without_sasl_goes_on_where_the_peer_answers_in_kind(chunk: int) -> None:
    stack, script = dialling_plain()
    for start in range(0, len(AMQP), chunk):
        script << AMQP[start : start + chunk]
    script.expect_event(ConnectionOpened)
    assert stack.connection.state is ConnectionState.OPENED


def test_row_5_time_for_layers_below_counts_towards_the_open() -> None:
    stack = Stack(Connection("engine"), 7.0, accepting=True, began=1.0)
    assert stack.next_deadline() == 11.0
    script = Script(stack, now=7.0)
    script << header()
    script.expect_header()
    script.advance(4.0)
    script.expect_event(ConnectionLost, reason="the peer took too long, before its open")


def test_row_16_refusal_is_held_longer_by_the_jitter() -> None:
    server = sasl.Server({"guest": "guest-secret"})
    stack = Stack(
        Connection("engine"),
        0.0,
        accept_sasl=lambda: sasl.SaslServer(server.offer(secure=True)),
        accepting=True,
        jitter=0.25,
    )
    script = Script(stack)
    script << header("sasl")
    script.expect_header("sasl")
    script >> expected("sasl-mechanisms")
    script << init(b"\0guest\0wrong")
    assert stack.next_deadline() == 1.25


# -- what is not read yet -----------------------------------------------------------------------------


def test_unread_octets_are_known_once_the_amqp_layer_is_up() -> None:
    stack, script = listening()
    script << header("sasl")
    assert stack.unread_input() is None
    script << init()[:5]
    assert stack.unread_input() is None
    script << init()[5:] + AMQP + OPEN[:7]
    assert stack.layer is Layer.AMQP
    assert stack.unread_input() == OPEN[:7]


def test_unread_octets_are_not_known_while_the_answer_may_be_of_another_layer() -> None:
    stack = Stack(Connection("engine"), 0.0)
    stack.receive_slice(b"AM", 0.0)
    assert stack.unread_input() is None
