"""The engine of a dialect of AMQP 1.0 is found by its name."""

from __future__ import annotations

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.draft_2010.connection import NAME
from trio_amqp10.amqp10.peer.wires import DRAFT_2010, wire_of

FINAL, DRAFT = "1.0", "1.0-draft-2010"


def test_dialect_that_is_none_is_refused_before_anybody_is_dialled() -> None:
    assert NAME == DRAFT_2010 == DRAFT
    with pytest.raises(amqp.LocalProtocolError, match=r"1\.0-draft-2009"):
        amqp.open_connection("amqp://localhost", dialect="1.0-draft-2009")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert wire_of(FINAL).connection is not wire_of(DRAFT).connection
