"""A peer that dies, or that does not answer any more: no call waits for ever, and each error is one that kombu knows."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import kombu
import pytest
from amqp import exceptions as kinds

from trio_amqp10.bridges import trio_thread
from trio_amqp10.kombu import Transport

from .peers import SECONDS, container_url, drained, emulator_url, task_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

EMPTY_FRAME = bytes.fromhex("0000000802000000")


class Way:
    """A way to a peer, which can be cut, or loses all but a sign of life."""

    def __init__(self, url: str) -> None:
        self._to = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.is_mute = False
        self.url = f"amqp10://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here = self._listening.accept()[0]
                there = socket.create_connection(self._to)
                self._ends += [here, there]
                threading.Thread(target=self._pass_on, args=(here, there)).start()

    def _pass_on(self, here: socket.socket, there: socket.socket) -> None:
        other = {here: there, there: here}
        with suppress(OSError), here, there:
            while True:
                ready = select.select([here, there], [], [], 0.1)[0]
                if self.is_mute:
                    here.sendall(EMPTY_FRAME)
                for end in ready:
                    octets = end.recv(65536)
                    if not octets:
                        return
                    if not self.is_mute:
                        other[end].sendall(octets)

    def cut(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        self._listening.close()
        self.cut()


@contextmanager
def way() -> Generator[Way]:
    with container_url() as url:
        made = Way(url)
        try:
            yield made
        finally:
            made.close()


def publish(connection: kombu.Connection, body: Any) -> None:
    queue = task_queue()
    connection.Producer().publish(
        body, exchange=queue.exchange, routing_key="tasks", declare=[queue], retry=True
    )


def until(condition: Callable[[], object]) -> None:
    late = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < late
        time.sleep(0.005)


def lose(connection: kombu.Connection, through: Way) -> None:
    """Cut the connection, and wait until this is known."""
    through.cut()
    until(lambda: not connection.transport.connected)


def test_consumer_is_told_of_a_loss_although_the_peer_is_there_again() -> None:
    with way() as through, kombu.Connection(through.url) as connection:
        held: list[Any] = []
        connection.Consumer(task_queue(), on_message=held.append).consume()
        publish(connection, 1)
        drained(connection, lambda: held)
        lose(connection, through)
        with pytest.raises(kinds.ConnectionForced):
            held[0].ack()  # programs log this, and go on
        with pytest.raises(kinds.ConnectionForced):
            connection.drain_events(timeout=SECONDS)
        with pytest.raises(Transport.recoverable_connection_errors):
            held[0].ack()
        again: list[Any] = []
        connection.Consumer(task_queue(), on_message=again.append).consume()
        drained(connection, lambda: again)
        assert [one.payload for one in again] == [1]
        again[0].ack()


def test_connection_without_consumers_is_replaced_unnoticed() -> None:
    with way() as through, kombu.Connection(through.url) as connection:
        publish(connection, 1)
        lose(connection, through)
        assert task_queue()(connection.default_channel).get(no_ack=True).payload == 1


def test_connection_whose_consumer_is_cancelled_is_replaced_unnoticed() -> None:
    with way() as through, kombu.Connection(through.url) as connection:
        with connection.Consumer(task_queue(), on_message=print):
            pass
        publish(connection, 1)
        lose(connection, through)
        assert task_queue()(connection.default_channel).get(no_ack=True).payload == 1


@pytest.mark.parametrize("call", ["publish", "get", "consume"])
def test_consumer_that_gets_a_loss_by_another_call_can_connect_again(call: str) -> None:
    with way() as through, kombu.Connection(through.url) as connection:
        channel = connection.channel()
        connection.Consumer(task_queue(), channel, on_message=print).consume()
        calls = {
            "publish": lambda: kombu.Producer(channel).publish(1, routing_key="tasks"),
            "get": task_queue("other")(channel).get,
            "consume": lambda: channel.basic_consume("other", False, print, "other"),
        }
        lose(connection, through)
        with pytest.raises(connection.recoverable_connection_errors):
            calls[call]()
        connection.ensure_connection()
        publish(connection, 1)


def test_replaced_connections_leave_nothing() -> None:
    with way() as through, kombu.Connection(through.url) as connection:
        connection.ensure_connection()
        connection.connection.wire.fileno()
        before = descriptors()
        channels = []
        for _ in range(10):
            connection.ensure_connection()
            channels.append(connection.channel())
            connection.connection.wire.fileno()
            lose(connection, through)
        connection.ensure_connection()
        assert trio_thread._process.thread is not None
        assert trio_thread._process.thread.users == 1
        assert connection.transport.channels == []
        assert all(channel.closed for channel in channels)
        until(lambda: descriptors() <= before)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0


def calls_of(connection: kombu.Connection) -> dict[str, Callable[[], object]]:
    """Calls of a channel, and of one of its messages."""
    channel = connection.channel()
    held: list[Any] = []
    connection.Consumer(task_queue(), channel, on_message=held.append).consume()
    publish(connection, 1)
    drained(connection, lambda: held)
    queue = task_queue()
    return {
        "declare": queue(channel).declare,
        "unbind": lambda: channel.queue_unbind("tasks", "tasks", "tasks"),
        "publish": lambda: kombu.Producer(channel).publish(1, exchange="tasks", routing_key="tasks"),
        "to a queue": lambda: kombu.Producer(channel).publish(1, routing_key="tasks"),
        "to no queue": lambda: kombu.Producer(channel).publish(1, exchange="tasks", routing_key="no"),
        "get": queue(channel).get,
        "consume": lambda: channel.basic_consume("tasks", False, print, "other"),
        "qos": lambda: channel.basic_qos(0, 3),
        "ack": held[0].ack,
        "purge": queue(channel).purge,
        "delete": queue(channel).delete,
    }


@pytest.mark.parametrize("peer", [container_url, emulator_url])
@pytest.mark.parametrize("is_released", [True, False])
def test_call_after_the_end_of_its_channel_raises_what_kombu_knows(peer: Any, is_released: bool) -> None:
    with peer() as url, kombu.Connection(url) as connection:
        calls = calls_of(connection)
        if is_released:
            connection.release()
        else:
            for channel in tuple(connection.transport.channels):
                channel.close()
        for name, call in calls.items():
            with pytest.raises(kinds.RecoverableConnectionError, match="closed"):
                pytest.fail(f"{name} returned {call()!r}")


def test_release_closes_all_channels() -> None:
    with container_url() as url, kombu.Connection(url) as connection:
        channels = [connection.channel() for _ in range(3)]
        held: list[Any] = []
        for channel in channels:
            connection.Consumer(task_queue(), channel, on_message=held.append).consume()
        publish(connection, 1)
        drained(connection, lambda: held)
        connection.release()
        assert [channel.closed for channel in channels] == [True] * 3
        with kombu.Connection(url) as other:
            again = task_queue()(other.default_channel).get(no_ack=True)
            assert again.payload == 1
            assert again.delivery_info["redelivered"]


def test_failure_does_not_collect_tracebacks() -> None:
    with way() as through, kombu.Connection(through.url) as connection:
        channel = connection.default_channel
        lose(connection, through)
        lengths = []
        for _ in range(5):
            with pytest.raises(kinds.ConnectionForced) as raised:
                channel.basic_ack(1)
            cause = raised.value.__cause__
            assert cause is not None
            lengths.append(depth(cause))
        assert len(set(lengths[1:])) == 1


def depth(failure: BaseException) -> int:
    found, frame = 0, failure.__traceback__
    while frame is not None:
        found, frame = found + 1, frame.tb_next
    return found


def test_peer_that_does_not_answer_ends_a_call_in_time() -> None:
    with way() as through:
        options = {"publish_timeout": 0.3, "open_connection": {"close_timeout": 0.1}}
        with kombu.Connection(through.url, transport_options=options) as connection:
            channel = connection.default_channel
            through.is_mute = True
            subscribed = kombu.Queue("news", kombu.Exchange("news", "fanout"), durable=False)(channel)
            for call in (
                task_queue()(channel).get,
                lambda: channel.basic_consume("tasks", False, print, "one"),
                lambda: kombu.Producer(channel).publish(1, routing_key="other"),
                subscribed.declare,
            ):
                with pytest.raises(TimeoutError, match=r"within 0\.3 s"):
                    call()
            assert connection.connected


def test_messages_that_have_come_are_taken_after_another_thread_has_closed_the_connection() -> None:
    with container_url() as url, kombu.Connection(url) as connection:
        for number in range(130):
            publish(connection, number)
        found: list[Any] = []
        connection.Consumer(task_queue(), no_ack=True, on_message=found.append).consume()
        until(lambda: connection.transport.wire.waiting() == 130)
        connection.transport.wire.close()
        with pytest.raises(kinds.RecoverableConnectionError, match="closed here"):
            drained(connection, lambda: False)
        assert [one.payload for one in found] == list(range(130))
