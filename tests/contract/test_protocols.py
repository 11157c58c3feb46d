"""Every protocol that a container serves is held to the contract."""

from __future__ import annotations

from tests.contract.protocols import PROTOCOLS
from trio_amqp10.container.protocols.table import DIALECTS


def test_every_protocol_has_an_entry() -> None:
    assert PROTOCOLS.keys() == {"1.0", *DIALECTS}
    assert all(name == entry.name for name, entry in PROTOCOLS.items())
