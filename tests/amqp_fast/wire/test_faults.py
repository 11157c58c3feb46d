"""Faults have the scope of their level."""

from __future__ import annotations

from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011


def test_fault_has_the_scope_of_its_level() -> None:
    fault = ReplyError(ReplyCodeRfc011.SYNTAX_ERROR, "prefetch: 0", Level.HANDLE)
    assert (fault.scope, fault.reply_text) == ("link", "SYNTAX_ERROR - prefetch: 0")
    assert fault.condition == "amqp:invalid-field"
