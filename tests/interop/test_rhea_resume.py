"""rhea on links that are attached again after a cut (2.6.13): it keeps no state, and what of that its program can make up for.

rhea 3.0.5 sends no unsettled map, and does not know the resume flag. It shows our map to its program, and a program that
reaches below rhea's own setters can send one. Then what we resume whole comes through, as a message like any other, and
outcomes that the map tells us count; but a resumed transfer without a payload makes rhea end the connection.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp

from .ours import within
from .peers import HERE, PEERS, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .peers import Client

ACCEPTED = 0x24
TAGS = ["00000000", "00000001"]


@contextmanager
def program(rhea: Client, *arguments: str) -> Generator[tuple[Process, Callable[[], dict[str, Any]]]]:
    """rhea's program, and what ends it and says what it saw."""
    environment = {"NODE_PATH": str(PEERS / "rhea/node_modules")}
    process = Process([rhea.command[0], str(HERE / "rhea_resume.js"), *arguments], environment)
    seen: dict[str, Any] = {}

    def end() -> dict[str, Any]:
        if not seen:
            stdout, stderr = process.end()
            assert stdout, stderr
            seen.update(json.loads(stdout.splitlines()[-1]))
        return seen

    try:
        yield process, end
    finally:
        process.end()


# -- we dial, and send --------------------------------------------------------------------------


async def cut_and_come_back(
    port: int, guarantee: Any, then: Callable[[amqp.Sender, list[amqp.OutgoingDelivery]], Any]
) -> None:
    """Two deliveries that rhea got and was cut off with; then the link once more."""
    url = f"amqp://127.0.0.1:{port}"
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": guarantee}
    async with amqp.open_connection(url, container_id="ours") as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        deliveries = [await sender.transmit(body) for body in ("one", "two")]
        await conn.pump.finished.wait()
    async with amqp.open_connection(url, container_id="ours") as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        await then(sender, deliveries)


def resumed_by(rhea: Client, what: str, guarantee: Any, then: Any) -> dict[str, Any]:
    with program(rhea, "listen", what) as (process, end):
        port = json.loads(process.read_until(b'"port"').splitlines()[-1])["port"]
        within(cut_and_come_back, port, guarantee, then)
        seen = end()
    assert seen["attaches"] == [None, dict.fromkeys(TAGS)]  # it shows our map to its program
    assert seen["messages"][:2] == [[0, TAGS[0], "one"], [0, TAGS[1], "two"]]
    return seen


async def all_accepted(sender: amqp.Sender, deliveries: list[amqp.OutgoingDelivery]) -> None:
    assert [await sent.outcome() for sent in deliveries] == [amqp.Accepted()] * 2
    assert await sender.send("three") == amqp.Accepted()


AGAIN = [[1, TAGS[0], "one"], [1, TAGS[1], "two"], [1, "00000002", "three"]]


def test_rhea_leaves_us_in_doubt_exactly_once_for_it_forgets_the_link(rhea: Client) -> None:
    async def doubtful(sender: amqp.Sender, deliveries: list[amqp.OutgoingDelivery]) -> None:
        assert sender.remote.unsettled is None
        for sent in deliveries:
            with pytest.raises(amqp.DeliveryInDoubtError):
                await sent.outcome()
        assert await sender.send("three") == amqp.Accepted()

    seen = resumed_by(rhea, "none", "exactly-once", doubtful)
    assert seen["messages"][2:] == AGAIN[2:]


def test_rhea_gets_all_once_more_at_least_once(rhea: Client) -> None:
    assert resumed_by(rhea, "none", "at-least-once", all_accepted)["messages"][2:] == AGAIN


def test_rhea_hands_out_again_what_is_resumed_under_the_same_tag(rhea: Client) -> None:
    seen = resumed_by(rhea, "held", "exactly-once", all_accepted)
    assert seen["messages"][2:] == AGAIN
    assert seen["error"] is None


def test_rhea_ends_the_connection_on_a_resumed_transfer_without_payload_and_its_outcomes_count(
    rhea: Client,
) -> None:
    async def taken_from_the_map(sender: amqp.Sender, deliveries: list[amqp.OutgoingDelivery]) -> None:
        assert sender.remote.unsettled == dict.fromkeys([b"\0\0\0\0", b"\0\0\0\1"], amqp.Accepted())
        assert [await sent.outcome() for sent in deliveries] == [amqp.Accepted()] * 2
        with pytest.raises(amqp.ConnectionClosedError):
            await sender.send("three")

    seen = resumed_by(rhea, "outcome", "exactly-once", taken_from_the_map)
    assert len(seen["messages"]) == 2
    assert "undefined" in seen["error"]


# -- rhea dials a container of ours -------------------------------------------------------------


def dialled_by(rhea: Client, mode: str, what: str) -> tuple[dict[str, Any], dict[str, int]]:
    """What rhea saw of a queue that it sent two messages to, or had two of; and what the queue has counted."""

    async def run() -> tuple[dict[str, Any], dict[str, int]]:
        container = amqp.Container("ours")
        queue = container.add_queue("q")
        async with trio.open_nursery() as nursery:
            [listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
            if mode == "receive":
                async with container.connect() as conn, conn.open_sender("q") as sender:
                    for body in ("one", "two"):
                        await sender.send(body)
            with program(rhea, mode, what, str(listener.port)) as (process, end):
                if mode == "receive":
                    while len(queue):  # noqa: ASYNC110  # what another process does
                        await trio.sleep(0.01)
                else:
                    await trio.to_thread.run_sync(process.child.wait)
                seen = end()
            nursery.cancel_scope.cancel()
        return seen, queue.statistics()

    found: tuple[dict[str, Any], dict[str, int]] = within(run)
    return found


@pytest.mark.parametrize("what", ["none", "outcome"])
def test_rhea_is_told_by_our_container_which_of_its_messages_came_and_were_accepted(
    rhea: Client, what: str
) -> None:
    seen, counted = dialled_by(rhea, "send", what)
    assert [one[0] for one in seen["outcomes"]] == [0, 0]
    assert seen["attaches"] == [None, {tag: ACCEPTED for _, tag in seen["outcomes"]}]
    assert (counted["arrived"], counted["messages"]) == (2, 2)


@pytest.mark.parametrize("what", ["none", "held"])
def test_rhea_gets_again_from_our_container_what_it_had_no_outcome_for(rhea: Client, what: str) -> None:
    seen, counted = dialled_by(rhea, "receive", what)
    assert seen["attaches"] == [None, None if what == "none" else dict.fromkeys(TAGS)]
    firsts = [[0, TAGS[0], "one"], [0, TAGS[1], "two"]]
    assert seen["messages"] == [*firsts, *([1, tag, body] for _, tag, body in firsts)]
    assert counted["accepted"] == 2


def test_rhea_may_tell_our_container_by_a_map_what_it_has_accepted(rhea: Client) -> None:
    seen, counted = dialled_by(rhea, "receive", "outcome")
    assert seen["attaches"][1] == dict.fromkeys(TAGS)
    assert len(seen["messages"]) == 2
    assert counted["accepted"] == 2
