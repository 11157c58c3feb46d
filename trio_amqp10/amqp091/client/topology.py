"""The exchanges, queues and bindings that a program declared on a connection.

The recovery declares them again. A record is dropped when the program deletes the object, or when the last
local use of an ``auto_delete`` object ends. Passive declarations make no record. The methods are those of
0-9-1, and those of 10.3 with the same names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from trio_amqp10.amqp091 import spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.amqp091.wire.methods import Method

_Key: TypeAlias = "tuple[str | None, str, str, str, str]"


class QueueName:
    """The name of a queue; it changes if the server chose it and chooses again.

    Attributes:
        now: the current name.
        before: the name before the last loss of the connection; None if it did not change.
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
        """The identity of a binding: queue, destination, source, routing key, arguments."""
        queue = None if self.queue is None else self.queue.now
        return queue, self.destination, self.source, self.method.routing_key, repr(self.method.arguments)


def _key_of(method: spec.QueueUnbind | spec.ExchangeUnbind) -> _Key:
    if isinstance(method, spec.QueueUnbind):
        return method.queue, "", method.exchange, method.routing_key, repr(method.arguments)
    return None, method.destination, method.source, method.routing_key, repr(method.arguments)


class Topology:
    """The declarations of one connection."""

    __slots__ = ("_bindings", "_exchanges", "_queues")

    def __init__(self) -> None:
        self._exchanges: dict[str, Any] = {}
        self._queues: dict[str, _QueueRecord] = {}
        self._bindings: dict[_Key, _BindingRecord] = {}

    def name_of(self, queue: str) -> QueueName:
        """Return the name of a queue, shared with its record if it was declared here."""
        record = self._queues.get(queue)
        return QueueName(queue) if record is None else record.name

    # -- what a program did -----------------------------------------------------------------

    def exchange_declared(self, method: Any) -> None:
        """Record an exchange."""
        if not method.passive:
            self._exchanges[method.exchange] = method

    def exchange_deleted(self, name: str) -> None:
        """Drop an exchange and its bindings."""
        self._exchanges.pop(name, None)
        self._drop([each for each in self._bindings.values() if name in (each.source, each.destination)])

    def queue_declared(self, method: Any, name: str) -> QueueName:
        """Record a queue; return its name, which the server may have chosen."""
        if method.passive:
            return self.name_of(name)
        known = self.name_of(name)
        self._queues[name] = _QueueRecord(method, known)
        return known

    def expect_queue(self, method: Any) -> None:
        """Record an exclusive queue whose declaration was not answered before a loss.

        The recovery then declares it together with all others.
        """
        if method.exclusive and not method.passive and method.queue and method.queue not in self._queues:
            self._queues[method.queue] = _QueueRecord(method, QueueName(method.queue))

    def forget_expected(self, method: Any) -> None:
        """Drop the record of ``expect_queue``: the declaration was refused or given up."""
        record = self._queues.get(method.queue)
        if record is not None and record.method is method:
            self.queue_deleted(method.queue)

    def queue_deleted(self, name: str) -> None:
        """Drop a queue and its bindings."""
        self._queues.pop(name, None)
        self._drop(
            [each for each in self._bindings.values() if each.queue is not None and each.queue.now == name]
        )

    def queue_unused(self, name: str) -> None:
        """Drop an auto-delete queue after its last local consumer."""
        record = self._queues.get(name)
        if record is not None and record.method.auto_delete:
            self.queue_deleted(name)

    def bound(self, method: Any, queue: QueueName | None = None) -> None:
        """Record a binding."""
        record = _BindingRecord(method, queue)
        self._bindings[record.key] = record

    def unbound(self, method: spec.QueueUnbind | spec.ExchangeUnbind) -> None:
        """Drop a binding."""
        record = self._bindings.get(_key_of(method))
        self._drop([] if record is None else [record])

    def _drop(self, gone: list[_BindingRecord]) -> None:
        """Drop bindings, and auto-delete exchanges whose last binding was dropped."""
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
        """Return all declarations in two stages: exchanges and queues, then bindings.

        The requests of one stage may be sent before any of them is answered. Report the answer to each
        ``QueueDeclare`` with ``renamed`` before the next stage is taken.
        """
        yield [*self._exchanges.values(), *(record.method for record in self._queues.values())]
        self._bindings = {each.key: each for each in self._bindings.values()}  # queues may have new names
        yield [binding.request() for binding in self._bindings.values()]

    def renamed(self, method: Any, name: str) -> None:
        """Record the new name of a queue whose name the server chooses."""
        if method.queue:
            return
        for old, record in self._queues.items():
            if record.method is method:
                del self._queues[old]
                self._queues[name] = record
                record.name.before, record.name.now = old, name
                return
