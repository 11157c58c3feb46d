"""The SASL layer of the draft (Book VI, 3).

Mechanisms and states are those of the final standard; the frames are translated. The draft gives no number for the
type of these frames: it is that of the final standard.
"""

from __future__ import annotations

from typing import Any

from trio_amqp10.amqp10.engine.sasl_layer import SaslLayer
from trio_amqp10.amqp10.spec import SASL_PERFORMATIVES
from trio_amqp10.amqp10.wire.frames import SASL_FRAME
from trio_amqp10.core.peer_rules import SASL_FRAME as SASL_FRAME_RULE
from trio_amqp10.sasl import SaslClient, SaslServer

from .frame_body_translation import draft_sasl, final_sasl
from .registries import SASL_FRAME_BODIES, read, write


class _DraftFrames(SaslLayer):
    """A SASL layer with the frame bodies of the draft."""

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
    """A ``SaslClient``; the frames of the draft have no place for the hostname."""

    __slots__ = ()


class DraftSaslServer(_DraftFrames, SaslServer):
    """A ``SaslServer`` with the frames of the draft."""

    __slots__ = ()
