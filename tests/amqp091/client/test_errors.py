"""Errors of the client name code, text and method."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.client.errors import channel_closed, connection_closed
from trio_amqp10.core.reply_codes import ReplyCode091


@pytest.mark.parametrize("code", list(ReplyCode091))
def test_errors_name_code_text_and_method(code: ReplyCode091) -> None:
    closed = connection_closed(
        spec.ConnectionClose(reply_code=code, reply_text="why\x07", class_id=60, method_id=40)
    )
    assert str(int(code)) in str(closed)
    assert "why\ufffd" in str(closed)
    assert closed.method == "basic.publish"
    channel = channel_closed(
        3, spec.ChannelClose(reply_code=code, reply_text=f"{code.name} - x"), by_peer=True
    )
    assert str(channel).count(code.name) == 1
    assert channel.method is None


def test_errors_take_codes_that_are_not_known() -> None:
    error = channel_closed(1, spec.ChannelClose(reply_code=999, reply_text="odd"), by_peer=False)
    assert "999 odd" in str(error)
    assert "violated the protocol" in str(error)
    assert not error.may_retry
    assert error.condition == "amqp:internal-error"
