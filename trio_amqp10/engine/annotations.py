"""Receivers that take no annotation but those that may be ignored (3.2.10), for those who ask for it.

Nothing here understands any other: every ulong is reserved, and so is every symbol that does not begin with
``x-``. Without ``Strict.annotation_keys`` no message is looked into before somebody reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10 import rules
from trio_amqp10._sections import ANNOTATIONS, DELIVERY_ANNOTATIONS, FOOTER, read_section, scan
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.wire.values import Symbol

from .receiver import ReceiverLink

if TYPE_CHECKING:
    from .delivery import IncomingDelivery

__all__ = ["CheckedReceiverLink", "unknown_key"]

_PLACES: Final = (DELIVERY_ANNOTATIONS, ANNOTATIONS, FOOTER)


class CheckedReceiverLink(ReceiverLink):
    """Is detached by a message with annotations that are not known and may not be ignored.

    A message that is handed out while it comes in is not among those: who reads it has a part of it already.
    """

    __slots__ = ()

    def enqueue(self, delivery: IncomingDelivery) -> None:
        if delivery.inflow is None and not delivery.message_format:
            key = unknown_key(delivery.payload)
            if key is not None:
                fault = f"annotation {key!r} is not known here, and does not begin with x-opt-"
                self.fail(rules.ANNOTATION_KEYS.broken(fault))
                return
        super().enqueue(delivery)


def unknown_key(payload: bytes) -> Any:
    """The first key of an annotation that may not be ignored; None also for what is no message: its reader will say so."""
    try:
        spans = scan(payload, in_order=False)
        for place in _PLACES:
            if (span := spans[place]) is not None:
                for key in read_section(place, payload, span, allow_duplicates=True):
                    if not isinstance(key, Symbol) or not key.startswith("x-opt-"):
                        return key
    except RemoteProtocolError:
        pass
    return None
