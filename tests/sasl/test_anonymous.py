"""ANONYMOUS: its trace, and that it lets everyone in (RFC 4505)."""

from __future__ import annotations

import pytest

from trio_amqp10 import sasl
from trio_amqp10.core.errors import LocalProtocolError

from .steps import respond


def test_anonymous_sends_trace_information() -> None:
    assert respond(sasl.Anonymous()) == b"anonymous"
    assert respond(sasl.Anonymous("joe@example.com")) == b"joe@example.com"
    assert repr(sasl.Anonymous("joe")) == "Anonymous()"


def test_anonymous_refuses_a_trace_that_is_too_long() -> None:
    with pytest.raises(LocalProtocolError, match="256 characters"):
        sasl.Anonymous("t" * 256)


def test_anonymous_sends_a_trace_of_255_characters() -> None:
    assert respond(sasl.Anonymous("\u00fc" * 255)) == "\u00fc".encode() * 255


@pytest.mark.parametrize("trace", [None, b"", b"joe@example.com", b"\xff", b"t" * 1020])
def test_anonymous_server_lets_everyone_in_as_anonymous(trace: bytes | None) -> None:
    step = sasl.AnonymousServer().begin(sasl.ServerContext()).start(trace)
    assert isinstance(step, sasl.Verified)
    assert step.name == "anonymous"


def test_anonymous_server_refuses_a_trace_that_no_255_characters_make() -> None:
    assert isinstance(sasl.AnonymousServer().begin(sasl.ServerContext()).start(b"t" * 1021), sasl.Refused)
