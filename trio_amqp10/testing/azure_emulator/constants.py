"""Constants of Service Bus and Event Hubs: conditions, annotations, addresses.

Knows names only.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.amqp10.wire.values import Symbol

# Addresses
CONSUMER_GROUPS: Final = "/ConsumerGroups/"
DEAD_LETTER_QUEUE: Final = "/$DeadLetterQueue"
MANAGEMENT: Final = "/$management"
PARTITIONS: Final = "/Partitions/"
TRANSFER: Final = "/$Transfer/$DeadLetterQueue"
SUBSCRIPTIONS: Final = "/Subscriptions/"

# Delivery-annotations
LOCK_TOKEN: Final = Symbol("x-opt-lock-token")

# Message-annotations
DEAD_LETTER_SOURCE: Final = Symbol("x-opt-deadletter-source")
ENQUEUED: Final = Symbol("x-opt-enqueued-time")
LOCKED_UNTIL: Final = Symbol("x-opt-locked-until")
OFFSET: Final = Symbol("x-opt-offset")
ORIGIN: Final = Symbol("x-opt-enqueue-sequence-number")
PARTITION_KEY: Final = Symbol("x-opt-partition-key")
SCHEDULED: Final = Symbol("x-opt-scheduled-enqueue-time")
SEQUENCE_NUMBER: Final = Symbol("x-opt-sequence-number")
STATE: Final = Symbol("x-opt-message-state")

# Application-properties of dead letters, and keys in the error of a rejection
REASON: Final = "DeadLetterReason"
DESCRIPTION: Final = "DeadLetterErrorDescription"

# Error conditions
ALREADY_EXISTS: Final = Symbol("com.microsoft:entity-already-exists")
ARGUMENT_ERROR: Final = Symbol("com.microsoft:argument-error")
DEAD_LETTER: Final = Symbol("com.microsoft:dead-letter")
LOCK_LOST: Final = Symbol("com.microsoft:message-lock-lost")
NOT_FOUND: Final = Symbol("com.microsoft:message-not-found")
OUT_OF_RANGE: Final = Symbol("com.microsoft:argument-out-of-range")
SESSION_LOCKED: Final = Symbol("com.microsoft:session-cannot-be-locked")
SESSION_LOCK_LOST: Final = Symbol("com.microsoft:session-lock-lost")
TIMEOUT: Final = Symbol("com.microsoft:timeout")

# Links
EPOCH: Final = Symbol("com.microsoft:epoch")
METRICS: Final = Symbol("com.microsoft:enable-receiver-runtime-metric")
SELECTOR: Final = Symbol("apache.org:selector-filter:string")
SESSION_FILTER: Final = Symbol("com.microsoft:session-filter")
SESSION_LOCKED_UNTIL: Final = Symbol("com.microsoft:locked-until-utc")

BATCH_FORMAT: Final = 0x80013700
"""The message-format of a batch, whose data sections are messages (2.8.11)."""

_EPOCH: Final = 621_355_968_000_000_000


def ticks(milliseconds: int) -> int:
    """Convert a time since 1970 to .NET's units of 100 ns since the year 1."""
    return _EPOCH + milliseconds * 10_000
