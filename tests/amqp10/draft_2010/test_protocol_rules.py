"""Rules that only the draft has: options that are not known (Book III, 8.13)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010 import frame_body_translation as bodies
from trio_amqp10.amqp10.draft_2010.spec import security as draft_security
from trio_amqp10.amqp10.draft_2010.spec import transport as draft_transport
from trio_amqp10.amqp10.wire.values import Symbol, UInt
from trio_amqp10.core.errors import RemoteProtocolError


@pytest.mark.parametrize(
    ("make", "scope"),
    [
        (
            lambda options: bodies.final_open(
                draft_transport.Open(container_id="c", channel_max=0, options=options), None
            ),
            "connection",
        ),
        (lambda options: bodies.final_detach(draft_transport.Detach(handle=0, options=options)), "session"),
        (
            lambda options: bodies.final_sasl(draft_security.SaslResponse(response=b"", options=options)),
            "connection",
        ),
    ],
)
def test_option_that_is_not_known_is_an_error_unless_it_may_be_ignored(make: Any, scope: str) -> None:
    make({Symbol("x-opt-anything"): 1})
    for key in ("x-mine", "mine"):
        with pytest.raises(RemoteProtocolError, match=key) as caught:
            make({Symbol(key): UInt(1)})
        assert caught.value.condition == "amqp:not-implemented"
        assert caught.value.scope == scope
