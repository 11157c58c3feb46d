"""A broker on Qpid Proton, with queues and a coordinator of transactions. Runs under the peers' own venv.

The example broker of Proton 0.40 has no transactions, and no example is in its sdist: this is one of our own, on
Proton's engine and codec. Messages that are posted come into their queue with the commit, outcomes count
from then on, and a rollback puts back what was taken. What is left in the queues is printed at the end, as JSON.
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
ACCEPTED, RELEASED = 0x24, 0x26


class Broker(MessagingHandler):
    """Queues by address, and what transactions hold back, by their ids."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(auto_accept=False)
        self.arguments = arguments
        self.queues: dict[str, deque[Any]] = {}
        self.consumers: dict[str, list[Any]] = {}
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
            self.consumers.setdefault(link.remote_source.address, []).append(link)
        elif link.remote_target.type == Terminus.COORDINATOR:
            link.target.type = Terminus.COORDINATOR

    def on_link_closing(self, event: Any) -> None:
        link = event.link
        if link.is_sender:
            self.consumers[link.remote_source.address].remove(link)

    # -- queues

    def publish(self, address: str, message: Any, *, again: bool = False) -> None:
        queue = self.queues.setdefault(address, deque())
        if again:
            queue.appendleft(message)
        else:
            queue.append(message)
        for consumer in self.consumers.get(address, ()):
            self.dispatch(consumer)

    def dispatch(self, consumer: Any) -> None:
        address = consumer.remote_source.address
        queue = self.queues.get(address, ())
        while queue and consumer.credit:
            message = queue.popleft()
            self.lent[consumer.send(message)] = (address, message)
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
        delivery.settle()
        if outcome == RELEASED:
            self.publish(address, message, again=True)

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if not event.link.is_sender or not delivery.updated or delivery not in self.lent:
            return
        if delivery.remote_state == TRANSACTIONAL:
            txn_id, outcome = delivery.remote.data
            self.works[bytes(txn_id)].append((delivery, None, int(outcome.descriptor)))
        elif delivery.remote_state in (ACCEPTED, RELEASED):
            self.conclude(delivery, int(delivery.remote_state))

    # -- transactions

    def on_message(self, event: Any) -> None:
        delivery, message = event.delivery, event.message
        if event.link.target.type == Terminus.COORDINATOR:
            self.control(delivery, message.body)
            return
        address = event.link.remote_target.address or message.address
        if delivery.remote_state != TRANSACTIONAL:
            self.publish(address, message)
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
