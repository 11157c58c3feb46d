"""Text for headers and frames: on one line, by field, or by octet.

Secrets of the SASL layer are never shown, only their size (5.3.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.wire.content import Properties
from trio_amqp10.amqp091.wire.frames import METHOD
from trio_amqp10.amqp091.wire.methods import Method
from trio_amqp10.amqp10.draft_2010.spec import security as draft_2010
from trio_amqp10.amqp10.draft_2010.spec.transport import Fragment
from trio_amqp10.amqp10.spec.security import SaslChallenge, SaslInit, SaslOutcome, SaslResponse
from trio_amqp10.amqp10.wire.codes import BINARY8, BINARY32
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE, SASL_FRAME
from trio_amqp10.amqp_fast.wire.commands import Command
from trio_amqp10.core.protocol_headers import AMQP_ID, SASL_ID, TLS_ID

from .amqp091_pieces import CONNECTION, fields_of_091
from .amqp_fast_pieces import fields_of_fast
from .pieces import OtherProtocolPiece

if TYPE_CHECKING:
    from .pieces import Piece

_LAYERS: Final = {AMQP_ID: "AMQP", TLS_ID: "TLS", SASL_ID: "SASL"}
_SECRETS: Final[dict[type, tuple[str, ...]]] = {
    SaslInit: ("initial_response",),
    SaslChallenge: ("challenge",),
    SaslResponse: ("response",),
    SaslOutcome: ("additional_data",),
    draft_2010.SaslInit: ("initial_response",),
    draft_2010.SaslChallenge: ("challenge",),
    draft_2010.SaslResponse: ("response",),
    draft_2010.SaslOutcome: ("additional_data",),
    Fragment: ("payload",),
}
"""Fields of which only the size is shown: secrets, and contents of messages."""


def describe(piece: Piece) -> str:
    """Describe a piece on one line: ``[0] Begin(next_outgoing_id=0)``.

    Secrets are not shown.
    """
    if piece.fault is not None:
        return f"{len(piece.octets)} octets: {piece.fault}"
    if isinstance(piece, OtherProtocolPiece):
        return piece.describe()
    if piece.is_header:
        layer, *version = piece.octets[4:]
        named = f" ({_LAYERS[layer]})" if layer in _LAYERS else ""
        return f"header AMQP {layer} {'.'.join(map(str, version))}{named}"
    if piece.performative is None:
        return "empty frame"
    channel = "" if piece.frame_type == SASL_FRAME else f"[{piece.channel}] "
    shown = ", ".join(f"{name}={value}" for name, value in fields_of(piece.performative).items())
    payload = f" + {len(piece.payload)} octets" if piece.payload else ""
    return f"{channel}{piece.name}({shown}){payload}"


def fields_of(performative: Any) -> dict[str, str]:
    """Return the fields without their default value, as text without secrets."""
    if isinstance(performative, (Method, Properties)):
        return fields_of_091(performative)
    if isinstance(performative, Command):
        return fields_of_fast(performative)
    plan = plan_of(performative.__class__)
    secrets = _SECRETS.get(performative.__class__, ())
    return {
        field.name: f"<{len(value or b'')} octets>" if field.name in secrets else _shown(value)
        for field, value in zip(plan.fields, plan.values(performative), strict=True)
        if field.mandatory or value != field.default
    }


def _shown(value: Any) -> str:
    if isinstance(value, Fragment):
        return f"Fragment({', '.join(f'{name}={text}' for name, text in fields_of(value).items())})"
    if value.__class__ is tuple and value and isinstance(value[0], Fragment):
        return f"({', '.join(map(_shown, value))})"
    return repr(value)


def redacted(piece: Piece) -> bytes:
    """Return the octets of a piece, with every octet of a secret replaced by ``*``.

    The result has the same size, and is still a frame.
    """
    if isinstance(piece, OtherProtocolPiece):
        return piece.redacted()
    octets = piece.octets
    if piece.fault is not None and _may_log_in(octets):
        return octets[:FRAME_HEADER_SIZE] + b"*" * len(octets[FRAME_HEADER_SIZE:])
    for name in _SECRETS.get(piece.performative.__class__, ()):
        secret: bytes = getattr(piece.performative, name) or b""
        prefixes = (bytes((BINARY8, len(secret))),) if len(secret) < 256 else ()
        for prefix in (*prefixes, bytes([BINARY32]) + len(secret).to_bytes(4, "big")):
            octets = octets.replace(prefix + secret, prefix + b"*" * len(secret))
    return octets


def _may_log_in(octets: bytes) -> bool:
    """Whether octets that cannot be read begin like a frame of a login.

    Of 1.0, 0-9-1 or 10.3.
    """
    is_sasl = octets[5:6] == bytes([SASL_FRAME])
    return is_sasl or (octets[:1] == bytes([METHOD]) and CONNECTION in octets[7:10])


def hexdump(octets: bytes, *, start: int = 0) -> list[str]:
    """Return lines of sixteen octets: the offset, the octets, and their ASCII text."""
    lines: list[str] = []
    for pos in range(0, len(octets), 16):
        row = octets[pos : pos + 16]
        text = "".join(chr(octet) if 0x20 <= octet < 0x7F else "." for octet in row)
        lines.append(f"{start + pos:06x}  {row.hex(' '):<47}  {text}")
    return lines
