"""The place that a queue has moved to, as a URL and as a refusal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.container.management.redirecting import place_of
from trio_amqp10.net.urls import parse_url


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("amqp://b.example/orders", "amqp://b.example:5672/orders"),
        ("amqps://ada:secret@b.example:1/orders", "amqp://b.example:1/orders"),
        ("amqp://[::1]:5673//queues/a%2Fb%20c", "amqp://[::1]:5673//queues/a/b%20c"),
        ("amqpws://b.example:80/path?address=orders", "amqp://b.example:80/orders"),
    ],
)
def test_url_has_no_credentials_and_leads_to_the_same_place(url: str, kept: str) -> None:
    found, refusal = place_of("old", url)
    assert found == kept
    again, same = place_of("old", found)
    assert (again, same.info, str(same)) == (found, refusal.info, str(refusal))
    assert "secret" not in f"{found} {refusal} {refusal.info}"


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
def test_any_address_is_found_again(address: str) -> None:
    info = {Symbol("address"): address}
    url, refusal = place_of("old", f"amqpws://b.example:80/?address={parse_safe(address)}")
    assert refusal.info is not None
    assert refusal.info[Symbol("address")] == info[Symbol("address")] == parse_url(url).address


def parse_safe(address: str) -> str:
    """An address as a part of a query."""
    return "".join(f"%{octet:02X}" for octet in address.encode())


@pytest.mark.parametrize(
    ("url", "reason"), [("amqp://b.example", "has no address: give one"), ("b", "b"), ("amqp:///q", "host")]
)
def test_url_must_be_whole(url: str, reason: str) -> None:
    with pytest.raises(ManagementError, match=reason) as wrong:
        place_of("old", url)
    assert wrong.value.reason == "invalid"
