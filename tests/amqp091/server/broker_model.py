"""A broker of 0-9-1 as simple as can be: lists that are scanned. What each step lets each channel hear, and nothing else.

A channel has one consumer at most, and a queue too, so that it is certain who gets what, and in which order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class RefusedError(Exception):
    """The step closes its channel with this code."""


@dataclass
class Message:
    place: int
    body: str
    key: str
    exchange: str
    redelivered: bool = False


@dataclass
class Queue:
    name: str
    durable: bool
    ready: list[Message] = field(default_factory=list)
    consumer: Channel | None = None

    def put(self, message: Message) -> None:
        self.ready.append(message)
        self.ready.sort(key=lambda each: each.place)


@dataclass
class Unacked:
    tag: int
    queue: Queue
    message: Message
    consumed: bool


@dataclass(eq=False)
class Channel:
    number: int
    mode: str = ""
    prefetch: int = 0
    consuming: tuple[Queue, bool, int] | None = None
    tags: int = 0
    unacked: list[Unacked] = field(default_factory=list)
    answered: list[tuple[str, list[Unacked]]] = field(default_factory=list)
    posts: list[tuple[str, str, str, bool]] = field(default_factory=list)


class Model:
    def __init__(self, modes: list[str]) -> None:
        self.channels = [Channel(number, mode) for number, mode in enumerate(modes)]
        self.queues: dict[str, Queue] = {}
        self.exchanges: dict[str, str] = {"": "direct"}
        self.bindings: list[tuple[str, str, str]] = []
        self.heard: list[list[Any]] = []
        self.bodies = 0

    def step(self, number: int, name: str, *args: Any) -> list[list[Any]]:
        """What each channel hears of it; ``(name, ...)`` each, in no order."""
        self.heard = [[] for _ in self.channels]
        channel = self.channels[number]
        try:
            getattr(self, name)(channel, *args)
        except RefusedError as refused:
            self.tell(channel, "close", refused.args[0])
            self.end(channel)
        for queue in self.queues.values():
            self.give(queue)
        return self.heard

    def tell(self, channel: Channel, *what: Any) -> None:
        self.heard[channel.number].append(what)

    def find(self, name: str) -> Queue:
        if name not in self.queues:
            raise RefusedError(404)
        return self.queues[name]

    def give(self, queue: Queue) -> None:
        while queue.ready and queue.consumer is not None and queue.consumer.consuming is not None:
            channel = queue.consumer
            _, no_ack, window = channel.consuming
            pending = [*channel.unacked, *(each for _, found in channel.answered for each in found)]
            if window and not no_ack and sum(each.consumed for each in pending) >= window:
                return
            message = queue.ready.pop(0)
            channel.tags += 1
            self.tell(channel, "deliver", channel.tags, message.body, message.redelivered)
            if not no_ack:
                channel.unacked.append(Unacked(channel.tags, queue, message, True))

    def declare(self, channel: Channel, name: str, durable: bool) -> None:
        queue = self.queues.setdefault(name, Queue(name, durable))
        if queue.durable != durable:
            raise RefusedError(406)
        self.tell(channel, "declare-ok", len(queue.ready), int(queue.consumer is not None))

    def delete(self, channel: Channel, name: str, if_empty: bool) -> None:
        queue = self.queues.get(name)
        if queue is not None and if_empty and queue.ready:
            raise RefusedError(406)
        self.tell(channel, "delete-ok", 0 if queue is None else len(queue.ready))
        if queue is not None:
            del self.queues[name]
            self.bindings = [each for each in self.bindings if each[1] != name]
            if queue.consumer is not None:
                self.tell(queue.consumer, "cancel")
                queue.consumer.consuming = None

    def purge(self, channel: Channel, name: str) -> None:
        queue = self.find(name)
        self.tell(channel, "purge-ok", len(queue.ready))
        queue.ready.clear()

    def declare_exchange(self, channel: Channel, name: str, kind: str) -> None:
        if self.exchanges.setdefault(name, kind) != kind:
            raise RefusedError(406)
        self.tell(channel, "declare-ok")

    def bind(self, channel: Channel, queue: str, exchange: str, key: str, there: bool) -> None:
        if there and (queue not in self.queues or exchange not in self.exchanges):
            raise RefusedError(404)
        self.bindings = [each for each in self.bindings if each != (exchange, queue, key)]
        self.bindings += [(exchange, queue, key)] * there
        self.tell(channel, "bind-ok" if there else "unbind-ok")

    def publish(self, channel: Channel, exchange: str, key: str, mandatory: bool) -> None:
        if exchange not in self.exchanges:
            raise RefusedError(404)
        self.bodies += 1
        post = (exchange, key, str(self.bodies), mandatory)
        if channel.mode == "tx":
            channel.posts.append(post)
            return
        self.route(channel, *post)
        if channel.mode == "confirm":
            self.tell(channel, "ack")

    def route(self, channel: Channel, exchange: str, key: str, body: str, mandatory: bool) -> None:
        any_key = self.exchanges[exchange] == "fanout"
        names = {
            queue
            for source, queue, bound in self.bindings
            if source == exchange and (any_key or bound == key)
        }
        names = {key} & self.queues.keys() if not exchange else names
        for name in names:
            self.queues[name].put(Message(int(body), body, key, exchange))
        if mandatory and not names:
            self.tell(channel, "return", body)

    def get(self, channel: Channel, name: str, no_ack: bool) -> None:
        queue = self.find(name)
        if not queue.ready:
            self.tell(channel, "get-empty")
            return
        message = queue.ready.pop(0)
        channel.tags += 1
        what = (message.body, message.redelivered, message.exchange, message.key, len(queue.ready))
        self.tell(channel, "get-ok", channel.tags, *what)
        if not no_ack:
            channel.unacked.append(Unacked(channel.tags, queue, message, False))

    def settle(self, channel: Channel, how: str, place: int, multiple: bool) -> None:
        """``place`` counts what is unacknowledged, oldest first; beyond it the tag is unknown."""
        if place >= len(channel.unacked):
            raise RefusedError(406)
        first = 0 if multiple else place
        found = channel.unacked[first : place + 1]
        del channel.unacked[first : place + 1]
        if channel.mode == "tx":
            channel.answered.append((how, found))
        else:
            self.answer(how, found)

    def answer(self, how: str, found: list[Unacked]) -> None:
        for each in found:
            if how == "requeue":
                each.message.redelivered = True
                each.queue.put(each.message)

    def recover(self, channel: Channel) -> None:
        found, channel.unacked = channel.unacked, []
        self.tell(channel, "recover-ok")
        self.answer("requeue", found)

    def consume(self, channel: Channel, name: str, no_ack: bool) -> None:
        queue = self.find(name)
        self.tell(channel, "consume-ok")
        queue.consumer, channel.consuming = channel, (queue, no_ack, channel.prefetch)

    def cancel(self, channel: Channel) -> None:
        self.tell(channel, "cancel-ok")
        if channel.consuming is not None:
            channel.consuming[0].consumer = channel.consuming = None

    def qos(self, channel: Channel, count: int) -> None:
        channel.prefetch = count
        self.tell(channel, "qos-ok")

    def commit(self, channel: Channel) -> None:
        if channel.mode != "tx":
            raise RefusedError(406)
        posts, channel.posts = channel.posts, []
        answered, channel.answered = channel.answered, []
        for post in posts:
            self.route(channel, *post)
        for each in answered:
            self.answer(*each)
        self.tell(channel, "commit-ok")

    def rollback(self, channel: Channel) -> None:
        if channel.mode != "tx":
            raise RefusedError(406)
        self.tell(channel, "rollback-ok")
        back = [each for _, found in channel.answered for each in found]
        channel.unacked = sorted(back + channel.unacked, key=lambda each: each.tag)
        channel.posts, channel.answered = [], []

    def close(self, channel: Channel) -> None:
        self.tell(channel, "close-ok")
        self.end(channel)

    def end(self, channel: Channel) -> None:
        """What was not acknowledged goes back."""
        found = [*channel.unacked, *(each for _, found in channel.answered for each in found)]
        if channel.consuming is not None:
            channel.consuming[0].consumer = channel.consuming = None
        channel.unacked, channel.answered, channel.posts, channel.prefetch, channel.tags = [], [], [], 0, 0
        self.answer("requeue", found)
