"""Declarations of Part 4: the coordinator, and messages to it (4.5)."""

from typing import Annotated, Any, Final, TypeAlias

from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import Multiple, Requires, archetype, boolean, symbol
from trio_amqp10.amqp10.wire.values import Symbol

from .messaging import OutcomeType

GlobalTxId: TypeAlias = Annotated[Any, archetype("global-tx-id", "*")]
TransactionId: TypeAlias = Annotated[Any, archetype("txn-id", "binary")]
TxnCapabilitySymbol: TypeAlias = Annotated[symbol, Requires("txn-capability")]


@composite("amqp:coordinator:list", 0x30, provides=["target"])
class Coordinator:
    """The target of a link that controls transactions (4.5.1)."""

    capabilities: Multiple[TxnCapabilitySymbol] = ()


@composite("amqp:declare:list", 0x31)
class Declare:
    """The request for a transaction (4.5.2)."""

    global_id: GlobalTxId | None = None


@composite("amqp:discharge:list", 0x32)
class Discharge:
    """The request to end a transaction (4.5.3)."""

    txn_id: TransactionId
    fail: boolean | None = None


@composite("amqp:declared:list", 0x33, provides=["delivery-state", "outcome"])
class Declared:
    """The outcome of a declare (4.5.5)."""

    txn_id: TransactionId


@composite("amqp:transactional-state:list", 0x34, provides=["delivery-state"])
class TransactionalState:
    """The state of a delivery inside a transaction (4.5.6)."""

    txn_id: TransactionId
    outcome: OutcomeType | None = None


class TxnCapability:
    """The capabilities of a coordinator (4.5.7); an open set."""

    LOCAL_TRANSACTIONS: Final = Symbol("amqp:local-transactions")
    DISTRIBUTED_TRANSACTIONS: Final = Symbol("amqp:distributed-transactions")
    PROMOTABLE_TRANSACTIONS: Final = Symbol("amqp:promotable-transactions")
    MULTI_TXNS_PER_SSN: Final = Symbol("amqp:multi-txns-per-ssn")
    MULTI_SSNS_PER_TXN: Final = Symbol("amqp:multi-ssns-per-txn")
