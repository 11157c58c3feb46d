"""Selections are read as they were stored, or refused."""

from __future__ import annotations

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp_fast.conversion.selection import NUMBER, FastSelection
from trio_amqp10.broker.nodes.form_registry import content_of, selection_of

from .test_translate import content


def test_selection_is_read_as_it_was_stored() -> None:
    selection = FastSelection(b"a=1", "text/x-amq-headers", "me")
    again, wants = selection_of(NUMBER, selection.to_octets(), ("me", None))
    assert again == selection
    assert wants is not None
    wanted = content(amqp.Message(b"", application_properties={"a": 1}))
    assert [wants(wanted, "other"), wants(wanted, "me")] == [True, False]
    assert not wants(content(amqp.Message(b"")), "other")


@pytest.mark.parametrize("octets", [b"", b"[]", b'["=", "text/x-amq-headers", null]', b"7"])
def test_selection_that_is_none_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        selection_of(NUMBER, octets, ("me", None))


def test_number_of_selections_is_that_of_no_message() -> None:
    with pytest.raises(ValueError, match="not for messages"):
        content_of(NUMBER, b"x")
