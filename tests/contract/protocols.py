"""The protocols that a container serves, with what the tests of this folder need of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.container.protocols.clients import CLIENTS, Client
from tests.contract.late_answers import LATE, LateScript
from tests.contract.memory_091 import MEMORY_091
from tests.contract.memory_10 import MEMORY_10, MEMORY_DRAFT
from tests.contract.memory_103 import MEMORY_103
from tests.contract.memory_fast import MEMORY_FAST
from tests.contract.rights_scripts import SCRIPTS, Scripts

if TYPE_CHECKING:
    from tests.contract.memory_scripts import MemoryScript

__all__ = ["PROTOCOLS", "ProtocolUnderTest"]


@dataclass(frozen=True, kw_only=True)
class ProtocolUnderTest:
    """One protocol.

    Attributes:
        name: as ``serve(dialects=...)`` has it; ``"1.0"`` for AMQP 1.0.
        client: sends a message to a queue, and receives it from there.
        rights: what each method needs permission for.
        memory: what a peer sends that reads nothing.
        late: requests that are answered later.
    """

    name: str
    client: Client
    rights: Scripts
    memory: MemoryScript
    late: LateScript


PROTOCOLS: Final = {
    "1.0": ProtocolUnderTest(
        name="1.0", client=CLIENTS["1.0"], rights=SCRIPTS["1.0"], memory=MEMORY_10, late=LATE["1.0"]
    ),
    "0-9-1": ProtocolUnderTest(
        name="0-9-1", client=CLIENTS["0-9-1"], rights=SCRIPTS["0-9-1"], memory=MEMORY_091, late=LATE["0-9-1"]
    ),
    "10.3": ProtocolUnderTest(
        name="10.3", client=CLIENTS["10.3"], rights=SCRIPTS["10.3"], memory=MEMORY_103, late=LATE["10.3"]
    ),
    "amqp-fast": ProtocolUnderTest(
        name="amqp-fast",
        client=CLIENTS["amqp-fast"],
        rights=SCRIPTS["amqp-fast"],
        memory=MEMORY_FAST,
        late=LATE["amqp-fast"],
    ),
    "1.0-draft-2010": ProtocolUnderTest(
        name="1.0-draft-2010",
        client=CLIENTS["1.0-draft-2010"],
        rights=SCRIPTS["1.0-draft-2010"],
        memory=MEMORY_DRAFT,
        late=LATE["1.0-draft-2010"],
    ),
}
"""By name."""
