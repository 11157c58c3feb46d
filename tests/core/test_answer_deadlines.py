"""The answers that a peer owes, and their time-out, in the engines of protocols."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp091 import pairs as pairs091
from tests.amqp10.engine.helpers import begun, opened
from tests.amqp_fast import pairs as pairs_fast
from tests.engine_pairs import events_of
from tests.naive.performatives import frame
from trio_amqp10 import amqp091, amqp_fast
from trio_amqp10.amqp091 import spec as spec091
from trio_amqp10.amqp091.engine.engine import Engine as Engine091
from trio_amqp10.amqp10.engine.events import LinkDetached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp_fast.engine.engine import Engine as EngineFast
from trio_amqp10.core.answer_deadlines import AwaitedAnswers
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import RemoteProtocolError


def test_time_of_an_answer_begins_when_the_time_is_known() -> None:
    answers = AwaitedAnswers(10.0)
    assert answers.deadline() is None
    answers.expect("a", "the first")
    assert answers.deadline() == 0.0
    assert answers.take_overdue(100.0) == []
    assert answers.deadline() == 110.0
    answers.expect("b", "the second")
    answers.expect("a", "again, which changes nothing")
    assert answers.take_overdue(105.0) == []
    assert answers.deadline() == 110.0
    assert answers.take_overdue(110.0) == [("a", "the first")]
    assert answers.deadline() == 115.0
    answers.answered("b")
    answers.answered("b")
    assert not answers
    assert answers.deadline() is None


def test_answer_that_has_come_before_its_time_began_is_not_awaited() -> None:
    answers = AwaitedAnswers(10.0)
    answers.expect("a", "x")
    answers.expect("b", "x")
    answers.answered("a")
    assert len(answers) == 1
    assert answers.take_overdue(0.0) == []
    assert answers.deadline() == 10.0


def test_no_time_passes_while_it_is_held() -> None:
    answers = AwaitedAnswers(10.0)
    answers.go_on("reading")
    answers.expect("a", "x")
    assert answers.take_overdue(0.0) == []
    answers.hold("reading")
    answers.hold("blocked")
    assert answers.deadline() is None
    assert answers.take_overdue(100.0) == []
    answers.go_on("reading")
    assert answers.deadline() is None
    answers.go_on("blocked")
    assert answers.take_overdue(100.0) == []
    assert answers.deadline() == 110.0


def test_nothing_is_awaited_without_a_limit() -> None:
    answers = AwaitedAnswers(None)
    answers.expect("a", "x")
    assert not answers


def test_attach_that_is_not_answered_ends_the_link() -> None:
    session, script = begun(Limits(answer_timeout=7.0))
    connection = script.engine
    link = session.sender("x")
    link.attach(source=Source(), target=Target(address="q"))
    assert connection.next_deadline() == 0.0
    connection.handle_timer(20.0)
    assert connection.next_deadline() == 27.0
    connection.handle_timer(27.0)
    assert link.state is LinkState.DETACH_SENT
    (detached,) = [each for each in events_of(connection) if isinstance(each, LinkDetached)]
    assert "did not answer the attach of link 'x' within 7 s" in str(detached.error.description)


def test_begin_that_is_not_answered_ends_the_connection() -> None:
    connection, _ = opened(Limits(answer_timeout=7.0))
    connection.session().begin()
    connection.handle_timer(0.0)
    with pytest.raises(RemoteProtocolError, match="the begin of a session"):
        connection.handle_timer(7.0)


def test_session_that_is_ended_awaits_no_begin() -> None:
    connection, _ = opened(Limits(answer_timeout=7.0))
    session = connection.session()
    session.begin()
    session.end()
    assert not connection.context.answers


def test_link_without_a_terminus_is_detached_when_its_peer_does_not() -> None:
    session, script = begun(Limits(close_timeout=3.0))
    link = session.sender("x")
    link.attach(source=Source(), target=Target(address="q"))
    script << frame("attach", name="x", handle=0, role=True, source=("source", {}))
    connection = script.engine
    connection.handle_timer(1.0)
    assert link.error is None
    connection.handle_timer(4.0)
    assert link.error is not None
    assert "no-terminus" in str(link.error.description)


def test_stranger_has_the_time_that_is_less() -> None:
    for engine in (Engine091(EndpointRole.SERVER, 0.0), EngineFast(EndpointRole.SERVER, 0.0)):
        engine.open_by(float("inf"))
        assert engine.next_deadline() == 30.0
        engine.open_by(10.0)
        engine.open_by(20.0)
        assert engine.next_deadline() == 10.0


def _lost(engine: Any) -> str:
    return next(event.reason for event in events_of(engine) if type(event).__name__ == "ConnectionLost")


def test_server_of_methods_that_does_not_answer_is_given_up() -> None:
    client, _ = pairs091.open_client(amqp091.Limits(answer_timeout=7.0))
    client.open_channel()
    events_of(client)
    client.handle_timer(0.0)
    client.handle_timer(7.0)
    assert "did not answer channel.open on channel" in _lost(client)
    assert client.data_to_send()
    assert client.data_to_send() is None


def test_no_time_passes_while_the_server_says_that_it_is_blocked() -> None:
    client, _ = pairs091.open_client(amqp091.Limits(answer_timeout=7.0))
    client.open_channel(7)
    client.receive_data(pairs091.written(spec091.ConnectionBlocked(reason="memory")), 0.0)
    client.handle_timer(100.0)
    client.receive_data(pairs091.written(spec091.ConnectionUnblocked()), 100.0)
    client.handle_timer(100.0)
    assert not any(type(event).__name__ == "ConnectionLost" for event in events_of(client))
    client.handle_timer(107.0)
    assert "channel 7" in _lost(client)


def test_each_new_secret_is_awaited_by_itself() -> None:
    client, _ = pairs091.open_client(amqp091.Limits(answer_timeout=7.0))
    client.update_secret(b"a")
    client.update_secret(b"b")
    client.handle_timer(0.0)
    client.receive_data(pairs091.written(spec091.ConnectionUpdateSecretOk()), 5.0)
    client.handle_timer(5.0)
    client.handle_timer(12.0)
    assert "connection.update-secret" in _lost(client)


def test_server_of_amqp_fast_that_does_not_reply_is_given_up() -> None:
    client = pairs_fast.open_client(amqp_fast.Limits(answer_timeout=7.0))
    client.answers.expect("key", "the command")
    assert client.next_deadline() == 0.0
    client.handle_timer(0.0)
    client.handle_timer(7.0)
    assert "did not answer the command" in _lost(client)
