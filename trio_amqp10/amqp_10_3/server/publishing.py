"""Publishing on a channel: messages of the classes basic, file and stream.

10.3 has no confirms: the server reports a message only if it fails. A mandatory message that reaches no queue is returned. An
immediate message is returned, and goes to no queue, unless a queue that it reaches has a consumer that can take it now (C
1020-1023). A message that a full queue or a failing store refused is reported with channel.alert (C 561-564).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.server.faults import fault_of
from trio_amqp10.amqp091.server.publishing import Publish, Publishing
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp_10_3.wire.properties import FileProperties, StreamProperties
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.routing import DEFAULT
from trio_amqp10.core.reply_codes import ReplyCode091

from .content import carried, from_basic, to_basic
from .tickets import WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.server.native_message import Published
    from trio_amqp10.amqp091.wire.content import Properties
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Inlet, Node, RefusedError

    from .channel_base import ChannelBase

_CLASSES: Final[Mapping[str, type[Properties]]] = {"file": FileProperties, "stream": StreamProperties}


class Publishing103(Publishing):
    """The publishing of one channel; see ``Publishing``."""

    __slots__ = ("_channel103",)

    def __init__(self, channel: ChannelBase) -> None:
        super().__init__(channel)
        self._channel103 = channel

    def publish(self, arrival: Arrival) -> None:
        """Process basic.publish and stream.publish, and the content of a staged file."""
        method: Any = arrival.method
        self._channel103.check_ticket(method.ticket, WRITE)
        content = arrival.content
        assert content is not None
        if not isinstance(content.properties, BasicProperties):
            properties = to_basic(content.properties)
            content = Content(properties, content.body, properties.encode(USUAL))
        super().publish(arrival._replace(content=content))

    def publish_file(self, arrival: Arrival) -> None:
        """Process file.publish for a file that was staged on this connection."""
        method: Any = arrival.method
        files = self._channel103.files
        content = files.staged(method.identifier)
        self.publish(arrival._replace(content=content))
        files.published(method.identifier)

    def _put(self, broker: Topology, published: Published, number: int) -> bool:  # noqa: ARG002
        """Refuse the fast path, because a message may depend on the state of consumers."""
        return False

    def _further(self, headers: Mapping[str, Any]) -> Sequence[str]:
        """Return no further keys: the headers CC and BCC have no meaning in 10.3."""
        _ = headers
        return ()

    def route(self, inlet: Inlet, publish: Publish) -> None:
        if publish.method.immediate and not self._can_be_taken_now(publish):
            self._return(publish, ReplyCode091.NO_CONSUMERS)
            publish.accept()
            return
        super().route(inlet, publish)

    def queues_of(self, publish: Publish) -> Sequence[Node]:
        if publish.method.immediate and not self._can_be_taken_now(publish):
            return ()
        return super().queues_of(publish)

    def _can_be_taken_now(self, publish: Publish) -> bool:
        """Whether a queue that the message reaches has a ready consumer.

        Also True if the message goes to a node of the program.
        """
        broker = self._channel.broker
        if publish.routed is not None:
            _, queues = publish.routed
        else:
            exchange = broker.exchanges[publish.exchange]
            if exchange.name == DEFAULT:
                node = broker.find_node(publish.key)
                if node is not None and not isinstance(node, BrokerQueue):
                    return node.accepts_senders
            headers = publish.published.headers
            queues = broker.route(exchange, (publish.key,), lambda: headers)
        return any(outlet.ready() for queue in queues for outlet in queue.outlets if not outlet.copying)

    def on_answer(self, publish: Publish, refusal: RefusedError | None) -> None:
        super().on_answer(publish, refusal)
        if refusal is None or publish.state == "released" or self._channel.over:
            return
        fault = fault_of(refusal)
        details = {"exchange": publish.exchange, "routing_key": publish.key}
        alert = {"reply_code": fault.code, "reply_text": fault.reply_text, "details": details}
        self._channel.reply(self._channel.make("channel.alert", **alert))

    def _returned(self, published: Published, kind: str) -> Content:
        wanted = _CLASSES.get(kind)
        if wanted is None:
            return carried(published)
        return Content(from_basic(published.properties, wanted), published.body)
