"""Events are what ``Connection.next_event`` gives, and each is one of the union."""

from __future__ import annotations

import typing

from trio_amqp10.engine import events


def test_event_names_every_event_of_the_module() -> None:
    named = {cls.__name__ for cls in typing.get_args(events.Event)}
    assert named == set(events.__all__) - {"Event"}


def test_event_shows_what_it_carries() -> None:
    assert repr(events.ConnectionLost("gone")) == "ConnectionLost(reason='gone')"
    assert events.ConnectionClosed(None) == events.ConnectionClosed(None)
