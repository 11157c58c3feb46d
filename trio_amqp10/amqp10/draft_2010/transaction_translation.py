"""Translation of the commands to a coordinator of transactions (Book V, 2).

The draft names the transaction that a discharge ends in the state of its transfer; the final standard names it in the
message.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from trio_amqp10.amqp10.message.sections import BODY, scan, section_code
from trio_amqp10.amqp10.spec.messaging import AMQP_VALUE
from trio_amqp10.amqp10.spec.transactions import Declare, Discharge
from trio_amqp10.amqp10.wire.composite import Registry
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.errors import RemoteProtocolError

from .encodings import from_draft
from .protocol_rules import check_options, invalid_field
from .registries import TYPES, write
from .sections import DraftSection, around
from .spec import transactions as draft
from .spec.messaging import SectionCode

_COMMANDS: Final = Registry(Declare, Discharge)


def draft_command(payload: bytes) -> tuple[list[DraftSection], Any] | None:
    """Return a message to a coordinator in the draft, with a discharge's transaction.

    Only one section of the message counts (D 2083). The draft names the transaction in the state of the transfer (D 2097).
    Return None for a message that is no command.
    """
    body = _body_value(payload)
    if isinstance(body, Declare):
        command: Any = draft.Declare(global_id=body.global_id)
        return around(b"", b"", [(SectionCode.AMQP_DATA, write(command))], b""), None
    if isinstance(body, Discharge):
        command = draft.Discharge(fail=body.fail)
        return around(b"", b"", [(SectionCode.AMQP_DATA, write(command))], b""), body.txn_id
    return None


def final_command(sections: list[DraftSection], txn_id: Any, *, strict: bool = False) -> bytes | None:
    """Return a command in the final standard; None if the message is no command.

    Args:
        sections: of the message.
        txn_id: the transaction in the state of its transfer.
        strict: as of ``final_message``.

    Raises:
        RemoteProtocolError: a discharge without a transaction; an unknown option; octets that cannot be decoded.
    """
    body = [octets for code, octets in sections if code == SectionCode.AMQP_DATA]
    if len(body) != 1 or not body[0]:
        return None
    value, _ = decode(from_draft(body[0], strict=strict), 0, Budget(types=TYPES))
    if isinstance(value, (draft.Declare, draft.Discharge)):
        check_options(value, "link")
    if isinstance(value, draft.Declare):
        return AMQP_VALUE.prefix + encode(Declare(global_id=value.global_id))
    if isinstance(value, draft.Discharge):
        if not isinstance(txn_id, bytes):
            raise invalid_field(f"a discharge with txn-id {txn_id!r}: expected binary", "2097", "link")
        return AMQP_VALUE.prefix + encode(Discharge(txn_id=txn_id, fail=value.fail))
    return None


def _body_value(payload: bytes) -> Any:
    try:
        span = scan(payload)[BODY]
        if span is None:
            return None
        value, _ = decode(payload, section_code(payload, span[0])[1], Budget(types=_COMMANDS))
    except (RemoteProtocolError, struct.error, IndexError):
        return None
    return value
