"""The history of a dead message."""

from __future__ import annotations

from typing import Any

from trio_amqp10.broker.exchanges.death_history import Death, is_cycle, recorded, summary


def death(queue: str = "q", reason: str = "expired", **details: Any) -> Death:
    return Death(
        **{"queue": queue, "reason": reason, "time": 1, "exchange": "e", "routing_keys": ("k",), **details}
    )


def test_death_of_another_queue_or_reason_gets_an_entry_in_front() -> None:
    deaths = recorded([], death("q"))
    deaths = recorded(deaths, death("r"))
    deaths = recorded(deaths, death("q", "rejected"))
    assert [(each.queue, each.reason, each.count) for each in deaths] == [
        ("q", "rejected", 1),
        ("r", "expired", 1),
        ("q", "expired", 1),
    ]


def test_death_of_the_same_kind_is_counted_and_keeps_its_details() -> None:
    deaths = recorded([], death("q", time=1, original_expiration="7"))
    deaths = recorded(deaths, death("r"))
    deaths = recorded(deaths, death("q", time=2, exchange="other"))
    assert deaths == [death("q", count=2, time=1, original_expiration="7"), death("r")]


def test_first_death_stays_and_last_death_changes() -> None:
    first = summary({}, death("q", "maxlen"))
    assert first == {
        "x-first-death-queue": "q",
        "x-first-death-reason": "maxlen",
        "x-first-death-exchange": "e",
        "x-last-death-queue": "q",
        "x-last-death-reason": "maxlen",
        "x-last-death-exchange": "e",
    }
    second = summary(first, death("r", "rejected", exchange="f"))
    assert second["x-first-death-queue"] == "q"
    assert second["x-last-death-exchange"] == "f"


def test_message_goes_in_circles_where_nobody_rejected_it() -> None:
    deaths = [death("r"), death("q")]
    assert is_cycle(deaths, "q", "expired")
    assert is_cycle(deaths, "r", "maxlen")
    assert not is_cycle(deaths, "s", "expired")
    assert not is_cycle(deaths, "q", "rejected"), "a consumer had it"
    assert not is_cycle([death("r", "rejected"), *deaths], "q", "expired")
    assert is_cycle([*deaths, death("s", "rejected")], "q", "expired"), "that was before"
    assert not is_cycle([death("q", "rejected")], "q", "expired")


def test_cycle_is_found_in_a_history_that_has_names_as_text() -> None:
    """AMQP 1.0 cannot have the octets of a name that is not UTF-8."""
    assert is_cycle([death("q\ufffd")], "q\udcff", "expired")
    assert is_cycle([death("q\udcff")], "q\udcff", "expired")
    assert not is_cycle([death("q\ufffd")], "q", "expired")
