"""The outcomes of a SASL exchange (AMQP 1.0, 5.3.3.6).

Knows numbers and their names.
"""

from enum import IntEnum


class SaslCode(IntEnum):
    """The outcome of a SASL exchange (5.3.3.6)."""

    OK = 0
    AUTH = 1
    SYS = 2
    SYS_PERM = 3
    SYS_TEMP = 4
