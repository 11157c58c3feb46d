"""The tables of states: what they promise in their module's essay, and the two kinds of error."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.states import (
    CONNECTION,
    LINK,
    SESSION,
    ConnectionState,
    Lifecycle,
    LinkState,
    SessionState,
    Step,
)
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError

C, S, L = ConnectionState, SessionState, LinkState

TABLES: list[Any] = [
    pytest.param(CONNECTION, C, C.START, C.END, id="connection"),
    pytest.param(SESSION, S, S.UNMAPPED, S.ENDED, id="session"),
    pytest.param(LINK, L, L.DETACHED, L.GONE, id="link"),
]
Table = dict[Enum, dict[Step, Enum]]


class Endpoint(Lifecycle):
    """An endpoint and nothing else."""

    __slots__ = ()

    def __init__(self, state: Enum) -> None:
        self.state = state


class OfConnection(Endpoint):
    __slots__ = ()
    _table = CONNECTION
    _scope = "connection"


class OfSession(Endpoint):
    __slots__ = ()
    _table = SESSION
    _scope = "session"


class OfLink(Endpoint):
    __slots__ = ()
    _table = LINK
    _scope = "link"


KINDS: dict[type[Enum], type[Endpoint]] = {C: OfConnection, S: OfSession, L: OfLink}


def endpoint_in(state: Enum) -> Endpoint:
    return KINDS[type(state)](state)


def walk(state: Enum, *steps: Step) -> Enum:
    endpoint = endpoint_in(state)
    for step in steps:
        endpoint.step(step)
    return endpoint.state


@pytest.mark.parametrize(("table", "kind", "start", "end"), TABLES)
def test_table_has_every_state_and_only_the_last_has_no_way_out(
    table: Table, kind: type[Enum], start: Enum, end: Enum
) -> None:
    assert set(table) == set(kind)
    assert [state for state, steps in table.items() if not steps] == [end]


@pytest.mark.parametrize(("table", "kind", "start", "end"), TABLES)
def test_table_leads_from_the_first_state_to_every_other(
    table: Table, kind: type[Enum], start: Enum, end: Enum
) -> None:
    reached, todo = {start}, [start]
    while todo:
        for state in table[todo.pop()].values():
            if state not in reached:
                reached.add(state)
                todo.append(state)
    assert reached == set(kind)


@pytest.mark.parametrize(("table", "kind", "start", "end"), TABLES)
def test_table_never_lets_us_say_anything_twice(
    table: Table, kind: type[Enum], start: Enum, end: Enum
) -> None:
    """Along every path, each kind of frame goes out at most once."""

    def paths(state: Enum, said: frozenset[str]) -> None:
        for step, after in table[state].items():
            word = step.name.replace("ERROR_", "")
            assert word not in said or not step.is_ours, f"{state.name}: {word} again"
            if after is not state:
                paths(after, said | {word})

    paths(start, frozenset())


@pytest.mark.parametrize(("table", "kind", "start", "end"), TABLES)
def test_lost_ends_everything_from_everywhere(table: Table, kind: type[Enum], start: Enum, end: Enum) -> None:
    for state in kind:
        assert walk(state, Step.LOST) is end


HANDSHAKES = [
    # 2.4.5: both orders of header and open, pipelined or not
    ([Step.SEND_HEADER, Step.RECV_HEADER, Step.SEND_OPEN, Step.RECV_OPEN], C.OPENED),
    ([Step.RECV_HEADER, Step.SEND_HEADER, Step.RECV_OPEN, Step.SEND_OPEN], C.OPENED),
    ([Step.SEND_HEADER, Step.SEND_OPEN, Step.RECV_HEADER, Step.RECV_OPEN], C.OPENED),
    ([Step.SEND_HEADER, Step.SEND_OPEN, Step.SEND_CLOSE], C.OC_PIPE),
    ([Step.SEND_HEADER, Step.SEND_OPEN, Step.SEND_CLOSE, Step.RECV_HEADER], C.CLOSE_PIPE),
]


@pytest.mark.parametrize(("steps", "state"), HANDSHAKES)
def test_connection_comes_to_where_the_standard_says(steps: list[Step], state: ConnectionState) -> None:
    assert walk(C.START, *steps) is state


@pytest.mark.parametrize(
    ("state", "steps", "after"),
    [
        (C.OC_PIPE, [Step.RECV_HEADER, Step.RECV_OPEN, Step.RECV_CLOSE], C.END),
        (C.OPENED, [Step.SEND_CLOSE, Step.RECV_CLOSE], C.END),
        (C.OPENED, [Step.RECV_CLOSE, Step.SEND_CLOSE], C.END),
        (C.OPENED, [Step.RECV_CLOSE, Step.SEND_ERROR_CLOSE], C.END),
        (C.OPENED, [Step.SEND_ERROR_CLOSE], C.DISCARDING),
        (C.OPEN_PIPE, [Step.SEND_ERROR_CLOSE, Step.RECV_HEADER, Step.RECV_OPEN, Step.RECV_CLOSE], C.END),
        (S.BEGIN_SENT, [Step.SEND_END, Step.RECV_BEGIN, Step.RECV_END], S.ENDED),
        (S.BEGIN_SENT, [Step.SEND_ERROR_END, Step.RECV_BEGIN, Step.RECV_END], S.ENDED),
        (S.MAPPED, [Step.SEND_END, Step.RECV_END], S.ENDED),
        (S.MAPPED, [Step.RECV_END, Step.SEND_END], S.ENDED),
        (S.MAPPED, [Step.SEND_ERROR_END], S.DISCARDING),
        (L.ATTACH_SENT, [Step.SEND_DETACH, Step.RECV_ATTACH, Step.RECV_DETACH], L.GONE),
        (L.ATTACHED, [Step.SEND_DETACH, Step.RECV_DETACH], L.GONE),
        (L.ATTACHED, [Step.RECV_DETACH, Step.SEND_DETACH], L.GONE),
    ],
)
def test_endpoint_is_closed_once_whoever_begins(state: Enum, steps: list[Step], after: Enum) -> None:
    assert walk(state, *steps) is after


@pytest.mark.parametrize(
    ("state", "first", "second", "after"),
    [
        (C.HDR_EXCH, Step.SEND_OPEN, Step.RECV_OPEN, C.OPENED),
        (S.UNMAPPED, Step.SEND_BEGIN, Step.RECV_BEGIN, S.MAPPED),
        (L.DETACHED, Step.SEND_ATTACH, Step.RECV_ATTACH, L.ATTACHED),
        (L.ATTACHED, Step.SEND_DETACH, Step.RECV_DETACH, L.GONE),
        (S.MAPPED, Step.SEND_END, Step.RECV_END, S.ENDED),
        (C.OPENED, Step.SEND_CLOSE, Step.RECV_CLOSE, C.END),
    ],
)
def test_endpoint_comes_to_the_same_state_whoever_is_first(
    state: Enum, first: Step, second: Step, after: Enum
) -> None:
    assert walk(state, first, second) is walk(state, second, first) is after


def test_close_with_an_error_writes_no_second_close_when_one_is_on_its_way() -> None:
    connection = Connection("us")
    connection.open()
    connection.close()
    before = connection.data_to_send()
    assert before
    connection.close(Error(condition="amqp:internal-error"))
    assert connection.data_to_send() == b""


def test_step_of_ours_raises_locally_and_changes_nothing_when_the_table_lacks_it() -> None:
    endpoint = endpoint_in(L.GONE)
    with pytest.raises(LocalProtocolError, match="cannot attach: this link is GONE"):
        endpoint.step(Step.SEND_ATTACH)
    assert endpoint.state is L.GONE


@pytest.mark.parametrize(
    ("state", "step", "condition", "scope", "text"),
    [
        (C.OPENED, Step.RECV_OPEN, Condition.FRAMING_ERROR, "connection", "unexpected open"),
        (S.ENDED, Step.RECV_END, Condition.ILLEGAL_STATE, "session", "unexpected end: this session is ENDED"),
        (L.DETACHED, Step.RECV_DETACH, Condition.ILLEGAL_STATE, "link", "unexpected detach"),
    ],
)
def test_step_of_the_peers_raises_remotely_when_the_table_lacks_it(
    state: Enum, step: Step, condition: Condition, scope: str, text: str
) -> None:
    endpoint = endpoint_in(state)
    with pytest.raises(RemoteProtocolError, match=text) as caught:
        endpoint.step(step)
    assert (caught.value.condition, caught.value.scope) == (condition.value, scope)
    assert endpoint.state is state


def test_step_tells_its_direction_and_its_words() -> None:
    assert Step.SEND_ERROR_CLOSE.is_ours
    assert Step.SEND_ERROR_CLOSE.phrase == "error close"
    assert not Step.RECV_OPEN.is_ours
    assert not Step.LOST.is_ours
