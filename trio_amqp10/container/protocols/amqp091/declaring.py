"""Methods that make, bind and delete exchanges and queues (0-9-1, exchange and queue).

Names: an empty name of a queue is the one that was declared last on the channel. Whoever declares or deletes needs
permission to ``create``; who binds a queue that is there needs it too. To purge a queue is to receive from it.

Knows the broker of the container; knows no message.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.amqp091 import spec
from trio_amqp10.container.broker.faults import AccessRefusedError, NotFoundError
from trio_amqp10.container.broker.topology import RESERVED

from .replying import REPLY_TO, REPLY_TO_ADDRESS, find_reply_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.amqp091.methods import Method
    from trio_amqp10.container.nodes.queue import Queue

    from .channel import ServerChannel

__all__ = ["DECLARING"]


def _change(channel: ServerChannel, change: Callable[[], object], answer: Method | None) -> None:
    """Do it if that is permitted, and answer once it is safe; without an answer for ``no-wait``."""

    def change_and_answer() -> None:
        change()
        channel.when_stored(lambda: None if answer is None else channel.reply(answer))

    channel.ask(("create", None), change_and_answer)


# -- exchanges ------------------------------------------------------------------------------


def _declare_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    answer = None if method.no_wait else spec.ExchangeDeclareOk()
    if method.passive:
        channel.broker.check_exchange(method.exchange)
        if answer is not None:
            channel.reply(answer)
        return
    declare = partial(
        channel.broker.declare_exchange,
        method.exchange,
        method.type,
        durable=method.durable,
        auto_delete=method.auto_delete,
        internal=method.internal,
        arguments=method.arguments,
    )
    _change(channel, declare, answer)


def _delete_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    delete = partial(channel.broker.delete_exchange, method.exchange, if_unused=method.if_unused)
    _change(channel, delete, None if method.no_wait else spec.ExchangeDeleteOk())


def _bind_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    change = partial(_rebind, channel, "bind", "exchange", method.source, method.destination, method)
    _change(channel, change, None if method.no_wait else spec.ExchangeBindOk())


def _unbind_exchange(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    change = partial(_rebind, channel, "unbind", "exchange", method.source, method.destination, method)
    _change(channel, change, None if method.no_wait else spec.ExchangeUnbindOk())


def _rebind(
    channel: ServerChannel,
    verb: Literal["bind", "unbind"],
    kind: Literal["queue", "exchange"],
    source: str,
    destination: str,
    method: Any,
) -> None:
    broker = channel.broker
    operation = broker.bind if verb == "bind" else broker.unbind
    operation(source, kind, destination, method.routing_key, method.arguments, peer=channel.peer)


# -- queues ---------------------------------------------------------------------------------


def _declare_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    if method.passive:
        _check_queue(channel, method)
        return
    if method.queue.startswith(RESERVED):  # also of a queue that is there, as RabbitMQ has it
        raise AccessRefusedError(f"queue name '{method.queue}' contains reserved prefix '{RESERVED}*'")

    def declare() -> None:
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

    channel.ask(("create", None), declare)


def _check_queue(channel: ServerChannel, method: Any) -> None:
    name = channel.queue_named(method.queue)
    if name.startswith(REPLY_TO):
        if name == REPLY_TO or (
            name.startswith(REPLY_TO_ADDRESS) and find_reply_node(channel.broker, name) is not None
        ):
            if not method.no_wait:
                channel.reply(spec.QueueDeclareOk(queue=name, message_count=0, consumer_count=1))
            return
        raise NotFoundError(f"no queue '{name}' in vhost '/'")
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
    change = partial(_rebind, channel, "bind", "queue", method.exchange, name, method)
    _change(channel, change, None if method.no_wait else spec.QueueBindOk())


def _unbind_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)
    if not method.queue and not method.routing_key:
        method.routing_key = name
    change = partial(_rebind, channel, "unbind", "queue", method.exchange, name, method)
    _change(channel, change, spec.QueueUnbindOk())


def _purge_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)

    def purge() -> None:
        count = channel.broker.purge_queue(name, peer=channel.peer)
        if not method.no_wait:
            channel.reply(spec.QueuePurgeOk(message_count=count))

    # Whoever may take the messages may throw them away; RabbitMQ asks for ``read`` too.
    queue = channel.broker.get_queue(name, channel.peer)
    channel.ask(("receive", queue.address), purge)


def _delete_queue(channel: ServerChannel, arrival: Arrival) -> None:
    method: Any = arrival.method
    name = channel.queue_named(method.queue)

    def delete() -> None:
        count = channel.broker.delete_queue(
            name, if_unused=method.if_unused, if_empty=method.if_empty, peer=channel.peer
        )
        answer = None if method.no_wait else spec.QueueDeleteOk(message_count=count)
        channel.when_stored(lambda: None if answer is None else channel.reply(answer))

    channel.ask(("create", None), delete)


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
"""What is done with each method of the classes exchange and queue."""
