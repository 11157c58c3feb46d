"""Options that both ends of a connection have: what they may be given as, and that their keywords are these options."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ForwardRef

import pytest

from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.open_options import OpenKeywords, OpenOptions, strictness
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import Strict


def test_keywords_are_the_fields_of_the_options_with_their_types() -> None:
    declared = {one.name: one.type for one in fields(OpenOptions)}
    keywords = {
        name: one.__forward_arg__ if isinstance(one, ForwardRef) else one
        for name, one in OpenKeywords.__annotations__.items()
    }
    assert keywords == declared


def test_options_come_back_as_keywords_when_asked_for() -> None:
    options = OpenOptions(
        idle_timeout=None, channel_max=7, properties={"product": "x"}, incoming_locales="de"
    )
    assert OpenOptions(**options.keywords()) == options
    assert options.keywords()["incoming_locales"] == ("de",)


def test_iterator_of_symbols_is_read_once_when_given() -> None:
    options = OpenOptions(desired_capabilities=iter(["a", "b"]))
    for _ in range(2):
        assert Connection("x", **options.keywords()).local.desired_capabilities == ("a", "b")


@pytest.mark.parametrize("name", ["idle_timeout", "max_frame_size", "channel_max"])
def test_option_that_is_no_number_is_refused(name: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"{name}='3': expected an? (int|number) or None"):
        OpenOptions(**{name: "3"})  # type: ignore[arg-type]  # as from the environment


def test_frame_size_and_channel_max_go_before_limits_when_given() -> None:
    limits = Limits(max_frame_size=4096, channel_max=3, handle_max=9)
    local = Connection("x", limits=limits).local
    assert (local.max_frame_size, local.channel_max) == (4096, 3)
    connection = Connection("x", limits=limits, max_frame_size=512, channel_max=1)
    assert (connection.local.max_frame_size, connection.local.channel_max) == (512, 1)
    assert connection.limits.handle_max == 9


@pytest.mark.parametrize("options", [{"max_frame_size": 511}, {"limits": Limits(max_frame_size=511)}])
def test_frame_size_is_refused_when_below_the_least(options: Any) -> None:
    with pytest.raises(LocalProtocolError, match="max_frame_size=511: expected at least 512 octets"):
        OpenOptions(**options)


def test_strictness_is_all_or_none_or_as_given() -> None:
    own = Strict.all(False)
    assert strictness(own) is own
    assert strictness(None) == Strict()
    assert strictness(True) == Strict.all(True)
    assert strictness(False) == Strict.all(False)


@pytest.mark.parametrize("given", [None, 5])
def test_capabilities_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(LocalProtocolError, match=f"desired_capabilities={given}: expected a str, or several"):
        OpenOptions(desired_capabilities=given)
