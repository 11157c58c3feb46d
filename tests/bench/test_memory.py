"""What connections, links, deliveries and channels hold is at most what they held when it was last reduced, and a twentieth."""

from __future__ import annotations

import sys

import pytest

from bench.job import Job
from bench.memory_amqp091 import measure
from bench.processes import run_alone

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        sys.version_info[:2] != (3, 11), reason="objects differ in size from version to version"
    ),
]

HELD = {"connections": (200, 12_950), "links": (1_000, 1_520), "unsettled": (2_000, 209)}
"""How many of each are measured, and the most octets that each may hold at one end."""

HELD_091 = {"connection": 15_250, "channel": 1_480, "consumer": 1_050}
"""The most octets of a server, if 300 are measured: of so few, the tables that grow by doubling are no small part."""


@pytest.mark.parametrize("role", HELD)
def test_end_of_amqp_10_holds_no_more_than_it_did(role: str) -> None:
    count, most = HELD[role]
    assert run_alone("held", Job(role=role, count=count, size=1))["octets"] <= most


@pytest.mark.parametrize("kind", HELD_091)
def test_server_of_amqp_091_holds_no_more_than_it_did(kind: str) -> None:
    octets, _ = measure(kind, more=300)
    assert octets <= HELD_091[kind]
