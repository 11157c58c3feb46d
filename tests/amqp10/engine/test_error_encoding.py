"""What a wrong field ends, and what we say of it in a frame that the peer takes (1.4, 2.8.14)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.codec import Typed, encode
from tests.naive.performatives import composite, frame, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.error_encoding import error_of, fit
from trio_amqp10.amqp10.engine.states import LinkState, SessionState
from trio_amqp10.amqp10.spec.transport import Detach, Error
from trio_amqp10.amqp10.wire import encode as wire
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError

from .helpers import begun, opened, receiving, refused, sending
from .links import transfer

LETTERS = st.sampled_from(["a", "\x00", "é", "€", "😀"])
TEXTS = st.text(LETTERS, max_size=9)
LENGTHS = st.integers(0, 2000)
WRONG = Typed("string", "not what it should be")


def error(condition: str) -> tuple[str, dict[str, Any]]:
    return ("error", {"condition": condition})


@pytest.mark.parametrize("symbolic", [True, False])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("begin", {"next_outgoing_id": WRONG}),
        ("close", {"error": WRONG}),
        ("begin", {}),
    ],
)
def test_row_31_wrong_field_of_begin_or_close_ends_the_connection(
    name: str, fields: dict[str, Any], symbolic: bool
) -> None:
    _session, script = begun()
    fault = refused(script, frame(name, symbolic=symbolic, **fields))
    assert fault.condition == Condition.INVALID_FIELD.value
    script >> expected("close", error=error("amqp:invalid-field"))


@pytest.mark.parametrize("symbolic", [True, False])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("attach", {"name": "x", "handle": WRONG}),
        ("attach", {"name": "x"}),
        ("flow", {}),
        ("flow", {"next_incoming_id": WRONG}),
        ("disposition", {"role": True}),
        ("disposition", {"role": True, "first": 0, "state": WRONG}),
        ("transfer", {"handle": 77, "delivery_id": WRONG}),
        ("transfer", {"handle": WRONG}),
        ("transfer", {}),
        ("detach", {"handle": 77, "closed": WRONG}),
        ("end", {"error": WRONG}),
    ],
)
def test_row_31_wrong_field_of_what_is_about_a_session_ends_it(
    name: str, fields: dict[str, Any], symbolic: bool
) -> None:
    link, script = receiving()
    script << frame(name, symbolic=symbolic, **fields)
    script >> expected("end", error=error("amqp:invalid-field"))
    assert link.session.state is SessionState.DISCARDING


@pytest.mark.parametrize("symbolic", [True, False])
@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("transfer", {"delivery_id": 0, "delivery_tag": WRONG}),
        ("transfer", {"delivery_id": 0, "delivery_tag": b"t", "rcv_settle_mode": Typed("ubyte", 7)}),
        ("detach", {"closed": WRONG}),
    ],
)
def test_row_31_wrong_field_of_what_is_about_a_link_ends_that(
    name: str, fields: dict[str, Any], symbolic: bool
) -> None:
    link, script = receiving()
    script << frame(name, handle=0, symbolic=symbolic, **fields)
    script >> expected("detach", handle=0, error=error("amqp:invalid-field"))
    assert link.state is LinkState.DETACH_SENT
    assert link.session.state is SessionState.MAPPED
    script << transfer(0, 1, b"late")
    script.expect_nothing()


def test_row_31_wrong_field_for_a_link_that_is_detaching_is_dropped_like_the_rest() -> None:
    link, script = sending()
    link.detach()
    script >> expected("detach")
    script << frame("transfer", handle=0, delivery_id=4, delivery_tag=WRONG)
    script << frame("transfer", handle=0, delivery_tag=WRONG)
    script.expect_nothing()
    assert link.session.windows.next_incoming_id == 2


def test_wrong_field_before_any_session_ends_the_connection() -> None:
    _connection, script = opened()
    fault = refused(script, frame("attach", name=WRONG))
    assert fault.condition == Condition.INVALID_FIELD.value


def test_wrong_field_in_front_of_octets_that_are_no_value_ends_the_connection() -> None:
    _link, script = receiving()
    body = bytearray(encode(composite("transfer", {"handle": 0, "delivery_id": WRONG, "delivery_tag": b"t"})))
    body[-2] = 0xFF
    fault = refused(script, raw_frame(bytes(body)))
    assert fault.condition == Condition.DECODE_ERROR.value
    script >> expected("close", error=error("amqp:decode-error"))


# -- what we say --------------------------------------------------------------------------------


def test_error_of_keeps_a_bounded_text() -> None:
    said = error_of(RemoteProtocolError("x" * 5000, Condition.NOT_FOUND), "'q': ")
    assert (said.condition, said.description) == ("amqp:not-found", "'q': " + "x" * 1019)


def test_error_of_names_the_rule_however_long_the_text_is() -> None:
    said = error_of(rules.LINK_CREDIT.broken("x" * 5000))
    assert said.condition == "amqp:link:transfer-limit-exceeded"
    assert said.description is not None
    assert len(said.description) == 1024
    assert said.description.endswith("xx [link-credit]")


@given(
    st.none() | st.tuples(TEXTS, LETTERS, LENGTHS).map(lambda parts: parts[0] + parts[1] * parts[2]),
    st.integers(512, 3000),
    st.none() | st.just({"key": "value"}),
)
def test_fit_leaves_what_fits_and_shortens_the_rest(text: str | None, size: int, info: Any) -> None:
    given_ = Error(condition="amqp:not-found", description=text, info=info)
    fitting = fit(given_, size)
    assert fitting is not None
    frame_size = 8 + len(wire.encode(Detach(handle=0xFFFFFFFF, closed=True, error=fitting)))
    assert frame_size <= size
    assert (fitting.condition, fitting.info) == (given_.condition, info)
    if fitting is not given_:
        assert text is not None
        assert fitting.description is not None
        assert text.startswith(fitting.description)
        assert size - frame_size < 64 + 4


def test_fit_of_nothing_is_nothing() -> None:
    assert fit(None, 512) is None


@pytest.mark.parametrize("description", [None, "short"])
def test_fit_raises_when_the_rest_is_too_long_by_itself(description: str | None) -> None:
    with pytest.raises(LocalProtocolError, match="does not fit a frame of 512 octets"):
        fit(Error(condition="c" * 600, description=description), 512)


def details(script: Script, name: str) -> str:
    """What the error of the next frame says beside its condition."""
    said = script.expect(name)["error"][1]
    assert said["condition"]
    return said.get("description") or ""


def test_error_of_a_detach_says_what_was_wrong() -> None:
    _, script = receiving(credit=1)
    script << transfer(0, 0) + transfer(0, 1)
    assert "credit" in details(script, "detach")


def test_error_of_an_end_says_what_was_wrong() -> None:
    _, script = begun()
    script << frame("detach", handle=7)
    assert "detach for handle 7" in details(script, "end")


def test_error_of_a_close_says_what_was_wrong() -> None:
    _, script = begun()
    refused(script, frame("end", channel=9))
    assert "channel 9" in details(script, "close")


@pytest.mark.parametrize("name", ["detach", "end", "close"])
def test_error_without_a_condition_is_a_wrong_field(name: str) -> None:
    _, script = receiving()
    fields: dict[str, Any] = {"error": ("error", {"description": "why"})}
    if name == "detach":
        fields["handle"] = 0
    wrong = frame(name, **fields)
    if name == "close":
        assert refused(script, wrong).condition == "amqp:invalid-field"
    else:
        script << wrong
    script >> expected(name, error=error("amqp:invalid-field"))
