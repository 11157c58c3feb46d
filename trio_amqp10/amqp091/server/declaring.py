"""The handlers of the classes exchange and queue of 0-9-1.

An empty queue name means the last queue that was declared on the channel, except in a declaration. ``broker_rights`` has the permissions
that each method needs; they are checked before any object is looked up.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from trio_amqp10.amqp091 import spec
from trio_amqp10.broker.exchanges.faults import AccessRefusedError, NotFoundError
from trio_amqp10.broker.exchanges.topology import RESERVED
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

from .direct_replies import REPLY_TO, REPLY_TO_ADDRESS, find_reply_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.wire.methods import Method
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.rights.guard import Need

    from .channel import ServerChannel


def _change(
    channel: ServerChannel, needs: Iterable[Need], change: Callable[[], object], answer: Method | None
) -> None:
    """Apply a permitted change, and answer once it is stored; None for no answer."""

    def change_and_answer() -> None:
        change()
        _answer_when_stored(channel, answer)

    channel.ask(needs, change_and_answer)


def _answer_when_stored(channel: ServerChannel, answer: Method | None) -> None:
    channel.when_stored(lambda: None if answer is None else channel.reply(answer))


# -- exchanges ------------------------------------------------------------------------------


def _declare_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    answer = None if method.no_wait else spec.ExchangeDeclareOk()
    if method.passive:
        channel.ask(
            to_find_exchange(channel.broker, method.exchange),
            partial(_check_exchange, channel, method.exchange, answer),
        )
        return

    def declare() -> None:
        if not channel.broker.declares_for_clients and method.exchange not in channel.broker.exchanges:
            _refuse_new("exchange", method.exchange)
        channel.broker.declare_exchange(
            method.exchange,
            method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
        )

    _change(channel, to_declare_exchange(channel.broker, method.exchange, method.arguments), declare, answer)


def _refuse_new(kind: str, name: str) -> NoReturn:
    raise AccessRefusedError(
        f"this strict container makes no {kind} {name!r} for clients: call add_broker, or name 0-9-1 in dialects="
    )


def _check_exchange(channel: ServerChannel, name: str, answer: Method | None) -> None:
    channel.broker.check_exchange(name)
    if answer is not None:
        channel.reply(answer)


def _delete_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    answer = None if method.no_wait else spec.ExchangeDeleteOk()
    deletion = channel.broker.delete_exchange_in_steps(method.exchange, if_unused=method.if_unused)
    channel.ask(
        to_delete_exchange(channel.broker, method.exchange),
        lambda: channel.go_through(deletion, lambda _: _answer_when_stored(channel, answer)),
    )


def _bind_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    answer = None if method.no_wait else spec.ExchangeBindOk()
    _rebind(channel, "bind", "exchange", method.source, method.destination, method, answer)


def _unbind_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    answer = None if method.no_wait else spec.ExchangeUnbindOk()
    _rebind(channel, "unbind", "exchange", method.source, method.destination, method, answer)


def _rebind(
    channel: ServerChannel,
    verb: Literal["bind", "unbind"],
    kind: Literal["queue", "exchange"],
    source: str,
    destination: str,
    method: Any,
    answer: Method | None,
) -> None:
    broker, key = channel.broker, method.routing_key
    operation = broker.bind if verb == "bind" else broker.unbind
    change = partial(operation, source, kind, destination, key, method.arguments, peer=channel.peer)

    def ask_for_any_key() -> None:
        _change(channel, to_bind_any_key(broker, source), change, answer)

    channel.ask(to_bind(broker, source, kind, destination, key), ask_for_any_key)


# -- queues ---------------------------------------------------------------------------------


def _declare_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    if method.passive:
        name = method.queue  # an empty name is not the last queue here, as at RabbitMQ
        if name == REPLY_TO:  # the pseudo-queue exists for every client
            _answer_replies(channel, method, name)
        else:
            channel.ask(to_find_queue(channel.broker, name), partial(_check_queue, channel, method, name))
        return
    if method.queue.startswith(RESERVED):  # also if the queue exists, as at RabbitMQ
        raise AccessRefusedError(f"queue name '{method.queue}' contains reserved prefix '{RESERVED}*'")

    def declare() -> None:
        if not channel.broker.declares_for_clients and channel.broker.find_queue(method.queue) is None:
            _refuse_new("queue", method.queue)
        queue, _ = channel.broker.declare_queue(
            method.queue,
            method.arguments,
            durable=method.durable,
            auto_delete=method.auto_delete,
            exclusive=method.exclusive,
            peer=channel.peer,
        )
        channel.queue = name = getattr(queue, "name", method.queue)
        channel.when_stored(partial(_answer_declare, channel, method, name, queue))

    needs = to_declare_queue(channel.broker, method.queue, method.arguments, exclusive=method.exclusive)
    channel.ask(needs, declare)


def _answer_replies(channel: ServerChannel, method: Any, name: str) -> None:
    if not method.no_wait:
        channel.reply(spec.QueueDeclareOk(queue=name, message_count=0, consumer_count=1))


def _check_queue(channel: ServerChannel, method: Any, name: str) -> None:
    if name.startswith(REPLY_TO):
        if name.startswith(REPLY_TO_ADDRESS) and find_reply_node(channel.broker, name) is not None:
            _answer_replies(channel, method, name)
            return
        raise NotFoundError(f"no {channel.broker.title_of('queue', name)}")
    queue = channel.broker.check_queue(name, channel.peer)
    channel.queue = name
    _answer_declare(channel, method, name, queue)


def _answer_declare(channel: ServerChannel, method: Any, name: str, queue: Queue) -> None:
    if method.no_wait:
        return
    queue.sweep()
    channel.reply(
        spec.QueueDeclareOk(queue=name, message_count=queue.available, consumer_count=len(queue.outlets))
    )


def _bind_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)
    if not method.queue and not method.routing_key:
        method.routing_key = name
    answer = None if method.no_wait else spec.QueueBindOk()
    _rebind(channel, "bind", "queue", method.exchange, name, method, answer)


def _unbind_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)
    if not method.queue and not method.routing_key:
        method.routing_key = name
    _rebind(channel, "unbind", "queue", method.exchange, name, method, spec.QueueUnbindOk())


def _purge_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)

    def reply(count: int) -> None:
        answer = None if method.no_wait else spec.QueuePurgeOk(message_count=count)
        channel.when_deleted(lambda: None if answer is None else channel.reply(answer))

    purge = channel.broker.purge_queue_in_steps(name, peer=channel.peer)
    channel.ask(to_receive(channel.broker, name), lambda: channel.go_through(purge, reply))


def _delete_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)

    deletion = channel.broker.delete_queue_in_steps(
        name, if_unused=method.if_unused, if_empty=method.if_empty, peer=channel.peer
    )

    def reply(count: int) -> None:
        _answer_when_stored(channel, None if method.no_wait else spec.QueueDeleteOk(message_count=count))

    channel.ask(to_delete_queue(channel.broker, name), lambda: channel.go_through(deletion, reply))


DECLARING: Final[Mapping[str, Callable[[ServerChannel, Arrival], object]]] = {
    "exchange.declare": _declare_exchange,
    "exchange.delete": _delete_exchange,
    "exchange.bind": _bind_exchange,
    "exchange.unbind": _unbind_exchange,
    "queue.declare": _declare_queue,
    "queue.bind": _bind_queue,
    "queue.unbind": _unbind_queue,
    "queue.purge": _purge_queue,
    "queue.delete": _delete_queue,
}
"""The handler of each method of the classes exchange and queue."""
