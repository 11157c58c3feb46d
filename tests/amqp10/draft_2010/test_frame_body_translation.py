"""Bodies of frames survive a translation; other fields are carried apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.draft_2010 import frame_body_translation as bodies
from trio_amqp10.amqp10.draft_2010.registries import FRAME_BODIES, SASL_FRAME_BODIES
from trio_amqp10.amqp10.draft_2010.spec import messaging as draft
from trio_amqp10.amqp10.draft_2010.spec import security as draft_security
from trio_amqp10.amqp10.draft_2010.spec import transport as draft_transport
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import security, transport
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .strategies import (
    errors,
    kept,
    maps,
    names,
    numbers,
    over_the_wire,
    sources,
    states,
    tags,
    targets,
    texts,
)

known_states = states.filter(lambda state: getattr(state, "section_offset", 0) == 0)


# Frame bodies --------------------------------------------------------------------------------------


@given(
    st.builds(
        transport.Open,
        container_id=texts,
        hostname=st.none() | texts,
        max_frame_size=numbers,
        channel_max=st.integers(0, 65_535),
        idle_time_out=st.none() | st.integers(1, 2**31 // 1000).map(lambda seconds: 1000 * seconds),
        outgoing_locales=st.lists(names, max_size=2).map(tuple),
        incoming_locales=st.lists(names, max_size=2).map(tuple),
        offered_capabilities=st.lists(names, max_size=3).map(tuple),
        desired_capabilities=st.lists(names, max_size=3).map(tuple),
        properties=st.none() | maps,
    )
)
def test_open_comes_back_with_the_time_out_of_two_intervals(performative: transport.Open) -> None:
    body = over_the_wire(bodies.draft_open(performative), FRAME_BODIES)
    back = bodies.final_open(body, None)
    timeout = performative.idle_time_out
    expected = None if timeout is None else 2 * timeout
    assert back.idle_time_out == (None if expected is None else min(expected, 2000 * (0xFFFFFFFF // 2000)))
    for name in ("container_id", "hostname", "max_frame_size", "channel_max", "properties"):
        assert getattr(back, name) == getattr(performative, name)
    for name in ("outgoing_locales", "incoming_locales", "offered_capabilities", "desired_capabilities"):
        assert tuple(getattr(back, name)) == tuple(getattr(performative, name))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (None, None, None),
        (0, 5, None),
        (5, 0, None),
        (5, 3, 6_000),
        (3, 5, 6_000),
        (None, 4, 8_000),
        (4, None, 8_000),
    ],
)
def test_lower_interval_holds_and_0_is_none(ours: Any, theirs: Any, expected: Any) -> None:
    assert bodies.idle_time_out(ours, theirs) == expected


def test_interval_is_a_second_at_least() -> None:
    assert bodies.heartbeat_interval(1) == 1
    assert bodies.heartbeat_interval(30_500) == 30
    assert bodies.heartbeat_interval(None) is None


def test_frame_of_any_size_and_locales_that_are_none() -> None:
    body = draft_transport.Open(container_id="c", channel_max=1, outgoing_locales=("é", "en_US"))
    made = bodies.final_open(body, 5)
    assert made.max_frame_size == 0xFFFFFFFF
    assert made.outgoing_locales == ("en_US",)


@given(
    st.builds(
        transport.Begin,
        remote_channel=st.none() | st.integers(0, 65_535),
        next_outgoing_id=st.just(0),
        incoming_window=st.just(0),
        outgoing_window=st.just(9),
        offered_capabilities=st.lists(names, max_size=3).map(tuple),
        desired_capabilities=st.lists(names, max_size=3).map(tuple),
        properties=st.none() | maps,
    )
)
def test_begin_comes_back(performative: transport.Begin) -> None:
    assert (
        bodies.final_begin(over_the_wire(bodies.draft_begin(performative), FRAME_BODIES), 9) == performative
    )


@given(st.none() | errors)
def test_ends_come_back(error: Any) -> None:
    for performative, back in (
        (transport.Close(error=error), bodies.final_close),
        (transport.End(error=error), bodies.final_end),
    ):
        body = over_the_wire(bodies.draft_close(performative), FRAME_BODIES)
        assert back(body) == performative  # type: ignore[operator]


@st.composite
def attaches(draw: Any) -> transport.Attach:
    life = draw(kept())
    role = draw(st.booleans())
    return transport.Attach(
        name=draw(texts),
        handle=draw(numbers),
        role=role,
        source=draw(sources(life)),
        target=draw(targets(life)),
        unsettled=draw(st.none() | st.dictionaries(tags, known_states, max_size=3)),
        initial_delivery_count=None if role else draw(numbers),
        max_message_size=draw(st.none() | numbers),
        properties=draw(st.none() | maps),
    )


@given(attaches())
def test_attach_comes_back(attach: transport.Attach) -> None:
    flow_state = draft_transport.FlowState(session_credit=1, transfer_count=attach.initial_delivery_count)
    made = bodies.draft_attach(attach, flow_state, None)
    assert bodies.final_attach(over_the_wire(made, FRAME_BODIES)) == attach


def test_message_that_came_in_part_is_said_from_its_start() -> None:
    body = draft_transport.Attach(
        name="n",
        handle=0,
        role=True,
        flow_state=draft_transport.FlowState(session_credit=0),
        unsettled={b"t": draft.TransferState(bytes_transferred=7)},
    )
    assert bodies.final_attach(body).unsettled == {b"t": final.Received(section_number=0, section_offset=0)}


def test_attach_without_a_terminus_of_its_own_has_no_linkage() -> None:
    for role, fields in ((True, {"source": final.Source()}), (False, {"target": final.Target()})):
        attach = transport.Attach(name="n", handle=0, role=role, initial_delivery_count=0, **fields)
        made = bodies.draft_attach(
            attach, draft_transport.FlowState(session_credit=0, transfer_count=0), None
        )
        assert made.local is None
        back = bodies.final_attach(made)
        assert back.source is back.target is None


def test_half_of_an_unsettled_map_cannot_be_said() -> None:
    attach = transport.Attach(name="n", handle=0, role=True, incomplete_unsettled=True)
    with pytest.raises(LocalProtocolError, match="unsettled map"):
        bodies.draft_attach(attach, draft_transport.FlowState(session_credit=0), None)


def test_sender_says_where_it_counts_from() -> None:
    body = draft_transport.Attach(
        name="n", handle=0, role=False, flow_state=draft_transport.FlowState(session_credit=0)
    )
    with pytest.raises(RemoteProtocolError, match="transfer-count"):
        bodies.final_attach(body)


@pytest.mark.parametrize("closed", [False, True])
def test_detach_closes_without_a_linkage(closed: bool) -> None:
    local = None if closed else draft_transport.Linkage()
    body = draft_transport.Detach(handle=3, local=local)
    assert bodies.final_detach(body) == transport.Detach(handle=3, closed=closed)


@pytest.mark.parametrize(
    "performative",
    [
        security.SaslMechanisms(sasl_server_mechanisms=("PLAIN", "ANONYMOUS")),
        security.SaslMechanisms(sasl_server_mechanisms=("PLAIN",)),
        security.SaslInit(mechanism="PLAIN", initial_response=b"\0a\0b"),
        security.SaslChallenge(challenge=b"c"),
        security.SaslResponse(response=b"r"),
        security.SaslOutcome(code=security.SaslCode.AUTH),
        security.SaslOutcome(code=security.SaslCode.OK, additional_data=b"d"),
    ],
    ids=repr,
)
def test_sasl_frame_comes_back(performative: Any) -> None:
    body = over_the_wire(bodies.draft_sasl(performative), SASL_FRAME_BODIES)
    assert bodies.final_sasl(body) == performative


def test_sasl_without_a_name_or_a_code_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="mechanism"):
        bodies.final_sasl(draft_security.SaslInit(mechanism="é"))
    with pytest.raises(RemoteProtocolError, match="code"):
        bodies.final_sasl(draft_security.SaslOutcome())
