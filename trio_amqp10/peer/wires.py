"""What AMQP 1.0 may look like on the wire: as the final standard has it, or as a draft of it had.

Knows the engines by name; that of a draft is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple

from trio_amqp10.engine.connection import Connection
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.sasl import SaslClient, SaslServer

__all__ = ["DRAFT_2010", "FINAL", "Wire", "wire_of"]

FINAL: Final = "1.0"
DRAFT_2010: Final = "1.0-draft-2010"


class Wire(NamedTuple):
    """The engine of a connection, and the layer under it."""

    connection: type[Connection]
    sasl_client: type[SaslClient]
    sasl_server: type[SaslServer]


def wire_of(dialect: str) -> Wire:
    """The engine that speaks a dialect of AMQP 1.0.

    Args:
        dialect: ``"1.0"``, the final standard, or the name of a draft.

    Raises:
        LocalProtocolError: there is no such dialect.
    """
    if dialect == FINAL:
        return Wire(Connection, SaslClient, SaslServer)
    if dialect != DRAFT_2010:
        raise LocalProtocolError(f"no dialect {dialect!r} of AMQP 1.0: {FINAL} and {DRAFT_2010} are known")
    engine = import_module("trio_amqp10.draft_2010.connection")
    sasl = import_module("trio_amqp10.draft_2010.sasl")
    return Wire(engine.DraftConnection, sasl.DraftSaslClient, sasl.DraftSaslServer)
