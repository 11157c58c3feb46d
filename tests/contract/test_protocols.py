"""Every protocol that a container serves is held to the contract."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from tests.contract.protocols import PROTOCOLS
from trio_amqp10.container.protocols.table import DIALECTS


def test_every_protocol_has_an_entry() -> None:
    assert PROTOCOLS.keys() == {"1.0", *DIALECTS}
    assert all(name == entry.name for name, entry in PROTOCOLS.items())


LACKING: Final = {
    "1.0": set[str](),
    # A client of these two ends the transport without an answer where the open is wrong (0-9-1, 2.2.4).
    "0-9-1": {"last_words"},
    "10.3": {"last_words"},
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
