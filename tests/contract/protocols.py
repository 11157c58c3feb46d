"""The protocols that a container serves, with what the tests of this folder need of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.container.protocols.clients import CLIENTS, Client
from tests.contract.durable_scripts import DURABLE_FORMS, DURABLE_TOPIC_FORMS
from tests.contract.loss_scripts import LOSS_SCRIPTS, LossScript
from tests.contract.rights_scripts import SCRIPTS, Scripts
from tests.contract.transaction_scripts import TRANSACTION_SCRIPTS, TransactionScript
from tests.contract.untakeable_scripts import UNTAKEABLE, NarrowConsumer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.contract.durable_scripts import Form

__all__ = ["PROTOCOLS", "ProtocolUnderTest"]


@dataclass(frozen=True, kw_only=True)
class ProtocolUnderTest:
    """One protocol.

    Attributes:
        name: as ``serve(dialects=...)`` has it; ``"1.0"`` for AMQP 1.0.
        client: sends a message to a queue, and receives it from there.
        rights: what each method needs permission for.
        calls_at_loss: the public calls of its client; None if it has the client of another protocol.
        narrow_consumer: a consumer that cannot take every message; None if it has the links of another protocol.
        durable_forms: sends a durable message in each form that the protocol has, by the name of the form.
        durable_topic_forms: the same for a topic.
        transactions: sends and takes messages in a transaction; None for a protocol that has none.
    """

    name: str
    client: Client
    rights: Scripts
    calls_at_loss: LossScript | None
    narrow_consumer: NarrowConsumer | None
    durable_forms: Mapping[str, Form]
    durable_topic_forms: Mapping[str, Form]
    transactions: TransactionScript | None


PROTOCOLS: Final = {
    "1.0": ProtocolUnderTest(
        name="1.0",
        client=CLIENTS["1.0"],
        rights=SCRIPTS["1.0"],
        calls_at_loss=LOSS_SCRIPTS["1.0"],
        narrow_consumer=UNTAKEABLE["1.0"],
        durable_forms=DURABLE_FORMS["1.0"],
        durable_topic_forms=DURABLE_TOPIC_FORMS["1.0"],
        transactions=TRANSACTION_SCRIPTS["1.0"],
    ),
    "0-9-1": ProtocolUnderTest(
        name="0-9-1",
        client=CLIENTS["0-9-1"],
        rights=SCRIPTS["0-9-1"],
        calls_at_loss=LOSS_SCRIPTS["0-9-1"],
        narrow_consumer=UNTAKEABLE["0-9-1"],
        durable_forms=DURABLE_FORMS["0-9-1"],
        durable_topic_forms=DURABLE_TOPIC_FORMS["0-9-1"],
        transactions=TRANSACTION_SCRIPTS["0-9-1"],
    ),
    "10.3": ProtocolUnderTest(
        name="10.3",
        client=CLIENTS["10.3"],
        rights=SCRIPTS["10.3"],
        calls_at_loss=LOSS_SCRIPTS["10.3"],
        narrow_consumer=UNTAKEABLE["10.3"],
        durable_forms=DURABLE_FORMS["10.3"],
        durable_topic_forms=DURABLE_TOPIC_FORMS["10.3"],
        transactions=TRANSACTION_SCRIPTS["10.3"],
    ),
    "amqp-fast": ProtocolUnderTest(
        name="amqp-fast",
        client=CLIENTS["amqp-fast"],
        rights=SCRIPTS["amqp-fast"],
        calls_at_loss=LOSS_SCRIPTS["amqp-fast"],
        narrow_consumer=UNTAKEABLE["amqp-fast"],
        durable_forms=DURABLE_FORMS["amqp-fast"],
        durable_topic_forms=DURABLE_TOPIC_FORMS["amqp-fast"],
        transactions=TRANSACTION_SCRIPTS["amqp-fast"],
    ),
    "1.0-draft-2010": ProtocolUnderTest(
        name="1.0-draft-2010",
        client=CLIENTS["1.0-draft-2010"],
        rights=SCRIPTS["1.0-draft-2010"],
        calls_at_loss=None,
        narrow_consumer=None,
        durable_forms=DURABLE_FORMS["1.0-draft-2010"],
        durable_topic_forms=DURABLE_TOPIC_FORMS["1.0-draft-2010"],
        transactions=TRANSACTION_SCRIPTS["1.0-draft-2010"],
    ),
}
"""By name."""
