"""AMQ Protocol 10.3 as a profile of the engine of 0-9-1.

The profile has the parts in which 10.3 differs: frames, methods, properties of contents, types of field tables, redirects, and
that a body frame without payload aborts a content (C 1093). The class reference has no rules for misplaced frames of contents,
so their codes are a choice of this project: 501 in general, 504 on channel 0 and on channels that are not open, 540 for a weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.engine.bookkeeping import RECEIVED, SENT, check_properties
from trio_amqp10.amqp091.engine.profile import Profile
from trio_amqp10.amqp091.wire.content import BasicProperties, ContentCodes
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, PROTOCOL_HEADER
from trio_amqp10.amqp_10_3.wire.properties import PROPERTIES
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.reply_codes import ReplyCode091

from .self_test import ANSWERS
from .states import CHANNEL, CONNECTION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.engine.bookkeeping import ChannelNumbers, MethodEffect

_NOT_ALLOWED_THEN: Final = 507
"""The "not allowed" code of C 687; C 821 and C 973 use 530.

It is accepted as 530, and never sent.
"""

_CONSUMERS: Final = ("basic", "file", "stream")
"""The classes with consumers; their methods have the same effect on a channel."""


def _check(numbers: ChannelNumbers, properties: Any) -> None:
    """Check contents of the class basic as in 0-9-1; others need no check."""
    if isinstance(properties, BasicProperties):
        check_properties(numbers, properties)


def _as_in_091(table: Mapping[str, MethodEffect], *names: str) -> dict[str, MethodEffect]:
    """Return the rows of 0-9-1 with these names, for each class that has the method."""
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
    close_codes={_NOT_ALLOWED_THEN: int(ReplyCode091.NOT_ALLOWED)},
)
"""The profile of AMQ Protocol 10.3."""
