"""A connected peer with channels: which permissions it remembers, when it is not read, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio.testing import wait_all_tasks_blocked

from tests.amqp091.server.script import Client, opened
from trio_amqp10.amqp091 import spec
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from trio_amqp10.broker.rights.access import Access


class Asked:
    """A hook that permits everything, and notes what it was asked."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, str | None]] = []

    def __call__(self, access: Access) -> bool:
        self.questions.append((access.action, access.address))
        return True


async def publish(client: Client, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        await client.publish("", queue, body)
    await wait_all_tasks_blocked()


async def test_permission_to_send_is_asked_once_and_to_create_each_time() -> None:
    asked = Asked()
    container = Container(authorise=asked)
    container.add_queue("q")
    async with opened(container) as client:
        await publish(client, "q", b"a", b"b", b"c")
        for _ in range(2):
            await client.ask(spec.QueueDeclare(queue="made"))
    assert asked.questions.count(("send", "q")) == 1
    assert asked.questions.count(("create", "made")) == 2


async def test_permission_is_asked_again_after_a_review() -> None:
    asked = Asked()
    container = Container(authorise=asked)
    container.add_queue("q")
    async with opened(container) as client:
        await publish(client, "q", b"a")
        container.review()
        await wait_all_tasks_blocked()
        await publish(client, "q", b"b")
    assert asked.questions.count(("send", "q")) == 2


async def test_client_is_not_read_while_a_node_has_not_taken_its_message() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1)
    async with opened(container) as client, opened(container) as other:
        await publish(client, "q", b"a", b"b")
        await client.say(spec.QueueDeclare(queue="later"))
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        assert "later" not in container.nodes
        await other.ask(spec.BasicGet(queue="q", no_ack=True))
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        assert "later" in container.nodes


async def test_figures_count_channels_consumers_and_addresses() -> None:
    container = Container()
    container.add_queue("q")
    async with opened(container) as client:
        await client.ask(spec.ChannelOpen(), 2)
        await publish(client, "q", b"a", b"b")
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        (peer,) = container.connected
        figures = peer.statistics()
        named = {view.role: view.statistics()["address"] for view in peer.links()}
    assert figures["protocol"] == "AMQP 0-9-1"
    assert (figures["state"], figures["sessions"], figures["senders"], figures["receivers"]) == (
        "OPENED",
        2,
        1,
        1,
    )
    assert (figures["messages_in"], figures["messages_out"], figures["unsettled_out"]) == (2, 2, 2)
    assert named == {"sender": "q", "receiver": "q"}
    assert container.connected == ()
