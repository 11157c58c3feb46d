"""The cost of a terminus does not grow with the number of termini."""

from __future__ import annotations

from math import log2

import pytest

from tests.amqp10.engine.steps import steps
from trio_amqp10.amqp10.peer.terminus_store import Retention
from trio_amqp10.amqp10.server.retained_termini import Termini
from trio_amqp10.amqp10.server.retained_terminus import Key
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source
from trio_amqp10.amqp10.spec.transport import Role

pytestmark = pytest.mark.whole


def key(name: str) -> Key:
    return Key("peer", name, Role.RECEIVER, "ada")


class Detached:
    """A link that had a terminus."""

    def steal(self) -> None: ...

    def suspend(self, condition: str, description: str) -> None: ...

    def close(self, condition: str | None = None, description: str | None = None) -> None: ...

    def expire(self) -> None: ...


def test_terminus_that_comes_and_goes_costs_no_more_where_more_are_kept() -> None:
    counts = {}
    retention = Retention(expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=60)
    for size in (10, 1_000, 100_000):
        termini = Termini(lambda: 0.0, lambda _when, _call: None, limit=10**6, limit_each=10**6)
        holder = Detached()
        for n in range(size):
            kept = termini.claim(key(f"link {n}"), None, retention, holder, Source(), forgotten=False)
            termini.release(kept, holder, closed=False)

        def churn(termini: Termini = termini, holder: Detached = holder) -> None:
            for _again in range(3):
                kept = termini.claim(key("link 5"), None, retention, holder, Source(), forgotten=False)
                termini.release(kept, holder, closed=False)

        counts[size] = steps(churn)
    assert all(count <= 1.2 * counts[10] + 50 * log2(size / 10) for size, count in counts.items()), counts
