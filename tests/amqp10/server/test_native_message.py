"""Messages of AMQP 1.0 as content of nodes, and what of them goes to the next hop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.helpers import queue_of
from trio_amqp10 import Container, MemoryStore, Message
from trio_amqp10.amqp10.server.native_message import Opaque, Sections, received, to_transfer
from trio_amqp10.broker.nodes.content import USUAL, Content
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.nodes.relay import post
from trio_amqp10.core.errors import RemoteProtocolError

PEER: Any = SimpleNamespace(container_id="lines", identity=None)


async def put(container: Container, address: str, *contents: Content) -> None:
    for content in contents:
        await post(container.find(address), content, PEER)


async def test_stored_message_that_is_damaged_does_not_hold_up_those_behind_it(
    autojump_clock: MockClock,
) -> None:
    store = MemoryStore()

    def container() -> Container:
        made = Container(store=store, wall_clock=trio.current_time)
        made.add_queue("q", durable=True)
        return made

    running = container()
    for body in ("damaged", "whole"):
        await running.send("q", Message(body, ttl=60_000))
    assert running.journal is not None
    await running.journal.flushed()
    rows = store._tables[MESSAGES]
    rows[1] = tuple(each[:-3] if isinstance(each, bytes) else each for each in rows[1])
    await trio.sleep(1)
    async with container().connect() as conn, conn.open_receiver("q") as receiver:
        with pytest.raises(RemoteProtocolError, match="end inside a section"):
            _ = (await receiver.receive()).message.body
        assert (await receiver.receive()).message.body == "whole"


async def test_failed_attempts_of_octets_of_another_format_are_counted_over_a_restart() -> None:
    store = MemoryStore()

    def container() -> Container:
        made = Container(store=store)
        made.add_queue("q", durable=True, delivery_limit=2, dead_letter="dead")
        made.add_queue("dead")
        return made

    running = container()
    await put(running, "q", received(77, b"octets"))
    for failure in range(2):
        assert not len(queue_of(running, "dead"))
        async with running.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            (await receiver.receive()).modify(delivery_failed=True)
            await wait_all_tasks_blocked()
        if not failure:
            running = container()
    async with running.connect() as conn, conn.open_receiver("dead") as dead:
        delivery = await dead.receive()
        assert (delivery.payload, delivery.message_format) == (b"octets", 77)


def test_opaque_content_says_nothing_and_never_changes() -> None:
    content = received(777, b"octets")
    assert isinstance(content, Opaque)
    assert (content.terms, content.durable, content.number) == (USUAL, True, 777)
    for same in (content.aged(5), content.acquired(failed=True), content.dead("q", "expired", 5.0)):
        assert same is content
    assert to_transfer(content) == (b"octets", 777)
    assert (content.as_message().message_format, content.as_message()) == (777, content.as_message())


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "durable": st.booleans(),
            "priority": st.integers(0, 255),
            "first_acquirer": st.booleans(),
            "delivery_annotations": st.just({"x-hop": 1}),
            "annotations": st.just({"x-opt": 2}),
            "message_id": st.text(max_size=20),
        },
    )
)
def test_content_of_a_message_is_the_message_without_what_was_for_one_hop(fields: dict[str, Any]) -> None:
    message = Message("tea", **fields)
    content = received(0, message.to_payload())
    message.delivery_annotations = None
    assert isinstance(content, Sections)
    assert content.as_message() == message
    assert content.durable == message.durable
    left = content.acquired(failed=True, annotations={"x-more": 3}).as_message()
    assert (left.delivery_count, left.first_acquirer) == (1, False)
    assert left.annotations == {**message.annotations, "x-more": 3}
    assert left.bare == content.as_message().bare
    if not message.first_acquirer:
        assert content.acquired() is content
