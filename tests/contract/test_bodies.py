"""A body that is no bytes: its octets are sent if it has some, and otherwise it is refused before anything is written."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.served import redialled
from trio_amqp10.core.errors import LocalProtocolError

from .loss_scripts import LOSS_SCRIPTS, Stage, container_with_queue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_CALLS: Final[dict[str, tuple[str, Callable[[Any, Any], Awaitable[object]]]]] = {
    "0-9-1 channel": ("0-9-1", lambda stage, body: stage.other.publish("", "spare", body)),
    "0-9-1 publisher": ("0-9-1", lambda stage, body: stage.publisher.publish("", "spare", body)),
    "10.3 channel": ("10.3", lambda stage, body: stage.other.publish("", "spare", body)),
    "amqp-fast handle": ("amqp-fast", lambda stage, body: stage.handle.send(body)),
}


@pytest.mark.parametrize(("protocol", "send"), _CALLS.values(), ids=_CALLS)
async def test_body_that_is_no_bytes_is_sent_as_its_octets_or_refused(
    protocol: str,
    send: Callable[[Any, Any], Awaitable[object]],
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
) -> None:
    script = LOSS_SCRIPTS[protocol]
    container = container_with_queue()
    async with redialled(script.serve(container), monkeypatch) as server:
        stage = Stage(container=container, server=server)
        async with script.stage(stage):
            queue: Any = container.nodes["q" if protocol == "amqp-fast" else "spare"]
            before = len(queue)
            for body in ("text", None, 3):
                with pytest.raises(LocalProtocolError, match=r"body=.*: expected bytes, not"):
                    await send(stage, body)
            for body in (array("H", [1, 2]), bytearray(b"ab"), b""):
                await send(stage, body)
            await wait_all_tasks_blocked()
            assert len(queue) == before + 3
        assert len(server.streams) == 1
