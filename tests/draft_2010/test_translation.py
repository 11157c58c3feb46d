"""What both standards have comes back from the draft as it was; what one lacks is said otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.draft_2010 import frame_bodies as bodies
from trio_amqp10.draft_2010.outcomes import (
    draft_error,
    draft_outcome,
    draft_state,
    final_error,
    final_outcome,
    final_state,
)
from trio_amqp10.draft_2010.registries import FRAME_BODIES, SASL_FRAME_BODIES, TYPES, read, write
from trio_amqp10.draft_2010.spec import messaging as draft
from trio_amqp10.draft_2010.spec import security as draft_security
from trio_amqp10.draft_2010.spec import transport as draft_transport
from trio_amqp10.draft_2010.termini import Lifetime, draft_terminus, final_terminus, lifetime_of
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.spec import messaging as final
from trio_amqp10.spec import security, transport
from trio_amqp10.spec.transactions import Coordinator, Declared, TransactionalState
from trio_amqp10.wire.values import Described, Symbol, UInt, ULong

names = st.text("abc:-", min_size=1, max_size=6).map(Symbol)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
numbers = st.integers(0, 2**32 - 1)
maps = st.dictionaries(names, texts | st.integers(-9, 9), max_size=3)
errors = st.builds(
    transport.Error,
    condition=names | st.just(Symbol("amqp:session:window-violation")),
    description=st.none() | texts,
    info=st.none() | maps,
)
outcomes = st.one_of(
    st.builds(final.Accepted),
    st.builds(final.Released),
    st.builds(final.Rejected, error=st.none() | errors),
    st.builds(
        final.Modified,
        delivery_failed=st.none() | st.booleans(),
        undeliverable_here=st.none() | st.booleans(),
        message_annotations=st.none() | maps,
    ),
)
tags = st.binary(min_size=1, max_size=8)
states = st.one_of(
    st.none(),
    outcomes,
    st.builds(TransactionalState, txn_id=tags, outcome=st.none() | outcomes),
    st.builds(final.Received, section_number=st.just(0), section_offset=st.integers(0, 2**64 - 1)),
)
known_states = states.filter(lambda state: getattr(state, "section_offset", 0) == 0)
expiries = st.sampled_from(
    [final.ExpiryPolicy.SESSION_END, final.ExpiryPolicy.CONNECTION_CLOSE, final.ExpiryPolicy.NEVER]
)
lifetimes = st.sampled_from(
    [
        final.DeleteOnClose(),
        final.DeleteOnNoLinks(),
        final.DeleteOnNoMessages(),
        final.DeleteOnNoLinksOrMessages(),
    ]
)
dynamics = st.one_of(
    st.just({}),
    lifetimes.map(
        lambda each: {"dynamic": True, "dynamic_node_properties": {Symbol("lifetime-policy"): each}}
    ),
)


@st.composite
def kept(draw: Any) -> dict[str, Any]:
    durable = draw(st.booleans())
    return {
        "durable": final.TerminusDurability(2 if durable else 0),
        "expiry_policy": draw(expiries),
        "timeout": draw(numbers),
    }


@st.composite
def sources(draw: Any, life: Any = None) -> final.Source:
    return final.Source(
        address=draw(st.none() | texts),
        **(draw(kept()) if life is None else life),
        **draw(dynamics),
        distribution_mode=draw(st.sampled_from([final.DistributionMode.MOVE, final.DistributionMode.COPY])),
        filter=draw(st.none() | st.dictionaries(names, st.builds(Described, names, texts), max_size=2)),
        default_outcome=draw(st.none() | outcomes),
        outcomes=tuple(
            draw(
                st.lists(
                    st.sampled_from(["amqp:accepted:list", "amqp:released:list", "x:y"]).map(Symbol),
                    max_size=3,
                )
            )
        ),
        capabilities=tuple(draw(st.lists(names, max_size=3))),
    )


@st.composite
def targets(draw: Any, life: Any = None) -> final.Target:
    return final.Target(
        address=draw(st.none() | texts),
        **(draw(kept()) if life is None else life),
        **draw(dynamics),
        capabilities=tuple(draw(st.lists(names, max_size=3))),
    )


def over_the_wire(value: Any, registry: Any = TYPES) -> Any:
    return read(write(value), registry, strict=True)


@given(errors)
def test_error_comes_back(error: transport.Error) -> None:
    assert final_error(over_the_wire(draft_error(error))) == error


def test_no_error_is_none() -> None:
    assert draft_error(None) is final_error(None) is None


def test_window_violation_has_a_name_of_its_own() -> None:
    error = draft_error(transport.Error(condition=Symbol("amqp:session:window-violation")))
    assert error is not None
    assert error.condition == "amqp:session:unsettled-limit-exceeded"


@given(outcomes)
def test_outcome_comes_back(outcome: Any) -> None:
    assert final_outcome(over_the_wire(draft_outcome(outcome))) == outcome


@given(states)
def test_state_comes_back(state: Any) -> None:
    made = draft_state(state)
    assert (state is None) is (made is None)
    if made is not None:
        assert isinstance(made, draft.TransferState)
        assert final_state(over_the_wire(made)) == state


def test_unknown_states_and_outcomes_stay_as_they_are() -> None:
    strange = Described("x:y", [])
    assert draft_state(strange) is final_state(strange) is strange
    assert draft_outcome(strange) is final_outcome(strange) is strange
    assert draft_terminus(strange) is strange
    assert final_terminus(strange, Lifetime(False, Symbol("session"), 0)) is strange
    assert final_state(draft.TransferState()) is None


def test_declared_transaction_comes_with_accepted() -> None:
    state = over_the_wire(draft_state(Declared(txn_id=b"t")))
    assert state == draft.TransferState(outcome=draft.Accepted(), txn_id=b"t")
    assert final_state(state, declares=True) == Declared(txn_id=b"t")
    assert final_state(state) == TransactionalState(txn_id=b"t", outcome=final.Accepted())
    refused = draft.TransferState(outcome=draft.Rejected(), txn_id=b"t")
    assert final_state(refused, declares=True) == TransactionalState(txn_id=b"t", outcome=final.Rejected())


def test_transaction_is_named_by_octets() -> None:
    with pytest.raises(RemoteProtocolError, match="txn-id 'x'") as caught:
        final_state(draft.TransferState(txn_id="x"))
    assert caught.value.condition == "amqp:invalid-field"


@given(sources() | targets())
def test_terminus_comes_back_with_the_lifetime_of_its_link(terminus: Any) -> None:
    assert final_terminus(over_the_wire(draft_terminus(terminus)), lifetime_of(terminus)) == terminus


def test_coordinator_comes_back() -> None:
    coordinator = Coordinator(capabilities=("amqp:local-transactions",))
    back = final_terminus(over_the_wire(draft_terminus(coordinator)), lifetime_of(coordinator))
    assert back == coordinator


def test_link_is_kept_as_long_as_the_longest_of_its_termini() -> None:
    source = final.Source(durable=final.TerminusDurability.CONFIGURATION, timeout=5)
    target = final.Target(expiry_policy=final.ExpiryPolicy.NEVER, timeout=3)
    assert lifetime_of(source, target) == Lifetime(True, Symbol("never"), 5)
    assert lifetime_of(final.Source(expiry_policy=Symbol("x:mine"))) == Lifetime(False, Symbol("session"), 0)
    assert lifetime_of(None) == Lifetime(False, Symbol("session"), 0)
    unknown = final_terminus(draft.Target(), Lifetime(False, Symbol("x:mine"), 0))
    assert unknown.expiry_policy == "x:mine"


def test_dynamic_node_without_a_policy_lives_as_long_as_its_link() -> None:
    assert draft_terminus(final.Source(dynamic=True)).dynamic == draft.DeleteOnClose()
    asked = final_terminus(draft.Source(dynamic=Described("x:y", {})), Lifetime(False, Symbol("session"), 0))
    assert asked.dynamic
    assert asked.dynamic_node_properties is None


def test_mode_is_always_said_by_a_source() -> None:
    assert draft_terminus(final.Source()).distribution_mode == "move"


def test_filters_of_other_forms() -> None:
    filters = {
        Symbol("a"): Described(ULong(0x468C00000004), "x = 1"),
        Symbol("b"): Described(ULong(77), None),
        Symbol("c"): "bare",
        Symbol("d"): None,
    }
    made = draft_terminus(final.Source(filter=filters)).filter
    assert made == {
        Symbol("a"): draft.Filter(filter_type="apache.org:selector-filter:string", filter="x = 1"),
        Symbol("b"): draft.Filter(filter_type="77", filter=[]),
        Symbol("c"): draft.Filter(filter_type="c", filter="bare"),
    }
    back = final_terminus(
        draft.Source(filter={Symbol("a"): "as it is"}), Lifetime(False, Symbol("session"), 0)
    )
    assert back.filter == {Symbol("a"): "as it is"}


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
    ("make", "scope"),
    [
        (
            lambda options: bodies.final_open(
                draft_transport.Open(container_id="c", channel_max=0, options=options), None
            ),
            "connection",
        ),
        (lambda options: bodies.final_detach(draft_transport.Detach(handle=0, options=options)), "session"),
        (
            lambda options: bodies.final_sasl(draft_security.SaslResponse(response=b"", options=options)),
            "connection",
        ),
    ],
)
def test_option_that_is_not_known_is_an_error_unless_it_may_be_ignored(make: Any, scope: str) -> None:
    make({Symbol("x-opt-anything"): 1})
    for key in ("x-mine", "mine"):
        with pytest.raises(RemoteProtocolError, match=key) as caught:
            make({Symbol(key): UInt(1)})
        assert caught.value.condition == "amqp:not-implemented"
        assert caught.value.scope == scope


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
