"""Methods for exchanges and queues where 10.3 differs from 0-9-1 (C 654-880).

- A declaration accepts an existing object with other durable and auto-delete bits (C 691, 697, 779, 790).
- A queue is deleted after some time without use, not with its last consumer (C 784-790); an exchange some time after its last
  binding (C 692-696).
- Pending messages of a deleted queue are dead-lettered (C 870-877).
- Purging or deleting a queue that does not exist is an error (C 857, 879).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.faults import NotFoundError, PreconditionError
from trio_amqp10.broker.exchanges.matchers import KINDS
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.rights.broker_rights import (
    to_bind,
    to_bind_any_key,
    to_declare_exchange,
    to_declare_queue,
    to_delete_exchange,
    to_delete_queue,
    to_find_exchange,
    to_find_queue,
    to_receive,
)
from trio_amqp10.core.reply_codes import ReplyCode091

from .content import with_hyphens
from .tickets import ACTIVE, PASSIVE, READ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.rights.guard import Need

    from .channel_base import ChannelBase

_RESERVED: Final = "amq."


def _change(channel: ChannelBase, needs: Iterable[Need], change: Callable[[], object], answer: str) -> None:
    """Make a change if it is permitted, and answer when it is stored."""

    def change_and_answer() -> None:
        change()
        channel.when_stored(lambda: channel.reply(channel.make(answer)))

    channel.ask(needs, change_and_answer)


# -- exchanges ------------------------------------------------------------------------------


def _declare_exchange(channel: ChannelBase, arrival: Arrival) -> None:
    method: Any = arrival.method
    channel.check_ticket(method.ticket, PASSIVE if method.passive else ACTIVE)
    if method.passive:
        needs = to_find_exchange(channel.broker, method.exchange)
        channel.ask(needs, partial(_check_exchange, channel, method.exchange))
        return
    if method.type not in KINDS:
        raise ReplyError(ReplyCode091.COMMAND_INVALID, f"there is no exchange type {method.type!r}")
    needs = to_declare_exchange(channel.broker, method.exchange, with_hyphens(method.arguments))
    _change(channel, needs, partial(_make_exchange, channel, method), "exchange.declare-ok")


def _check_exchange(channel: ChannelBase, name: str) -> None:
    channel.broker.check_exchange(name)
    channel.reply(channel.make("exchange.declare-ok"))


def _make_exchange(channel: ChannelBase, method: Any) -> None:
    broker = channel.broker
    there = broker.exchanges.get(method.exchange) if method.exchange else None
    if there is not None:
        if there.kind != method.type:
            raise ReplyError(
                ReplyCode091.NOT_ALLOWED, f"the exchange {method.exchange!r} is of type {there.kind!r}"
            )
        return
    broker.declare_exchange(
        method.exchange,
        method.type,
        durable=method.durable,
        auto_delete=method.auto_delete,
        internal=method.internal,
        grace=channel.options.grace,
        arguments=with_hyphens(method.arguments),
    )


def _delete_exchange(channel: ChannelBase, arrival: Arrival) -> None:
    method: Any = arrival.method
    channel.check_ticket(method.ticket, ACTIVE)
    deletion = channel.broker.delete_exchange_in_steps(method.exchange, if_unused=method.if_unused)

    def reply(_: None) -> None:
        channel.when_stored(lambda: channel.reply(channel.make("exchange.delete-ok")))

    needs = to_delete_exchange(channel.broker, method.exchange)
    channel.ask(needs, lambda: channel.go_through(deletion, reply))


# -- queues ---------------------------------------------------------------------------------


def _declare_queue(channel: ChannelBase, arrival: Arrival) -> None:
    method: Any = arrival.method
    channel.check_ticket(method.ticket, PASSIVE if method.passive else ACTIVE)
    if method.passive:
        name = channel.queue_named(method.queue)
        channel.ask(to_find_queue(channel.broker, name), partial(_check_queue, channel, name))
        return
    if method.queue.startswith(_RESERVED):
        raise ReplyError(
            ReplyCode091.ACCESS_REFUSED,
            f"names that begin with {_RESERVED} are reserved for the server",
            hard=True,
        )

    def declare() -> None:
        queue = _make_queue(channel, method)
        name = getattr(queue, "name", method.queue)
        channel.when_stored(partial(_answer_declare, channel, name, queue))

    arguments = with_hyphens(method.arguments)
    channel.ask(
        to_declare_queue(channel.broker, method.queue, arguments, exclusive=method.exclusive), declare
    )


def _check_queue(channel: ChannelBase, name: str) -> None:
    _answer_declare(channel, name, channel.broker.check_queue(name, channel.peer))


def _make_queue(channel: ChannelBase, method: Any) -> Queue:
    """Declare the queue of a method; an existing queue keeps its bits.

    Owner and explicit arguments of an existing queue must match.
    """
    broker, options = channel.broker, channel.options
    there = broker.find_queue(method.queue) if method.queue else None
    arguments: dict[str, Any] = dict(options.queue_arguments)
    durable, exclusive = method.durable, method.exclusive
    if isinstance(there, BrokerQueue):
        arguments, durable = there.arguments, there.wants_durable
        exclusive = exclusive or there.owner is channel.peer
    elif there is not None:
        arguments, durable = {}, there.durable
    elif method.auto_delete:
        arguments["x-expires"] = max(1, int(options.grace * 1000))
    queue, _ = broker.declare_queue(
        method.queue,
        {**arguments, **with_hyphens(method.arguments)},
        durable=durable,
        auto_delete=isinstance(there, BrokerQueue) and there.auto_delete,
        exclusive=exclusive,
        peer=channel.peer,
    )
    return queue


def _answer_declare(channel: ChannelBase, name: str, queue: Queue) -> None:
    channel.queue = name
    queue.sweep()
    answer = {"queue": name, "message_count": queue.available, "consumer_count": len(queue.outlets)}
    channel.reply(channel.make("queue.declare-ok", **answer))


def _bind_queue(channel: ChannelBase, arrival: Arrival) -> None:
    method: Any = arrival.method
    channel.check_ticket(method.ticket, ACTIVE)
    name, broker = channel.queue_named(method.queue), channel.broker

    def ask_for_any_key() -> None:
        needs = to_bind_any_key(broker, method.exchange)
        _change(channel, needs, partial(_bind, channel, method, name), "queue.bind-ok")

    channel.ask(to_bind(broker, method.exchange, "queue", name, method.routing_key), ask_for_any_key)


def _bind(channel: ChannelBase, method: Any, name: str) -> None:
    """Bind a queue, with errors that differ from 0-9-1 (C 815-828).

    Raises:
        NotFoundError: the queue or the exchange does not exist.
        PreconditionError: the queue is durable and the exchange is not.
        ReplyError: 530 if the exchange is internal; 541 for any other refusal.
    """
    broker = channel.broker
    queue, exchange = broker.get_queue(name, channel.peer), broker.get_exchange(method.exchange)
    if exchange.internal:
        raise ReplyError(ReplyCode091.NOT_ALLOWED, f"the exchange {method.exchange!r} is internal")
    if exchange.name and not exchange.durable and isinstance(queue, BrokerQueue) and queue.wants_durable:
        raise PreconditionError(
            f"the queue {name!r} is durable, and the exchange {method.exchange!r} is transient"
        )
    try:
        arguments = with_hyphens(method.arguments)
        broker.bind(method.exchange, "queue", name, method.routing_key, arguments, peer=channel.peer)
    except RefusedError as refusal:
        raise ReplyError(ReplyCode091.INTERNAL_ERROR, refusal.description) from None


def _purge_queue(channel: ChannelBase, arrival: Arrival) -> None:
    method: Any = arrival.method
    channel.check_ticket(method.ticket, READ)
    name = channel.queue_named(method.queue)

    purge = channel.broker.purge_queue_in_steps(name, peer=channel.peer)

    def reply(count: int) -> None:
        answer = channel.make("queue.purge-ok", message_count=count)
        channel.when_deleted(lambda: channel.reply(answer))

    channel.ask(to_receive(channel.broker, name), lambda: channel.go_through(purge, reply))


def _delete_queue(channel: ChannelBase, arrival: Arrival) -> None:
    method: Any = arrival.method
    channel.check_ticket(method.ticket, ACTIVE)
    name = channel.queue_named(method.queue)

    def delete() -> None:
        if channel.broker.find_queue(name) is None:
            raise NotFoundError(f"no queue {name!r}")
        deletion = channel.broker.delete_queue_in_steps(
            name,
            if_unused=method.if_unused,
            if_empty=method.if_empty,
            dead_letters=True,
            peer=channel.peer,
        )
        channel.go_through(deletion, reply)

    def reply(count: int) -> None:
        answer = channel.make("queue.delete-ok", message_count=count)
        channel.when_stored(lambda: channel.reply(answer))

    channel.ask(to_delete_queue(channel.broker, name), delete)


DECLARING: Final[Mapping[str, Callable[[ChannelBase, Arrival], object]]] = {
    "exchange.declare": _declare_exchange,
    "exchange.delete": _delete_exchange,
    "queue.declare": _declare_queue,
    "queue.bind": _bind_queue,
    "queue.purge": _purge_queue,
    "queue.delete": _delete_queue,
}
"""The function for each method of the classes exchange and queue."""
