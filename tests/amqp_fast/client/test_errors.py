"""What the server refuses is told by its code."""

from __future__ import annotations

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.container.served import accepted
from trio_amqp10 import amqp_fast, sasl
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.core.errors import SecurityError

from .linked import connected, with_nodes


@pytest.mark.parametrize("login", [("ada", "wrong"), None])
async def test_login_that_fails_is_a_security_error(
    login: tuple[str, str] | None, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    with pytest.raises(BaseExceptionGroup) as caught:
        async with connected(users=sasl.Server({"ada": "secret"}), login=login):
            pass
    assert caught.group_contains(SecurityError)


async def test_virtual_path_that_there_is_not_is_told() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(AmqpFast(with_nodes()).serve, accepted(ours))
        with pytest.raises(amqp_fast.ConnectionClosedError) as caught:
            async with amqp_fast.open_connection(theirs, virtual_path="/other"):
                pass
        assert caught.value.code == 402
        nursery.cancel_scope.cancel()
