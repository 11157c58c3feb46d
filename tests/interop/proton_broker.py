"""A broker on Qpid Proton, with queues, topics and a coordinator of transactions. Runs under the peers' own venv.

The example broker of Proton 0.40 has no transactions, and no example is in its sdist: this is one of our own, on
Proton's engine and codec. Messages that are posted come into their queue with the commit, outcomes count
from then on, and a rollback puts back what was taken. What is left in the queues is printed at the end, as JSON.

A node is made when it is used first. It is a topic for links whose terminus has the capability ``topic``: each of its receivers has
a queue of its own. Messages come by priority. What a lost connection has not settled comes again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from typing import Any

from proton import Delivery, Described, Disposition, Terminus, ulong
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton_listening import Stop, listen

DECLARE, DISCHARGE = 0x31, 0x32
DECLARED, TRANSACTIONAL = 0x33, 0x34
ACCEPTED, REJECTED, RELEASED, MODIFIED = 0x24, 0x25, 0x26, 0x27


def is_topic(terminus: Any) -> bool:
    capabilities = terminus.capabilities
    capabilities.rewind()
    found = capabilities.get_object() if capabilities.next() else None
    return found == "topic" or "topic" in getattr(found, "elements", ())


class Broker(MessagingHandler):
    """Queues by address, and what transactions hold back, by their ids."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(auto_accept=False)
        self.arguments = arguments
        self.queues: dict[str, deque[Any]] = {}
        self.consumers: dict[str, list[Any]] = {}
        self.subscribers: dict[str, dict[Any, str]] = {}
        """By topic: the queue of each receiver."""
        self.lent: dict[Any, tuple[str, Any]] = {}
        self.works: dict[bytes, list[tuple[Any, Any, Any]]] = {}
        self.declared = 0
        self.ended: list[str] = []

    def on_start(self, event: Any) -> None:
        event.container.schedule(self.arguments.deadline, Stop(event.container))
        listen(event.container)

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if link.is_sender:
            self.consumers.setdefault(self.queue_of(link), []).append(link)
        elif link.remote_target.type == Terminus.COORDINATOR:
            link.target.type = Terminus.COORDINATOR

    def on_link_closing(self, event: Any) -> None:
        if event.link.is_sender:
            self.leave(event.link)

    def on_disconnected(self, event: Any) -> None:
        for link in [link for links in self.consumers.values() for link in links]:
            if link.connection == event.connection:
                self.leave(link)

    def leave(self, link: Any) -> None:
        """Put back what a receiver has not settled, in its order."""
        queue = self.queue_of(link)
        self.consumers[queue].remove(link)
        unsettled = [delivery for delivery in self.lent if delivery.link == link]
        for delivery in reversed(unsettled):
            _, message = self.lent.pop(delivery)
            message.delivery_count += 1
            self.publish(queue, message, again=True)
        if self.subscribers.get(link.remote_source.address, {}).pop(link, None):
            self.queues.pop(queue, None)

    def queue_of(self, link: Any) -> str:
        address: str = link.remote_source.address
        if not is_topic(link.remote_source):
            return address
        return self.subscribers.setdefault(address, {}).setdefault(link, f"{address} for {link.name}")

    # -- queues

    def post(self, target: Any, message: Any) -> None:
        """Publish a message where a link of its sender leads."""
        address = target.address or message.address
        queues = self.subscribers.get(address, {}).values() if is_topic(target) else (address,)
        for queue in list(queues):
            self.publish(queue, message)

    def publish(self, address: str, message: Any, *, again: bool = False) -> None:
        queue = self.queues.setdefault(address, deque())
        least = message.priority + again
        place = next((n for n, other in enumerate(queue) if other.priority < least), len(queue))
        queue.insert(place, message)
        for consumer in self.consumers.get(address, ()):
            self.dispatch(consumer)

    def dispatch(self, consumer: Any) -> None:
        address = self.queue_of(consumer)
        queue = self.queues.get(address, ())
        while queue and consumer.credit:
            message = queue.popleft()
            delivery = consumer.send(message)
            if not delivery.settled:
                self.lent[delivery] = (address, message)
        if not queue:
            consumer.drained()

    def on_sendable(self, event: Any) -> None:
        self.dispatch(event.sender)

    def on_link_flow(self, event: Any) -> None:
        if event.link.is_sender:
            self.dispatch(event.link)

    def conclude(self, delivery: Any, outcome: int) -> None:
        address, message = self.lent.pop(delivery)
        if outcome == RELEASED:
            delivery.update(Disposition.RELEASED)
        elif outcome == MODIFIED:
            message.delivery_count += bool(delivery.remote.failed)
        delivery.settle()
        if outcome in (RELEASED, MODIFIED):
            self.publish(address, message, again=True)

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if not event.link.is_sender or not delivery.updated or delivery not in self.lent:
            return
        if delivery.remote_state == TRANSACTIONAL:
            txn_id, outcome = delivery.remote.data
            self.works[bytes(txn_id)].append((delivery, None, int(outcome.descriptor)))
        elif delivery.remote_state in (ACCEPTED, REJECTED, RELEASED, MODIFIED):
            self.conclude(delivery, int(delivery.remote_state))

    # -- transactions

    def on_message(self, event: Any) -> None:
        delivery, message = event.delivery, event.message
        if event.link.target.type == Terminus.COORDINATOR:
            self.control(delivery, message.body)
            return
        address = event.link.remote_target.address or message.address
        if delivery.remote_state != TRANSACTIONAL:
            self.post(event.link.remote_target, message)
            self.accept(delivery)
            return
        txn_id = bytes(delivery.remote.data[0])
        self.works[txn_id].append((delivery, message, address))
        delivery.local.data = [txn_id, Described(ulong(Delivery.ACCEPTED), [])]
        delivery.update(TRANSACTIONAL)

    def control(self, delivery: Any, body: Any) -> None:
        fields = list(body.value)
        if body.descriptor in (ulong(DECLARE), "amqp:declare:list"):
            txn_id = f"txn {self.declared}".encode()
            self.declared += 1
            self.works[txn_id] = []
            delivery.local.data = [txn_id]
            delivery.update(DECLARED)
        else:
            failed = len(fields) > 1 and bool(fields[1])
            self.ended.append("rolled back" if failed else "committed")
            for each, message, what in self.works.pop(bytes(fields[0])):
                if message is None:
                    self.conclude(each, RELEASED if failed else what)
                else:
                    each.settle()
                    if not failed:
                        self.publish(what, message)
            delivery.update(Delivery.ACCEPTED)
        delivery.settle()

    def result(self) -> dict[str, Any]:
        return {
            "left": {address: len(queue) for address, queue in self.queues.items() if queue},
            "ended": self.ended,
            "open": len(self.works),
            "lent": len(self.lent),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["listen"])
    parser.add_argument("--deadline", type=float, default=30.0, help="seconds until it gives up")
    arguments, _ = parser.parse_known_args()
    broker = Broker(arguments)
    Container(broker).run()
    print(json.dumps(broker.result()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
