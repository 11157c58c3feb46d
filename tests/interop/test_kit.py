"""The testing kit with clients that are not ours: scripted, through a bad network, recorded, traced."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.transport import Attach, Begin, Close, Disposition, Flow, Open, Transfer
from trio_amqp10.testing import (
    Line,
    Recorder,
    Role,
    ScriptedPeer,
    open_proxy,
    read_recording,
    replay,
    running_container,
    running_peer,
    running_proxy,
)
from trio_amqp10.tools.trace.frame_log import entries_of

from .corpus import SMALL
from .ours import within

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .peers import Capture, Client

COUNT = 30
CODES = {16: Open, 17: Begin, 18: Attach, 19: Flow, 20: Transfer, 21: Disposition, 24: Close}


async def sink(peer: ScriptedPeer) -> None:
    """Takes COUNT messages, one at a time."""
    await peer.accept_open()
    await peer.accept_begin()
    await peer.accept_attach(credit=1)
    for number in range(COUNT):
        transfer = await peer.skip_to(Transfer, handle=0)
        await peer.send(
            Disposition(role=Role.RECEIVER, first=transfer.delivery_id, settled=True, state=amqp.Accepted())
        )
        if number < COUNT - 1:
            await peer.grant(1)
    await peer.accept_close()


def test_client_of_others_follows_a_script(peer: Client) -> None:
    with running_peer(sink, timeout=20) as url:
        result = peer.run("send", url, "q", COUNT, seed=SMALL)
    assert result["outcomes"]["accepted"] == COUNT


def test_client_of_others_that_strays_from_the_script_is_told(peer: Client) -> None:
    async def script(scripted: ScriptedPeer) -> None:
        await scripted.accept_open()
        await scripted.expect(Begin, next_outgoing_id=4711)

    with (
        pytest.raises(AssertionError, match=r"next_outgoing_id: expected 4711\n +got +0"),
        running_peer(script, timeout=20) as url,
    ):
        peer.run("send", url, "q", COUNT, seed=SMALL)


def test_client_of_others_works_through_a_network_that_splits(peer: Client) -> None:
    line = Line(chunk=(1, 50), delay=0.001)
    with running_container() as url, running_proxy(url, there=line, back=line, seed=4) as proxied:
        result = peer.run("send", proxied, "q", COUNT, seed=SMALL)
    assert result["outcomes"]["accepted"] == COUNT


def test_recording_of_others_is_played_again(peer: Client, tmp_path: Path) -> None:
    """What their client said, said again to a new container: it is answered as it was."""
    path = tmp_path / "talk.jsonl"

    async def record(url: str) -> None:
        with Recorder(path) as recorder:
            async with open_proxy(url, recorder=recorder) as proxy:
                await trio.to_thread.run_sync(lambda: peer.run("send", proxy.url, "q", COUNT, seed=SMALL))

    async def play(url: str) -> None:
        async with await ScriptedPeer.dial(url) as scripted:
            await replay(read_recording(path), scripted, ">", passing_over=(Flow, Disposition))

    with running_container() as url:
        within(record, url)
    with running_container() as url:
        within(play, url)
        within(receive, url)


async def receive(url: str) -> None:
    async with amqp.open_connection(url) as connection, connection.open_receiver("q") as receiver:
        for _ in range(COUNT):
            (await receiver.receive()).accept()


def test_capture_is_read_as_tshark_reads_it(peer: Client, capture: Callable[[int], Capture]) -> None:
    with running_container() as url, capture(int(url.rpartition(":")[2])) as seen:
        peer.run("send", url, "q", COUNT, seed=SMALL)
    numbers = [
        int(word) for line in seen.read("amqp", "amqp.performative") for word in line.split(",") if word
    ]
    theirs = Counter(CODES[number] for number in numbers if number in CODES)
    entries = entries_of(read_recording(seen.file))
    ours = Counter(type(entry.piece.performative) for entry in entries)
    assert {cls: ours[cls] for cls in CODES.values()} == {cls: theirs[cls] for cls in CODES.values()}
    assert ours[Transfer] == COUNT
    assert not [entry for entry in entries if entry.piece.fault]
