"""A small broker for tests: queues, direct and fanout exchanges, confirms, transactions; over memory streams or TCP.

It stands on the product's engine in the other role, and on no other part of the product but the pump: what the wire looks
like is held by the vectors and by a real server elsewhere.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import (
    Arrival,
    ChallengeAnswered,
    ChannelClosed,
    ChannelOpened,
    OpenRequested,
    SecretUpdated,
    StartAnswered,
)
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.net.pump import Pump

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10 import amqp091
    from trio_amqp10.amqp091.wire.methods import Method

CAPABILITIES = {
    "publisher_confirms": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


_PLACES = itertools.count()


class Message:
    """A message in a queue."""

    def __init__(self, method: spec.BasicPublish, content: Content) -> None:
        self.method = method
        self.content = content
        self.redelivered = False
        self.place = next(_PLACES)


class QueueNode:
    """A queue and who consumes it."""

    def __init__(self, method: spec.QueueDeclare, owner: Peer | None) -> None:
        self.method = method
        self.owner = owner
        self.messages: deque[Message] = deque()
        self.consumers: list[tuple[ServerChannel, str]] = []


class Broker:
    """Everything that connections share.

    Attributes:
        log: names of the methods of channels that came, oldest first.
        hold: confirms wait until ``confirm`` is called.
        refuse: bodies that are refused with a nack.
        password: the one that is right.
        peers: connections that are there.
        accepts: whether a dial succeeds.
        vhosts: names that can be opened.
    """

    def __init__(self, nursery: trio.Nursery, limits: Limits | None = None) -> None:
        self.nursery = nursery
        self.limits = limits or Limits()
        self.queues: dict[str, QueueNode] = {}
        self.exchanges: dict[str, spec.ExchangeDeclare] = {}
        self.bindings: list[tuple[str, str, str]] = []
        self.log: list[str] = []
        self.hold = False
        self.refuse: set[bytes] = set()
        self.password = "secret"
        self.says_why = True
        self.peers: list[Peer] = []
        self.accepts = True
        self.dials = 0
        self.vhosts = {"/"}
        self.generated = 0
        self.mechanisms = b"PLAIN AMQPLAIN"
        self.received: list[bytes] = []
        self.fuses: list[int] = []  # methods until all transports break, each time
        self.replies: dict[str, ServerChannel] = {}
        self.reply_node = QueueNode(spec.QueueDeclare(), None)

    async def dial(self, _url: Any = None) -> trio.abc.Stream:
        """What a client's dial gets."""
        await trio.lowlevel.checkpoint()
        self.dials += 1
        if not self.accepts:
            raise ConnectionRefusedError("the broker is down")
        ours, theirs = memory_stream_pair()
        self.serve(theirs)
        return ours

    def serve(self, stream: trio.abc.Stream) -> Peer:
        """Serve a stream."""
        peer = Peer(self, stream)
        self.peers.append(peer)
        peer.pump.start(self.nursery)
        return peer

    def sever(self) -> None:
        """Every transport breaks; exclusive queues go."""
        for peer in list(self.peers):
            peer.pump.cancel()
            self.gone(peer)

    def burns(self) -> bool:
        """One more method came; whether this is when the transports break."""
        if not self.fuses:
            return False
        self.fuses[0] -= 1
        if self.fuses[0]:
            return False
        self.fuses.pop(0)
        self.sever()
        return True

    def gone(self, peer: Peer) -> None:
        """A connection ended: what it did not settle is ready again."""
        if peer not in self.peers:
            return
        self.peers.remove(peer)
        for channel in peer.channels:
            channel.end()
        for name in [name for name, node in self.queues.items() if node.owner is peer]:
            self.delete(name)

    def delete(self, name: str) -> None:
        """A queue is deleted; its consumers are told."""
        self.bindings = [each for each in self.bindings if each[1] != name]
        if (node := self.queues.pop(name, None)) is None:
            return
        consumers, node.consumers = node.consumers, []
        for channel, tag in consumers:
            channel.consumers.pop(tag, None)
            channel.send(spec.BasicCancel(consumer_tag=tag, no_wait=True))

    def route(self, exchange: str, key: str) -> list[QueueNode]:
        """The queues that get a message."""
        if not exchange:
            return [self.queues[key]] if key in self.queues else []
        every = self.exchanges[exchange].type == "fanout"
        names = {
            queue for source, queue, mine in self.bindings if source == exchange and (every or mine == key)
        }
        return [self.queues[name] for name in sorted(names) if name in self.queues]

    def publish(self, method: spec.BasicPublish, content: Content) -> bool:
        """Put a message into its queues; whether there was one."""
        nodes = self.route(method.exchange, method.routing_key)
        for node in nodes:
            node.messages.append(Message(method, content))
            self.deliver(node)
        return bool(nodes)

    def publish_reply(self, key: str | None, properties: BasicProperties, body: bytes) -> None:
        """A direct reply: to the channel that consumes the pseudo-queue, by the token in its address."""
        channel = self.replies[key or ""]
        content = Content(BasicProperties(correlation_id=properties.correlation_id), body)
        [tag] = [tag for tag, (node, _, _) in channel.consumers.items() if node is self.reply_node]
        channel.tag += 1
        channel.send(
            spec.BasicDeliver(consumer_tag=tag, delivery_tag=channel.tag, routing_key=key or ""), content
        )

    def put_back(self, node: QueueNode, message: Message) -> None:
        """A message is ready again, at its old place."""
        message.redelivered = True
        node.messages = deque(sorted((*node.messages, message), key=lambda each: each.place))

    def deliver(self, node: QueueNode) -> None:
        """Hand out what is ready to consumers with room."""
        while node.messages:
            ready = [(channel, tag) for channel, tag in node.consumers if channel.has_room(tag)]
            if not ready:
                return
            channel, tag = ready[0]
            node.consumers.remove((channel, tag))
            node.consumers.append((channel, tag))
            channel.deliver(tag, node, node.messages.popleft())


class BrokerEngine(Engine):
    """An engine whose calls a test may replace: it has no slots."""


class Peer:
    """One connection, as the broker has it."""

    def __init__(self, broker: Broker, stream: trio.abc.Stream) -> None:
        self.broker = broker
        start = spec.ConnectionStart(
            server_properties={
                "product": "Small",
                "version": "1",
                "capabilities": {**CAPABILITIES, "authentication_failure_close": broker.says_why},
            },
            mechanisms=broker.mechanisms,
        )
        self.engine = BrokerEngine(EndpointRole.SERVER, trio.current_time(), broker.limits, start=start)
        self.pump = Pump(self.engine, stream, self.on_event, self.on_over)
        self.channels: list[ServerChannel] = []
        self.answer: spec.ConnectionStartOk | None = None
        self.secrets: list[bytes] = []
        self.keeps_secrets = True
        self.mute = False

    def on_over(self) -> None:
        if self.pump.failure is not None or self.pump.finished.is_set():
            self.broker.gone(self)

    def on_event(self, event: Any) -> None:
        now = trio.current_time()
        if isinstance(event, StartAnswered | ChallengeAnswered):
            self.log_in(event, now)
        elif isinstance(event, OpenRequested):
            if event.virtual_host in self.broker.vhosts:
                self.engine.accept_open(now)
            else:
                self.engine.close(now, 530, f"NOT_ALLOWED - vhost {event.virtual_host} not found", 10, 40)
        elif isinstance(event, ChannelOpened):
            self.channels.append(ServerChannel(self, event.channel))
        elif isinstance(event, ChannelClosed):
            for channel in [each for each in self.channels if each.engine is event.channel]:
                channel.on_touch()  # what came before the close, in the same read
                channel.end()
                self.channels.remove(channel)
        elif isinstance(event, SecretUpdated):
            self.secrets.append(event.secret)
            if self.keeps_secrets:
                self.engine.accept_secret()
        self.pump.wake_writer()

    def log_in(self, event: StartAnswered | ChallengeAnswered, now: float) -> None:
        assert isinstance(event, StartAnswered)
        self.answer = event.answer
        if self.broker.password.encode() in event.answer.response:
            self.engine.accept_login("guest", now)
        elif self.broker.says_why:
            self.engine.refuse_login("Login was refused")
        else:
            self.pump.cancel()

    def close(self, code: int, text: str, cause: Method | None = None) -> None:
        """End the connection with a reply code, because of a method if one is given."""
        ids = () if cause is None else (cause.plan.class_id, cause.plan.method_id)
        self.engine.close(trio.current_time(), code, text, *ids)
        self.pump.wake_writer()
        self.broker.gone(self)

    def block(self, reason: str) -> None:
        self.engine.block(reason)
        self.pump.wake_writer()

    def unblock(self) -> None:
        self.engine.unblock()
        self.pump.wake_writer()


class ServerChannel:
    """One channel, as the broker has it."""

    def __init__(self, peer: Peer, engine: Any) -> None:
        self.peer = peer
        self.broker = peer.broker
        self.engine = engine
        engine.on_touch = self.on_touch
        self.consumers: dict[str, tuple[QueueNode, bool, int]] = {}
        self.prefetch = 0
        self.unsettled: dict[int, tuple[QueueNode, Message, str]] = {}
        self.tag = 0
        self.unconfirmed: list[tuple[int, bool]] = []
        self.transaction: list[Any] | None = None
        self.last = ""

    # -- what a test does -------------------------------------------------------------------

    def send(self, method: Method, content: Content | None = None) -> None:
        if self.engine.state is ChannelState.OPEN:
            self.engine.send(method, content)
        self.peer.pump.wake_writer()

    def refuse(self, code: int, text: str, method: Method) -> None:
        """Close the channel."""
        self.engine.close(code, text, method.plan.class_id, method.plan.method_id)
        self.end()
        if self in self.peer.channels:
            self.peer.channels.remove(self)
        self.peer.pump.wake_writer()

    def confirm(self, multiple: bool = False) -> None:
        """Confirm what waits."""
        waiting, self.unconfirmed = self.unconfirmed, []
        if multiple and waiting and all(good for _, good in waiting):
            self.send(spec.BasicAck(delivery_tag=waiting[-1][0], multiple=True))
            return
        for number, good in waiting:
            self.send(spec.BasicAck(delivery_tag=number) if good else spec.BasicNack(delivery_tag=number))

    # -- what a client does -----------------------------------------------------------------

    def on_touch(self) -> None:
        while self.peer in self.broker.peers and (arrival := self.engine.next_arrival()) is not None:
            name = arrival.method.plan.name
            self.broker.log.append(name)
            if self.broker.burns():
                return
            if self.peer.mute:
                continue
            handle: Callable[[Arrival], None] = getattr(
                self, "on_" + name.replace(".", "_").replace("-", "_")
            )
            handle(arrival)

    def end(self) -> None:
        """The channel is over."""
        for name, (node, _, _) in list(self.consumers.items()):
            node.consumers.remove((self, name))
        self.consumers.clear()
        for node, message, _ in reversed(self.unsettled.values()):
            self.broker.put_back(node, message)
        nodes = {id(node): node for node, _, _ in self.unsettled.values()}
        self.unsettled.clear()
        for node in nodes.values():
            self.broker.deliver(node)

    def has_room(self, tag: str) -> bool:
        _, no_ack, prefetch = self.consumers[tag]
        out = sum(1 for _, _, consumer in self.unsettled.values() if consumer == tag)
        return no_ack or not prefetch or out < prefetch

    def deliver(self, tag: str, node: QueueNode, message: Message) -> None:
        self.tag += 1
        if not self.consumers[tag][1]:
            self.unsettled[self.tag] = (node, message, tag)
        self.send(
            spec.BasicDeliver(
                consumer_tag=tag,
                delivery_tag=self.tag,
                redelivered=message.redelivered,
                exchange=message.method.exchange,
                routing_key=message.method.routing_key,
            ),
            message.content,
        )

    def on_exchange_declare(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        known = self.broker.exchanges.get(method.exchange)
        if known is None and method.passive:
            self.refuse(404, f"NOT_FOUND - no exchange '{method.exchange}' in vhost '/'", method)
        elif known is not None and not method.passive and known.type != method.type:
            self.refuse(406, "PRECONDITION_FAILED - inequivalent arg 'type'", method)
        else:
            if not method.passive:
                self.broker.exchanges[method.exchange] = method
            self.send(spec.ExchangeDeclareOk())

    def on_exchange_delete(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        self.broker.exchanges.pop(method.exchange, None)
        self.send(spec.ExchangeDeleteOk())

    def on_exchange_bind(self, _arrival: Arrival) -> None:
        self.send(spec.ExchangeBindOk())

    def on_exchange_unbind(self, _arrival: Arrival) -> None:
        self.send(spec.ExchangeUnbindOk())

    def on_queue_declare(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        name = method.queue
        if not name and not method.passive:
            self.broker.generated += 1
            name = f"amq.gen-{self.broker.generated}"
        node = self.broker.queues.get(name)
        if node is None and method.passive:
            self.refuse(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", method)
            return
        if node is not None and node.owner is not None and node.owner is not self.peer:
            self.refuse(405, f"RESOURCE_LOCKED - cannot obtain exclusive access to queue '{name}'", method)
            return
        if node is not None and not method.passive and node.method.durable != method.durable:
            self.refuse(406, f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{name}'", method)
            return
        if node is None:
            node = QueueNode(method, self.peer if method.exclusive else None)
            self.broker.queues[name] = node
        self.send(
            spec.QueueDeclareOk(
                queue=name, message_count=len(node.messages), consumer_count=len(node.consumers)
            )
        )

    def node(self, method: Any) -> QueueNode | None:
        if method.queue == "amq.rabbitmq.reply-to":
            return self.broker.reply_node
        found = self.broker.queues.get(method.queue)
        if found is None:
            self.refuse(404, f"NOT_FOUND - no queue '{method.queue}' in vhost '/'", method)
        return found

    def on_queue_bind(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        if self.node(method) is not None:
            self.broker.bindings.append((method.exchange, method.queue, method.routing_key))
            self.send(spec.QueueBindOk())

    def on_queue_unbind(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        gone = (method.exchange, method.queue, method.routing_key)
        self.broker.bindings = [each for each in self.broker.bindings if each != gone]
        self.send(spec.QueueUnbindOk())

    def on_queue_purge(self, arrival: Arrival) -> None:
        node = self.node(arrival.method)
        if node is not None:
            count = len(node.messages)
            node.messages.clear()
            self.send(spec.QueuePurgeOk(message_count=count))

    def on_queue_delete(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        node = self.broker.queues.get(method.queue)
        count = 0 if node is None else len(node.messages)
        self.broker.delete(method.queue)
        self.send(spec.QueueDeleteOk(message_count=count))

    def on_basic_qos(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        self.prefetch = method.prefetch_count
        self.send(spec.BasicQosOk())

    def on_basic_consume(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        node = self.node(method)
        if node is None:
            return
        self.send(spec.BasicConsumeOk(consumer_tag=method.consumer_tag))
        self.consumers[method.consumer_tag] = (node, method.no_ack, self.prefetch)
        node.consumers.append((self, method.consumer_tag))
        self.broker.deliver(node)

    def on_basic_cancel(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        found = self.consumers.pop(method.consumer_tag, None)
        if found is not None:
            found[0].consumers.remove((self, method.consumer_tag))
        if not method.no_wait:
            self.send(spec.BasicCancelOk(consumer_tag=method.consumer_tag))

    def on_basic_publish(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        assert arrival.content is not None
        content = arrival.content
        if method.exchange and method.exchange not in self.broker.exchanges:
            self.refuse(404, f"NOT_FOUND - no exchange '{method.exchange}' in vhost '/'", method)
            return
        if not method.exchange and method.routing_key in self.broker.replies:
            self.broker.publish_reply(method.routing_key, content.properties, content.body)
            return
        if content.properties.reply_to == "amq.rabbitmq.reply-to":
            key = f"amq.rabbitmq.reply-to.{id(self)}"
            self.broker.replies[key] = self
            content = Content(replace(content.properties, reply_to=key), content.body)
        if self.transaction is not None:
            self.transaction.append((method, content))
            return
        self.broker.received.append(content.body)
        good = content.body not in self.broker.refuse
        if good and not self.broker.publish(method, content) and method.mandatory:
            self.send(
                spec.BasicReturn(
                    reply_code=312,
                    reply_text="NO_ROUTE",
                    exchange=method.exchange,
                    routing_key=method.routing_key,
                ),
                content,
            )
        if arrival.number:
            self.unconfirmed.append((arrival.number, good))
            if not self.broker.hold:
                self.confirm()

    def on_basic_get(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        node = self.node(method)
        if node is None:
            return
        if not node.messages:
            self.send(spec.BasicGetEmpty())
            return
        message = node.messages.popleft()
        self.tag += 1
        if not method.no_ack:
            self.unsettled[self.tag] = (node, message, "")
        self.send(
            spec.BasicGetOk(
                delivery_tag=self.tag,
                redelivered=message.redelivered,
                exchange=message.method.exchange,
                routing_key=message.method.routing_key,
                message_count=len(node.messages),
            ),
            message.content,
        )

    def on_basic_ack(self, arrival: Arrival) -> None:
        self.settle(arrival.tags, requeue=False)

    def on_basic_nack(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        self.settle(arrival.tags, requeue=method.requeue)

    def on_basic_reject(self, arrival: Arrival) -> None:
        method: Any = arrival.method
        self.settle(arrival.tags, requeue=method.requeue)

    def settle(self, tags: tuple[int, ...], *, requeue: bool) -> None:
        if self.transaction is not None:
            self.transaction.append((tags, requeue))
            return
        self.do_settle(tags, requeue)

    def do_settle(self, tags: tuple[int, ...], requeue: bool) -> None:
        for tag in reversed(tags):
            node, message, _ = self.unsettled.pop(tag)
            if requeue:
                self.broker.put_back(node, message)
            self.broker.deliver(node)

    def on_basic_recover(self, _arrival: Arrival) -> None:
        self.settle(tuple(self.unsettled), requeue=True)
        self.send(spec.BasicRecoverOk())

    def on_confirm_select(self, _arrival: Arrival) -> None:
        self.send(spec.ConfirmSelectOk())

    def on_tx_select(self, _arrival: Arrival) -> None:
        self.transaction = []
        self.send(spec.TxSelectOk())

    def on_tx_commit(self, _arrival: Arrival) -> None:
        assert self.transaction is not None
        for first, second in self.transaction:
            if isinstance(first, tuple):
                self.do_settle(first, second)
            else:
                self.broker.publish(first, second)
        self.transaction.clear()
        self.send(spec.TxCommitOk())

    def on_tx_rollback(self, _arrival: Arrival) -> None:
        assert self.transaction is not None
        self.transaction.clear()
        self.send(spec.TxRollbackOk())

    def on_channel_flow_ok(self, _arrival: Arrival) -> None:
        pass


async def put(channel: amqp091.Channel, queue: str, *bodies: bytes) -> None:
    for body in bodies:
        await channel.publish("", queue, body)
    await wait_all_tasks_blocked()
