"""Records of what was declared, and the order in which they are declared again."""

from __future__ import annotations

from itertools import chain

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.client.topology import Topology


def test_topology_declares_exchanges_then_queues_then_bindings() -> None:
    topology = Topology()
    queue = spec.QueueDeclare(queue="q")
    name = topology.queue_declared(queue, "q")
    bind = spec.QueueBind(queue="q", exchange="x", routing_key="k")
    topology.bound(bind, name)
    topology.bound(bind, name)
    topology.exchange_declared(spec.ExchangeDeclare(exchange="x"))
    topology.exchange_declared(spec.ExchangeDeclare(exchange="y", passive=True))
    topology.bound(spec.ExchangeBind(destination="x", source="amq.topic"))
    assert [each.plan.name for each in chain.from_iterable(topology.stages())] == [
        "exchange.declare",
        "queue.declare",
        "queue.bind",
        "exchange.bind",
    ]
    topology.exchange_deleted("x")
    assert list(chain.from_iterable(topology.stages())) == [queue]


def test_topology_forgets_what_deletes_itself() -> None:
    topology = Topology()
    topology.exchange_declared(spec.ExchangeDeclare(exchange="x", auto_delete=True))
    name = topology.queue_declared(spec.QueueDeclare(queue="q", auto_delete=True), "q")
    topology.bound(spec.QueueBind(queue="q", exchange="x"), name)
    topology.unbound(spec.QueueUnbind(queue="other", exchange="x"))
    topology.queue_unused("other")
    topology.queue_unused("q")
    assert list(chain.from_iterable(topology.stages())) == []


def test_topology_gives_a_queue_its_new_name() -> None:
    topology = Topology()
    declared = spec.QueueDeclare()
    name = topology.queue_declared(declared, "gen-1")
    topology.bound(spec.QueueBind(queue="gen-1", exchange="x"), name)
    assert topology.queue_declared(spec.QueueDeclare(queue="gen-1", passive=True), "gen-1") is name
    topology.renamed(declared, "gen-2")
    assert (name.now, name.before) == ("gen-2", "gen-1")
    assert [
        each.queue for each in chain.from_iterable(topology.stages()) if isinstance(each, spec.QueueBind)
    ] == ["gen-2"]
    topology.unbound(spec.QueueUnbind(queue="gen-2", exchange="x"))
    assert list(chain.from_iterable(topology.stages())) == [declared]
