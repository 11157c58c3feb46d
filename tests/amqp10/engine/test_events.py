"""Events are what ``Connection.next_event`` gives, and each is one of the union."""

from __future__ import annotations

from trio_amqp10.amqp10.engine import events


def test_event_names_every_event_of_the_module() -> None:
    named = {cls.__name__ for cls in events.Event.__subclasses__()}
    classes = {
        name for name, value in vars(events).items() if getattr(value, "__module__", "") == events.__name__
    }
    assert named == {name for name in classes if not name.startswith("_")} - {"Event"}


def test_event_shows_what_it_carries() -> None:
    assert repr(events.ConnectionLost("gone")) == "ConnectionLost(reason='gone')"
    assert events.ConnectionClosed(None) == events.ConnectionClosed(None)
