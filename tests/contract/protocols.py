"""The protocols that a container serves, with what the tests of this folder need of each.

A protocol joins by one entry in each table that is imported here. ``test_protocols`` lists the features that a protocol lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.container.clients import CLIENTS, Client

from .durable_scripts import DURABLE_FORMS, DURABLE_TOPIC_FORMS
from .last_words_scripts import LAST_WORDS, LastWords
from .late_answers import LATE, LateScript
from .loss_scripts import LOSS_SCRIPTS, LossScript
from .memory_091 import MEMORY_091
from .memory_10 import MEMORY_10, MEMORY_DRAFT
from .memory_103 import MEMORY_103
from .memory_fast import MEMORY_FAST
from .refusing_scripts import REFUSING, Refusing
from .rights_scripts import SCRIPTS, Scripts
from .silence_scripts import SILENCE, Silence
from .transaction_scripts import TRANSACTION_SCRIPTS, TransactionScript
from .turn_scripts import ATTACKS
from .untakeable_scripts import UNTAKEABLE, NarrowConsumer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .durable_scripts import Form
    from .memory_scripts import MemoryScript
    from .turn_scripts import Attack

MEMORY: Final = {
    "1.0": MEMORY_10,
    "0-9-1": MEMORY_091,
    "10.3": MEMORY_103,
    "amqp-fast": MEMORY_FAST,
    "1.0-draft-2010": MEMORY_DRAFT,
}


@dataclass(frozen=True, kw_only=True)
class ProtocolUnderTest:
    """One protocol.

    Attributes:
        name: as ``serve(dialects=...)`` has it; ``"1.0"`` for AMQP 1.0.
        client: sends a message to a queue, and receives it from there.
        rights: the permissions that each method needs.
        calls_at_loss: the public calls of its client; None if it has the client of another protocol.
        narrow_consumer: a consumer that cannot take every message; None if it has the links of another protocol.
        durable_forms: sends a durable message in each form that the protocol has, by the name of the form.
        durable_topic_forms: the same for a topic.
        refusing: receivers that give a message back, and must not get it again.
        silence: the calls of its client that await an answer.
        last_words: dials on a stream; and a wrong answer to its client's open.
        memory: requests of a peer that reads nothing, and contents that stay incomplete.
        late: requests that are answered later.
        transactions: sends and takes messages in a transaction; None for a protocol that has none.
        turn_attacks: asks for much work with few octets, by the names of ``turn_scripts.KINDS``; None for what the protocol cannot
            ask for.
    """

    name: str
    client: Client
    rights: Scripts
    calls_at_loss: LossScript | None
    narrow_consumer: NarrowConsumer | None
    durable_forms: Mapping[str, Form]
    durable_topic_forms: Mapping[str, Form]
    refusing: Refusing
    silence: Silence
    last_words: LastWords
    memory: MemoryScript
    late: LateScript
    transactions: TransactionScript | None
    turn_attacks: Mapping[str, Attack | None]


PROTOCOLS: Final = {
    name: ProtocolUnderTest(
        name=name,
        client=client,
        rights=SCRIPTS[name],
        calls_at_loss=LOSS_SCRIPTS.get(name),
        narrow_consumer=UNTAKEABLE.get(name),
        durable_forms=DURABLE_FORMS[name],
        durable_topic_forms=DURABLE_TOPIC_FORMS[name],
        refusing=REFUSING[name],
        silence=SILENCE[name],
        last_words=LAST_WORDS[name],
        memory=MEMORY[name],
        late=LATE[name],
        transactions=TRANSACTION_SCRIPTS[name],
        turn_attacks=ATTACKS[name],
    )
    for name, client in CLIENTS.items()
}
"""By name."""
