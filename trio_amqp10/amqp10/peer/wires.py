"""The engines of AMQP 1.0 by dialect: the final standard, or a draft of it.

Knows the engines by name; the engine of the draft is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl import SaslClient, SaslServer

FINAL: Final = "1.0"
DRAFT_2010: Final = "1.0-draft-2010"


class Wire(NamedTuple):
    """The classes of a connection's engine and SASL layer."""

    connection: type[Connection]
    sasl_client: type[SaslClient]
    sasl_server: type[SaslServer]


def wire_of(dialect: str) -> Wire:
    """Return the engine of a dialect of AMQP 1.0.

    Args:
        dialect: ``"1.0"``, the final standard, or the name of a draft.

    Raises:
        LocalProtocolError: there is no such dialect.
    """
    if dialect == FINAL:
        return Wire(Connection, SaslClient, SaslServer)
    if dialect != DRAFT_2010:
        raise LocalProtocolError(f"dialect={dialect!r}: expected {FINAL!r} or {DRAFT_2010!r}")
    engine = import_module("trio_amqp10.amqp10.draft_2010.connection")
    sasl = import_module("trio_amqp10.amqp10.draft_2010.sasl")
    return Wire(engine.DraftConnection, sasl.DraftSaslClient, sasl.DraftSaslServer)
