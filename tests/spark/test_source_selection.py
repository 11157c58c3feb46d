"""Sources to attach to, and what the source that a peer grants must have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.source_selection import (
    check_copying,
    check_filter,
    check_keeping,
    selector_filter,
    source_of,
)

SELECTOR = Symbol("apache.org:selector-filter:string")


def options(**given: str) -> QueueOptions:
    names = {name.replace("_", "."): value for name, value in given.items()}
    return QueueOptions.parse({"url": "amqp://h", "address": "q", "spool": "/s"} | names)


def granted(product: str = "other", **source: Any) -> Any:
    """A receiver whose peer has granted this source."""
    remote = SimpleNamespace(properties={Symbol("product"): product})
    session = SimpleNamespace(connection=SimpleNamespace(remote=remote))
    return SimpleNamespace(remote=SimpleNamespace(source=Source(**source)), session=session)


def test_selector_is_a_described_filter_or_none() -> None:
    assert selector_filter(None) is None
    found = selector_filter("n > 1")
    assert found is not None
    assert (found[SELECTOR].descriptor, found[SELECTOR].value) == (SELECTOR, "n > 1")


@pytest.mark.parametrize(
    ("given", "durable", "policy", "timeout"),
    [
        ({}, TerminusDurability.NONE, ExpiryPolicy.SESSION_END, 0),
        ({"dedup": "link"}, TerminusDurability.UNSETTLED_STATE, ExpiryPolicy.CONNECTION_CLOSE, 86_400),
        (
            {"durable": "true", "linkName": "a", "containerId": "b"},
            TerminusDurability.UNSETTLED_STATE,
            ExpiryPolicy.NEVER,
            0,
        ),
    ],
    ids=["none", "link", "durable"],
)
def test_source_lasts_as_long_as_the_options_want(
    given: dict[str, str], durable: Any, policy: ExpiryPolicy, timeout: int
) -> None:
    source = source_of(options(selector="n > 1", **given))
    assert source.address == "q"
    assert (source.durable, source.expiry_policy, source.timeout) == (durable, policy, timeout)
    assert source.filter == selector_filter("n > 1")


@pytest.mark.parametrize(
    ("check", "given", "fine"),
    [
        (check_filter, {"selector": "n > 1"}, {"filter": {SELECTOR: "n > 1"}}),
        (check_copying, {}, {"distribution_mode": "copy"}),
        (check_keeping, {"dedup": "link"}, {"expiry_policy": ExpiryPolicy.CONNECTION_CLOSE}),
        (check_keeping, {"dedup": "link"}, {"expiry_policy": ExpiryPolicy.NEVER}),
    ],
)
def test_peer_must_grant_it_and_not_only_repeat_it(
    check: Any, given: dict[str, str], fine: dict[str, Any]
) -> None:
    wanted = options(**given)
    check(granted(**fine), wanted)
    for receiver in (granted(), granted(product="RabbitMQ", **fine)):
        with pytest.raises(LocalProtocolError):
            check(receiver, wanted)


def test_selector_is_not_looked_for_where_there_is_none() -> None:
    check_filter(granted(), options())
