"""The messages of a transaction for one node, and a node that fails on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.broker.transactions import LeaseAnswer
from trio_amqp10.container import ConsumerNode, Node

from .transactions import Failing, HeldMessages, Peer, Posted, Room, length_of

if TYPE_CHECKING:
    from trio_amqp10.broker.stores.base import Store
    from trio_amqp10.container import Inlet


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.logs_errors
async def test_node_that_fails_once_after_the_commit_gets_the_messages_again_that_it_did_not_answer(
    store: Store | None, after: int, answers: bool, settled: bool, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(store)
    node = Failing(1, after=after, answers=answers)
    txn, lease = room.begin(), HeldMessages()
    room.post(txn, node, *(Posted(number, settled=settled) for number in range(3)))
    room.post(txn, room.queue("q"), Posted("a"))
    txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
    assert await room.commit(txn) is None
    assert node.got == list(range(after))
    assert (lease.said, room.queue("q").available) == (["accepted"], 1)
    assert room.watermark.octets > 0
    assert "is called again" in caplog.text
    caplog.clear()
    assert room.timers.advance() == pytest.approx(0.1)
    assert node.got == [0, 1, 2]
    assert room.watermark.octets == 0
    assert node.inlets == {}
    assert not room.timers.due


@pytest.mark.logs_errors
async def test_node_that_always_fails_keeps_its_messages_in_the_transaction_until_it_is_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room()
    node = Failing(float("inf"))
    room.container.add_node(node)
    txn, arrival = room.begin(), Posted("a")
    room.post(txn, node, arrival)
    assert await room.commit(txn) is None
    pauses = [room.timers.advance() for _ in range(9)]
    assert pauses == pytest.approx([0.1, 0.3, 1, 3, 10, 30, 60, 60, 60])
    assert (arrival.state, len(room.timers.due)) == (None, 1)
    room.container.remove_node("failing")
    assert arrival.state == "released"
    assert room.watermark.octets == 0
    room.timers.advance()
    assert not room.timers.due
    assert "1 messages of a transaction for it are lost" in caplog.text
    caplog.clear()


@pytest.mark.logs_errors
async def test_node_that_fails_longer_than_its_peer_lasts_has_its_tasks_run_by_the_container(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room, house = Room(), Peer()

    class Gone(Peer):
        def start_soon(self, function: Any, *args: Any) -> None:
            raise RuntimeError("the nursery is closed")

    async def take(_delivery: Any) -> None: ...

    node = ConsumerNode("work", take)
    room.peer = Gone()
    node.container = house  # type: ignore[assignment]
    txn = room.begin()
    room.post(txn, node, Posted("a"), Posted("b"))
    assert await room.commit(txn) is None
    room.timers.advance()
    assert house.started == []
    room.timers.advance()
    assert len(house.started) == 1
    assert not room.timers.due
    caplog.clear()


@pytest.mark.logs_errors
async def test_node_that_fails_when_it_has_room_again_gets_its_messages_later(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that failed was not ours: a queue ends an inlet for which it fails."""
    room = Room()
    queue = room.queue("q", max_length=1)
    txn = room.begin()
    room.post(txn, queue, Posted("a"), Posted("b"), Posted("c"))
    assert await room.commit(txn) is None
    assert length_of(room, "q") == [1]
    with monkeypatch.context() as failing:
        failing.setattr(type(queue.held), "enter", None)
        queue.purge()  # makes room, and the queue fails on what comes next
    assert "the link" in caplog.text
    caplog.clear()
    room.timers.advance()
    assert queue.available == 1
    queue.purge()
    queue.purge()
    assert queue.figures["arrived"] == 3
    assert queue.inlets == {}


async def test_node_that_refuses_a_settled_message_of_a_commit_gets_the_others_later() -> None:
    class Choosy(Node):
        accepts_senders = True
        got: list[Any]

        def on_arrivals(self, inlet: Inlet) -> None:
            while (arrival := inlet.take()) is not None:
                self.got.append(arrival.message.body)
                if arrival.message.body == "bad":
                    inlet.close("app:bad", "not this one")
                else:
                    arrival.accept()

    room, node = Room(), Choosy("choosy")
    node.got = []
    txn = room.begin()
    room.post(txn, node, *(Posted(body, settled=True) for body in ("a", "bad", "b")))
    assert await room.commit(txn) is None
    assert node.got == ["a", "bad"]
    room.timers.advance()
    assert node.got == ["a", "bad", "b"]
    assert not room.timers.due
    assert room.watermark.octets == 0
