"""Services that listen, and what their peers do first."""

from __future__ import annotations

import trio

from tests.naive.peer import ScriptedPeer


async def scripted(url: str) -> ScriptedPeer:
    host, _, port = url.removeprefix("amqp://").rpartition(":")
    return ScriptedPeer(await trio.open_tcp_stream(host.strip("[]"), int(port)))
