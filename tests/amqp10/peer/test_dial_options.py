"""The options of ``open_connection``: what the engine gets of them, and what contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.peer.dial_options import DialOptions, WhereAndOptions
from trio_amqp10.core.errors import LocalProtocolError


def test_our_open_always_desires_the_relay() -> None:
    assert DialOptions().for_engine()["desired_capabilities"] == ("ANONYMOUS-RELAY",)
    asked = DialOptions(desired_capabilities=["x", "ANONYMOUS-RELAY", "x"]).for_engine()
    assert asked["desired_capabilities"] == ("x", "ANONYMOUS-RELAY")


def test_sole_connection_is_asked_for_by_capability_and_property() -> None:
    options = DialOptions(container_id="us", sole_connection="close-existing", properties={"product": "x"})
    engine = options.for_engine()
    assert engine["desired_capabilities"] == ("sole-connection-for-container", "ANONYMOUS-RELAY")
    assert engine["properties"] == {"product": "x", "sole-connection-enforcement-policy": 1}


def test_sole_connection_needs_the_id_of_its_container() -> None:
    with pytest.raises(LocalProtocolError, match="container_id"):
        DialOptions(sole_connection="refuse-connection")


@pytest.mark.parametrize(("dialect", "engine"), [("1.0", Connection), ("1.0-draft-2010", DraftConnection)])
def test_dialect_decides_which_engine_speaks(dialect: Any, engine: type[Connection]) -> None:
    assert DialOptions(dialect=dialect).wire.connection is engine


def test_place_is_not_shown_because_it_may_hold_a_password() -> None:
    options = WhereAndOptions("amqp://ada:swordfish@host")
    assert options.where == "amqp://ada:swordfish@host"
    assert "swordfish" not in repr(options)
