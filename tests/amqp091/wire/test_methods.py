"""Methods: the rows against the second reader's, round trips, what arguments refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp091 import naive
from tests.engine_pairs import refusal
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import USUAL, from_seconds
from trio_amqp10.amqp091.wire.methods import (
    Method,
    MethodTable,
    Plan,
    bit,
    field_type_of,
    method,
    short,
    timestamp,
)
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError

from .test_fields import names, tables, usual
from .test_vectors import plain

TYPES = {
    "octet": "o",
    "short": "s",
    "long": "l",
    "longlong": "q",
    "shortstr": "S",
    "longstr": "L",
    "table": "T",
    "bit": "b",
}

OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "octet": st.integers(0, 255),
    "short": st.integers(0, 0xFFFF),
    "long": st.integers(0, 0xFFFFFFFF),
    "longlong": st.integers(0, (1 << 64) - 1),
    "shortstr": names,
    "longstr": st.binary(max_size=40),
    "table": tables(usual),
    "bit": st.booleans(),
}


@st.composite
def methods(draw: Any) -> Method:
    plan = draw(st.sampled_from(list(spec.METHODS)))
    return plan.made(**{name: draw(OF_TYPE[kind.name]) for name, kind in plan.arguments})  # type: ignore[no-any-return]


def test_rows_are_the_second_readers() -> None:
    ours = {
        (plan.class_id, plan.method_id): (
            plan.name,
            {"client": "c", "server": "s", "client or server": "b"}[plan.sender.value]
            + "*" * plan.synchronous
            + "C" * plan.content,
            [[name, TYPES[kind.name]] for name, kind in plan.arguments],
        )
        for plan in spec.METHODS
    }
    assert ours == naive.METHODS


def test_every_ok_answers_its_request() -> None:
    by_name = spec.METHODS.by_name
    for name, plan in by_name.items():
        if name.endswith(("-ok", "-empty")):
            request = name.removesuffix("-ok").removesuffix("-empty")
            assert plan.answers == (by_name[request].made,)
            assert by_name[request].synchronous
        else:
            assert not plan.answers


@given(methods())
def test_methods_round_trip_and_the_second_reader_agrees(made: Method) -> None:
    plan = made.plan
    payload = plan.write(made, USUAL)
    assert spec.METHODS.read(payload, USUAL) == made
    name, arguments = naive.method(payload)
    assert name == plan.name
    for each, kind in plan.arguments:
        if kind.name != "table":
            assert arguments[each] == plain(getattr(made, each))


@given(methods(), st.integers(0, 400))
def test_method_cut_short_is_refused(made: Method, size: int) -> None:
    payload = made.plan.write(made, USUAL)
    if size >= len(payload):
        return
    with pytest.raises(ReplyError) as caught:
        spec.METHODS.read(payload[:size], USUAL)
    assert caught.value.code in (501, 502)
    with pytest.raises(ReplyError, match="after the last argument"):
        spec.METHODS.read(payload + b"\0", USUAL)


@given(st.sampled_from(list(spec.METHODS)), st.binary(max_size=60))
def test_any_arguments_are_read_or_refused(plan: Plan, octets: bytes) -> None:
    fault = refusal(spec.METHODS.read, plan.prefix + octets, USUAL)
    if fault is not None:
        assert fault.code in (501, 502)
        assert (fault.class_id, fault.method_id) == (plan.class_id, plan.method_id)


def test_method_that_ends_within_the_size_of_a_table_is_refused() -> None:
    method = spec.QueueDeclare()
    payload = method.plan.write(method, USUAL)
    assert "4 octets at offset" in str(refusal(method.plan.read, payload[:-2], USUAL))


def test_unknown_method_is_refused_with_503() -> None:
    with pytest.raises(ReplyError, match=r"unknown method 99\.1") as caught:
        spec.METHODS.read(b"\0\x63\0\1", USUAL)
    assert (caught.value.code, caught.value.class_id, caught.value.method_id) == (503, 99, 1)


@pytest.mark.parametrize(
    "made",
    [
        spec.QueueDeclare(queue="q" * 256),
        spec.BasicQos(prefetch_count=0x10000),
        spec.BasicQos(prefetch_count="1"),  # type: ignore[arg-type]
        spec.ConnectionSecure(challenge="text"),  # type: ignore[arg-type]
        spec.QueueDeclare(queue=b"q"),  # type: ignore[arg-type]
        spec.QueueDeclare(arguments={"k": object()}),
    ],
)
def test_argument_that_does_not_fit_is_a_local_error_that_names_it(made: Method) -> None:
    with pytest.raises(LocalProtocolError, match=made.plan.name):
        made.plan.write(made, USUAL)


def test_more_than_eight_bits_take_two_octets() -> None:
    rows = dict.fromkeys(("a", "b", "c", "d", "e", "f", "g", "h", "i"), bit)

    class Extension(Method):
        __annotations__ = {**rows, "end": short}

    made = method(0xF000, 1, "extension.bits", sender=EndpointRole.BOTH)(Extension)
    table = MethodTable([made])
    values: dict[str, Any] = {**dict.fromkeys(rows, False), "b": True, "i": True, "end": 7}
    payload = made.plan.write(made(**values), USUAL)
    assert payload == b"\xf0\0\0\1\2\1\0\7"
    assert table.read(payload, USUAL) == made(**values)
    assert repr(made.plan) == "<extension.bits 61440.1>"


def test_annotation_without_a_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no type of an argument"):
        field_type_of(int)


def test_timestamp_beyond_the_years_of_datetime_is_a_number() -> None:
    kind = field_type_of(timestamp)
    out = bytearray()
    kind.write(out, from_seconds((1 << 64) - 1), USUAL)
    assert out == b"\xff" * 8


def test_defaults_are_what_clients_leave_out() -> None:
    assert spec.BasicReject(delivery_tag=1).requeue
    assert spec.BasicNack(delivery_tag=1).requeue
    assert spec.ExchangeDeclare().type == "direct"
    assert spec.ConnectionOpen().virtual_host == "/"
    assert spec.QueueDeclare().arguments is not spec.QueueDeclare().arguments
    assert spec.QueueDeclare.plan.waits(spec.QueueDeclare())
    assert not spec.QueueDeclare.plan.waits(spec.QueueDeclare(no_wait=True))
    assert not spec.BasicAck.plan.waits(spec.BasicAck())
    assert EndpointRole.BOTH.permits(EndpointRole.CLIENT)
    assert not EndpointRole.SERVER.permits(EndpointRole.CLIENT)
