"""AMQ Protocol 10.3 as a profile of the engine of 0-9-1: what the two have in common is that engine's.

Of their own 10.3 has the frames, the methods, the properties of contents, the letters of field tables, redirects, and that a
body frame without payload gives up a content (C 1093). The codes of contents out of place are rulings of this project, as
the class reference has no rules of frames: 501, on channel 0 and on channels that are not open 504, for a weight 540.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.bookkeeping import RECEIVED, SENT, check_properties
from trio_amqp10.amqp091.content import BasicProperties, ContentCodes
from trio_amqp10.amqp091.fields import FIVE
from trio_amqp10.amqp091.profile import Profile
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.reply_codes import ReplyCode091

from . import spec
from .frames import FRAMES, PROTOCOL_HEADER
from .properties import PROPERTIES
from .self_test import ANSWERS
from .states import CHANNEL, CONNECTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.bookkeeping import MethodEffect, Numbers

__all__ = ["V10_3"]

_NOT_ALLOWED_THEN: Final = 507
"""What C 687 calls "not allowed", and C 821 and C 973 call 530: read as 530, and never written."""

_CONSUMERS: Final = ("basic", "file", "stream")
"""The classes that have consumers: what their methods do to the numbers of a channel is the same."""


def _check(numbers: Numbers, properties: Any) -> None:
    """As 0-9-1 for contents of the class basic; others have nothing that could be wrong."""
    if isinstance(properties, BasicProperties):
        check_properties(numbers, properties)


def _as_in_091(table: Mapping[str, MethodEffect], *names: str) -> dict[str, MethodEffect]:
    """The rows of 0-9-1 with these names, for each class that has such a method."""
    known = spec.METHODS.by_name
    found: dict[str, MethodEffect] = {}
    for name in names:
        own, method = name.split(".")
        for each in _CONSUMERS if own == "basic" else (own,):
            if f"{each}.{method}" in known:
                found[f"{each}.{method}"] = table[name]
    return found


_SETTLING: Final = ("basic.ack", "basic.reject")
_TX: Final = ("tx.select", "tx.commit", "tx.rollback")

V10_3: Final = Profile(
    name="10.3",
    header=PROTOCOL_HEADER,
    headers=frozenset({PROTOCOL_HEADER}),
    version=(10, 3),
    frames=FRAMES,
    methods=spec.METHODS,
    letters=FIVE,
    properties=PROPERTIES,
    connection=CONNECTION,
    channel=CHANNEL,
    sent={
        EndpointRole.CLIENT: _as_in_091(SENT[EndpointRole.CLIENT], *_SETTLING, *_TX, "basic.consume"),
        EndpointRole.SERVER: _as_in_091(
            SENT[EndpointRole.SERVER], "basic.deliver", "basic.get-ok", "basic.consume-ok", "basic.cancel-ok"
        ),
    },
    received={
        EndpointRole.SERVER: _as_in_091(RECEIVED[EndpointRole.SERVER], *_SETTLING, *_TX, "basic.consume"),
        EndpointRole.CLIENT: _as_in_091(
            RECEIVED[EndpointRole.CLIENT],
            "basic.deliver",
            "basic.get-ok",
            "basic.consume-ok",
            "basic.cancel-ok",
        ),
    },
    check=_check,
    codes=ContentCodes(
        out_of_order=ReplyCode091.FRAME_ERROR,
        other_class=ReplyCode091.FRAME_ERROR,
        weight=ReplyCode091.NOT_IMPLEMENTED,
        on_channel_0=ReplyCode091.CHANNEL_ERROR,
        on_closed_channel=ReplyCode091.CHANNEL_ERROR,
    ),
    paused=frozenset(
        {
            "basic.publish",
            "basic.deliver",
            "file.stage",
            "stream.publish",
            "stream.deliver",
            "tunnel.request",
        }
    ),
    channel_0=frozenset({spec.ConnectionClose.plan.class_id, spec.ClusterHello.plan.class_id}),
    aborts_content=True,
    answers=ANSWERS,
    heard_codes={_NOT_ALLOWED_THEN: int(ReplyCode091.NOT_ALLOWED)},
)
"""AMQ Protocol 10.3."""
