"""Every protocol that a container serves is held to the contract."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from trio_amqp10.container.dialects import DIALECTS

from .protocols import PROTOCOLS


def test_every_protocol_has_an_entry() -> None:
    assert PROTOCOLS.keys() == {"1.0", *DIALECTS}
    assert all(name == entry.name for name, entry in PROTOCOLS.items())


LACKING: Final = {
    "1.0": set[str](),
    "0-9-1": set[str](),
    "10.3": set[str](),
    "amqp-fast": set[str](),
    # It has the client and the links of 1.0.
    "1.0-draft-2010": {"calls_at_loss", "narrow_consumer"},
}
"""What is tested of the others, and that a protocol does not have."""


def test_nothing_is_left_out_of_an_entry_but_what_is_listed() -> None:
    assert {
        name: {each.name for each in fields(entry) if getattr(entry, each.name) is None}
        for name, entry in PROTOCOLS.items()
    } == LACKING
