"""Qpid Proton as the controller of transactions, or as a coordinator. Runs under the peers' own venv, never under ours.

``control`` takes a message from ``in``, does work in a transaction that it aborts, and the same again in
one that it commits. ``coordinate`` listens: it holds back what is posted, and applies outcomes, until a
discharge. Both print JSON, as ``proton_peer.py`` does.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from proton import Delivery, Described, Message, Terminus, Url, ulong
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container
from proton_listening import Stop, listen

DECLARED, TRANSACTIONAL = 0x33, 0x34


class Control(MessagingHandler, TransactionHandler):
    """Work, abort, work again, commit."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(prefetch=1, auto_accept=False)
        self.arguments = arguments
        self.said: list[str] = []
        self.transaction: Any = None
        self.delivery: Any = None

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.container.schedule(self.arguments.deadline, self)
        self.connection = self.container.connect(Url(self.arguments.url), reconnect=False)
        self.receiver = self.container.create_receiver(self.connection, "in")
        self.sender = self.container.create_sender(self.connection, "out")
        self.container.declare_transaction(self.connection, handler=self)

    def on_timer_task(self, event: Any) -> None:
        self.said.append("timed out")
        self.container.stop()

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.work()

    def on_message(self, event: Any) -> None:
        self.delivery = event.delivery
        self.said.append(f"got {event.message.body}")
        self.work()

    def work(self) -> None:
        if self.transaction is None or self.delivery is None:
            return
        transaction, delivery = self.transaction, self.delivery
        self.transaction = self.delivery = None
        first = "aborted" not in self.said
        for number in range(3):
            transaction.send(self.sender, Message(f"{'never' if first else 'once'} {number}"))
        transaction.accept(delivery)
        if first:
            transaction.abort()
        else:
            transaction.commit()

    def on_transaction_aborted(self, event: Any) -> None:
        self.said.append("aborted")
        self.receiver.flow(1)
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_committed(self, event: Any) -> None:
        self.said.append("committed")
        self.connection.close()

    def on_transaction_commit_failed(self, event: Any) -> None:
        self.said.append("failed")
        self.connection.close()

    def on_connection_closed(self, event: Any) -> None:
        self.container.stop()

    def result(self) -> dict[str, Any]:
        return {"said": self.said}


class Coordinate(MessagingHandler):
    """One message on ``in``, and whatever is committed."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(auto_accept=False)
        self.arguments = arguments
        self.works: dict[bytes, list[tuple[Any, str]]] = {}
        self.done: list[str] = []
        self.undone: list[str] = []

    def on_start(self, event: Any) -> None:
        event.container.schedule(self.arguments.deadline, Stop(event.container))
        listen(event.container)

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if link.is_receiver and link.remote_target.type == Terminus.COORDINATOR:
            link.target.type = Terminus.COORDINATOR

    def on_sendable(self, event: Any) -> None:
        if not getattr(event.sender, "used", False):
            event.sender.used = True
            event.sender.send(Message("in"))

    def on_message(self, event: Any) -> None:
        delivery, body = event.delivery, event.message.body
        if event.link.target.type == Terminus.COORDINATOR:
            self.control(delivery, body)
        elif delivery.remote_state == TRANSACTIONAL:
            txn_id = bytes(delivery.remote.data[0])
            self.works[txn_id].append((delivery, f"posted {body}"))
            delivery.local.data = [txn_id, Described(ulong(Delivery.ACCEPTED), [])]
            delivery.update(TRANSACTIONAL)

    def control(self, delivery: Any, body: Any) -> None:
        if body.descriptor == ulong(0x31) or body.descriptor == "amqp:declare:list":
            txn_id = f"txn {len(self.works)}".encode()
            self.works[txn_id] = []
            delivery.local.data = [txn_id]
            delivery.update(DECLARED)
        else:
            fields = list(body.value)
            work = self.works[bytes(fields[0])]
            failed = len(fields) > 1 and bool(fields[1])
            for each, what in work:
                (self.undone if failed else self.done).append(what)
                if not failed:
                    each.settle()
            delivery.update(Delivery.ACCEPTED)
        delivery.settle()

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if event.link.is_sender and delivery.updated:
            if delivery.remote_state == TRANSACTIONAL:
                txn_id = bytes(delivery.remote.data[0])
                self.works[txn_id].append((delivery, "accepted in"))
            elif delivery.settled:
                released = delivery.remote_state == Delivery.RELEASED
                self.undone.append("settled, released" if released else "settled otherwise")
                delivery.settle()

    def result(self) -> dict[str, Any]:
        return {"done": self.done, "undone": self.undone}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["control", "listen"])
    parser.add_argument("--url", help="amqp://host:port")
    parser.add_argument("--deadline", type=float, default=30.0, help="seconds until it gives up")
    arguments, _ = parser.parse_known_args()
    peer: Any = Control(arguments) if arguments.mode == "control" else Coordinate(arguments)
    Container(peer).run()
    print(json.dumps(peer.result()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
