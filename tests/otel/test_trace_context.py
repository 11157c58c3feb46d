"""Trace context in messages, in each form that peers use."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.otel.trace_context import GETTER, SETTER, extract_carrier, with_carrier

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TEXT = f"00-{TRACE}-{PARENT}-01"
OCTETS = b"\0\0" + bytes.fromhex(TRACE) + b"\1" + bytes.fromhex(PARENT) + b"\2\1"


def received(**fields: Any) -> amqp.Message:
    return amqp.Message.from_payload(amqp.Message("x", **fields).to_payload())


@pytest.mark.parametrize("value", [TEXT, OCTETS])
@pytest.mark.parametrize("section", ["application_properties", "annotations"])
def test_traceparent_is_read_as_text_or_octets_from_either_section(section: str, value: Any) -> None:
    message = received(**{section: {"traceparent": value, "tracestate": "a=1", "number": 7}})
    assert extract_carrier(message) == {"traceparent": TEXT, "tracestate": "a=1"}


def test_annotations_of_an_intermediary_come_first_with_their_own_state() -> None:
    made = {"traceparent": TEXT, "tracestate": "a=1", "baggage": "k=v"}
    other = TEXT.replace(PARENT, "00000000000000aa")
    message = received(application_properties=made, annotations={"traceparent": other})
    assert extract_carrier(message) == {"traceparent": other, "baggage": "k=v"}


def test_name_of_older_clients_of_azure_is_read_where_there_is_no_other() -> None:
    assert extract_carrier(received(application_properties={"Diagnostic-Id": TEXT}))["traceparent"] == TEXT
    both = received(application_properties={"Diagnostic-Id": "old", "traceparent": TEXT})
    assert extract_carrier(both)["traceparent"] == TEXT


@pytest.mark.parametrize("octets", [b"", OCTETS[:-1], b"\1" + OCTETS[1:], OCTETS[:18] + b"\7" + OCTETS[19:]])
def test_octets_that_are_no_traceparent_are_none(octets: bytes) -> None:
    assert extract_carrier(received(application_properties={"traceparent": octets})) == {}


def test_messages_that_cannot_be_read_have_no_context() -> None:
    assert extract_carrier(amqp.Message.from_payload(b"\xff\xff")) == {}
    assert extract_carrier(amqp.Message.from_payload(b"\xff\xff", 7)) == {}


def test_fields_are_added_to_a_copy_and_leave_the_other_octets_alone() -> None:
    message = received(application_properties={"k": 1}, subject="s")
    before = message.to_payload()
    made = with_carrier(message, {"traceparent": TEXT})
    assert made.application_properties == {"k": 1, "traceparent": TEXT}
    assert (made.subject, message.to_payload()) == ("s", before)


def test_getter_and_setter_are_those_of_a_dict() -> None:
    fields: dict[str, str] = {}
    SETTER.set(fields, "a", "b")
    assert (GETTER.get(fields, "a"), GETTER.get(fields, "c"), GETTER.keys(fields)) == (["b"], None, ["a"])


def test_library_does_not_import_opentelemetry_by_itself() -> None:
    code = "import sys, trio_amqp10, trio_amqp10.tools.cli; assert not [m for m in sys.modules if 'opentelemetry' in m]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_import_without_opentelemetry_names_the_extra() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None\nimport trio_amqp10.otel"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "pip install 'trio-amqp10[otel]'" in result.stderr
