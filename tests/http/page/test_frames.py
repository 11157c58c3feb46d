"""The watches of frames by HTTP: begun, read and ended by one user, and by no other."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
import trio

from tests.http.served import served
from trio_amqp10.container import Container, Rules
from trio_amqp10.http.errors import RequestError
from trio_amqp10.http.page.frames import FrameWatches
from trio_amqp10.sasl import Identity

from .asked import fault, post

if TYPE_CHECKING:
    from tests.http.served import Client

RULES = Rules(
    ("root", "monitor manage", "$management/*"),
    ("other", "monitor manage", "$management/*"),
    ("eye", "monitor receive delete", "$management/*"),
    ("*", "create send receive", "orders"),
)
USERS = {"root": "x", "other": "x", "eye": "x"}


def shop() -> Container:
    container = Container("shop", authorise=RULES)
    container.add_queue("orders")
    return container


async def frames_of(client: Client, watch: str, last: str) -> list[dict[str, object]]:
    """Ask until a frame with this text has come."""
    found: list[dict[str, object]] = []
    with trio.fail_after(30):
        while not any(last in str(each["text"]) for each in found):
            after = found[-1]["number"] if found else 0
            found += (await post(client, "frames", watch=watch, after=after))["frames"]
    return found


async def test_frames_are_read_by_their_numbers() -> None:
    async with served(shop(), users=USERS) as client:
        async with client.container.connect() as connection:
            begun = await post(client, "watch-frames", connection=1, payload=200)
            async with connection.open_sender("orders") as sender:
                await sender.send(b"tea")
        frames = await frames_of(client, begun["watch"], "Close(")
        (transfer,) = [each for each in frames if "Transfer(" in str(each["text"])]
        assert transfer["direction"] == "in"
        assert transfer["channel"] == 0
        assert transfer["fields"]["handle"] == "0"  # type: ignore[index]
        assert base64.b64decode(str(transfer["payload"])).endswith(b"tea")
        assert transfer["left_out"] == 0
        assert (await post(client, "frames", watch=begun["watch"], count=1))["frames"] == frames[:1]
        assert (await post(client, "frames", watch=begun["watch"], count=0))["frames"] == []
        with trio.fail_after(30):
            while not (await post(client, "frames", watch=begun["watch"]))["over"]:  # noqa: ASYNC110 - on a socket
                await trio.sleep(0.01)
        assert await post(client, "end-watch", watch=begun["watch"]) == {}
        assert client.container.frame_watches == []
        ended = (404, "this watch has ended: begin another one")
        assert await fault(client, "frames", watch=begun["watch"]) == ended
        assert await fault(client, "end-watch", watch=begun["watch"]) == ended


async def test_only_the_user_who_began_a_watch_reads_it() -> None:
    async with served(shop(), users=USERS) as client, client.container.connect():
        begun = await post(client, "watch-frames", connection=1)
        client.http.auth = ("other", "x")
        for operation in ("frames", "end-watch"):
            assert (await fault(client, operation, watch=begun["watch"]))[0] == 404
        client.http.auth = ("eye", "x")
        refusals = {await fault(client, "watch-frames", connection=number) for number in (1, 77)}
        assert [status for status, _ in refusals] == [403]
        client.http.auth = ("root", "wrong")
        assert (await fault(client, "frames", watch=begun["watch"]))[0] == 401
        assert len(client.container.frame_watches) == 1


async def test_too_many_watches_are_429() -> None:
    async with served(shop(), users=USERS) as client, client.container.connect():
        for _ in range(4):
            await post(client, "watch-frames", connection=1)
        status, reason = await fault(client, "watch-frames", connection=1)
        assert status == 429
        assert reason.startswith("the frames of 4 connections are watched already")


async def test_watches_end_with_the_listener() -> None:
    container = shop()
    async with container.connect():
        async with served(container, users=USERS) as client:
            await post(client, "watch-frames", connection=1)
            (watch,) = container.frame_watches
        assert watch.closed
        assert container.frame_watches == []


async def test_watch_that_has_ended_is_forgotten() -> None:
    container = shop()
    watches = FrameWatches()
    async with container.connect():
        names = list[str]()
        for _ in range(3):
            watch = await container.management.watch_frames(1)
            names.append(watches.add(watch, Identity("ada", "PLAIN")))
            assert watches.find(names[-1], Identity("ada", "PLAIN")) is watch
            watch.close()
        assert len(set(names)) == 3
        assert len(watches._watches) == 1
        for name in names:
            with pytest.raises(RequestError):
                watches.find(name, Identity("ada", "PLAIN"))
