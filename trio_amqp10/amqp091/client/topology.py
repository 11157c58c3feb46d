"""What a program declared on a connection, so that it can be declared again: exchanges, queues, bindings.

A record goes when the program deletes what it stands for, and for what deletes itself (``auto_delete``) when the last use
of it here ends. Passive declarations leave no record. Knows the methods of 0-9-1, and those of 10.3 with the same names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from trio_amqp10.amqp091 import spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.amqp091.methods import Method

__all__ = ["QueueName", "Topology"]


_Key: TypeAlias = "tuple[str | None, str, str, str, str]"


class QueueName:
    """The name of a queue, which changes if the server chose it and the queue had to be declared again.

    Attributes:
        now: the name.
        before: the name that it had before the last loss of the connection; None if it did not change.
    """

    __slots__ = ("before", "now")

    def __init__(self, now: str) -> None:
        self.now: str = now
        self.before: str | None = None


class _QueueRecord:
    __slots__ = ("method", "name")

    def __init__(self, method: Any, name: QueueName) -> None:
        self.method = method
        self.name = name


class _BindingRecord:
    __slots__ = ("destination", "method", "queue")

    def __init__(self, method: Any, queue: QueueName | None) -> None:
        self.method = method
        self.queue = queue
        self.destination: str = "" if self._is_of_queue else method.destination

    @property
    def _is_of_queue(self) -> bool:
        return bool(self.method.plan.name == "queue.bind")

    @property
    def source(self) -> str:
        source: str = self.method.exchange if self._is_of_queue else self.method.source
        return source

    def request(self) -> Method:
        method: Method = self.method
        if self.queue is None or not self._is_of_queue:
            return method
        renamed: Method = replace(self.method, queue=self.queue.now)
        return renamed

    @property
    def key(self) -> _Key:
        """What makes it one binding: where from, where to, routing key and arguments."""
        queue = None if self.queue is None else self.queue.now
        return queue, self.destination, self.source, self.method.routing_key, repr(self.method.arguments)


def _key_of(method: spec.QueueUnbind | spec.ExchangeUnbind) -> _Key:
    if isinstance(method, spec.QueueUnbind):
        return method.queue, "", method.exchange, method.routing_key, repr(method.arguments)
    return None, method.destination, method.source, method.routing_key, repr(method.arguments)


class Topology:
    """The records of one connection."""

    __slots__ = ("_bindings", "_exchanges", "_queues")

    def __init__(self) -> None:
        self._exchanges: dict[str, Any] = {}
        self._queues: dict[str, _QueueRecord] = {}
        self._bindings: dict[_Key, _BindingRecord] = {}

    def name_of(self, queue: str) -> QueueName:
        """The name of a queue, shared with its record if it was declared here."""
        record = self._queues.get(queue)
        return QueueName(queue) if record is None else record.name

    # -- what a program did -----------------------------------------------------------------

    def exchange_declared(self, method: Any) -> None:
        """An exchange is there."""
        if not method.passive:
            self._exchanges[method.exchange] = method

    def exchange_deleted(self, name: str) -> None:
        """An exchange is gone, and its bindings with it."""
        self._exchanges.pop(name, None)
        self._drop([each for each in self._bindings.values() if name in (each.source, each.destination)])

    def queue_declared(self, method: Any, name: str) -> QueueName:
        """A queue is there; its name, which the server may have chosen."""
        if method.passive:
            return self.name_of(name)
        known = self.name_of(name)
        self._queues[name] = _QueueRecord(method, known)
        return known

    def expect_queue(self, method: Any) -> None:
        """The transport was lost before the answer to a declaration: have an exclusive queue declared with the others."""
        if method.exclusive and not method.passive and method.queue and method.queue not in self._queues:
            self._queues[method.queue] = _QueueRecord(method, QueueName(method.queue))

    def forget_expected(self, method: Any) -> None:
        """The program has given up a declaration that was expected, or the server has refused it."""
        record = self._queues.get(method.queue)
        if record is not None and record.method is method:
            self.queue_deleted(method.queue)

    def queue_deleted(self, name: str) -> None:
        """A queue is gone, and its bindings with it."""
        self._queues.pop(name, None)
        self._drop(
            [each for each in self._bindings.values() if each.queue is not None and each.queue.now == name]
        )

    def queue_unused(self, name: str) -> None:
        """The last consumer here of a queue is gone: a queue that deletes itself may be gone too."""
        record = self._queues.get(name)
        if record is not None and record.method.auto_delete:
            self.queue_deleted(name)

    def bound(self, method: Any, queue: QueueName | None = None) -> None:
        """A binding is there."""
        record = _BindingRecord(method, queue)
        self._bindings[record.key] = record

    def unbound(self, method: spec.QueueUnbind | spec.ExchangeUnbind) -> None:
        """A binding is gone."""
        record = self._bindings.get(_key_of(method))
        self._drop([] if record is None else [record])

    def _drop(self, gone: list[_BindingRecord]) -> None:
        """Forget bindings, and exchanges that delete themselves with the last binding from them."""
        for each in gone:
            self._bindings.pop(each.key, None)
        for source in {each.source for each in gone}:
            declared = self._exchanges.get(source)
            if declared is not None and declared.auto_delete and not self._is_source(source):
                self.exchange_deleted(source)

    def _is_source(self, exchange: str) -> bool:
        return any(each.source == exchange for each in self._bindings.values())

    # -- declaring again --------------------------------------------------------------------

    def stages(self) -> Iterator[list[Method]]:
        """All declarations, in two stages: each request of one may be sent before the others of it are answered.

        Report the answer to each ``QueueDeclare`` with ``renamed`` before the next stage is taken.
        """
        yield [*self._exchanges.values(), *(record.method for record in self._queues.values())]
        self._bindings = {each.key: each for each in self._bindings.values()}  # queues may have new names
        yield [binding.request() for binding in self._bindings.values()]

    def requests(self) -> Iterator[Method]:
        """All declarations, in an order in which they can be made."""
        for stage in self.stages():
            yield from stage

    def renamed(self, method: Any, name: str) -> None:
        """The server answered the declaration of a queue whose name it chooses; any other keeps its name."""
        if method.queue:
            return
        for old, record in self._queues.items():
            if record.method is method:
                del self._queues[old]
                self._queues[name] = record
                record.name.before, record.name.now = old, name
                return
