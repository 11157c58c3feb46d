"""The SASL layer of the draft: mechanisms and states are those of the final standard, the frames its own (Book VI, 3).

The draft gives no number for the type of these frames: it is that of the final standard.
"""

from __future__ import annotations

from typing import Any

from trio_amqp10.frames import SASL_FRAME
from trio_amqp10.protocol_rules import SASL_FRAME as SASL_FRAME_RULE
from trio_amqp10.sasl import SaslClient, SaslServer
from trio_amqp10.sasl.layer import SaslLayer
from trio_amqp10.spec import SASL_PERFORMATIVES

from .frame_bodies import draft_sasl, final_sasl
from .registries import SASL_FRAME_BODIES, read, write

__all__ = ["DraftSaslClient", "DraftSaslServer"]


class _DraftFrames(SaslLayer):
    """Reads and writes the draft's frame bodies."""

    __slots__ = ()

    def _send_body(self, body: bytes) -> None:
        performative, _ = SASL_PERFORMATIVES.decode(body, 0)
        super()._send_body(write(draft_sasl(performative)))

    @staticmethod
    def _decode_body(frame_type: int, body: bytes) -> Any:
        if frame_type != SASL_FRAME or not body:
            raise SASL_FRAME_RULE.broken(
                f"a frame of type {frame_type} and {len(body)} octets in the SASL layer"
            )
        return final_sasl(read(body, SASL_FRAME_BODIES))


class DraftSaslClient(_DraftFrames, SaslClient):
    """As of ``SaslClient``; for the host there is no place in its frames."""

    __slots__ = ()


class DraftSaslServer(_DraftFrames, SaslServer):
    """As of ``SaslServer``."""

    __slots__ = ()
