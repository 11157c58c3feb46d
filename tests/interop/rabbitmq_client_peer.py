"""rabbitmq-amqp-python-client as a client of RabbitMQ 4, or of what stands in for it; a process of its own, one JSON line."""

from __future__ import annotations

import argparse
import datetime
import json
import time
from typing import TYPE_CHECKING, Any

from rabbitmq_amqp_python_client import (
    AddressHelper,
    ClassicQueueSpecification,
    Converter,
    Environment,
    ExchangeSpecification,
    ExchangeToExchangeBindingSpecification,
    ExchangeToQueueBindingSpecification,
    ExchangeType,
    Message,
    QuorumQueueSpecification,
    RecoveryConfiguration,
    ValidationCodeException,
)
from rabbitmq_amqp_python_client.exceptions import AmqpMessageRejectedException
from rabbitmq_amqp_python_client.qpid.proton import Delivery
from rabbitmq_amqp_python_client.qpid.proton.utils import SendException

if TYPE_CHECKING:
    from collections.abc import Callable

Q = "interop a/1 %"
"""A name that has to be encoded."""


class Run:
    """What is done on one connection, and what was seen."""

    def __init__(self, url: str) -> None:
        self.said: dict[str, Any] = {}
        recovery = RecoveryConfiguration(active_recovery=False)
        self.connection = Environment(uri=url, recovery_configuration=recovery).connection()
        self.connection.dial()
        self.management = self.connection.management()

    def fails(self, name: str, call: Callable[[], object]) -> None:
        """What the client makes of a refusal."""
        try:
            self.said[name] = f"no error: {call()}"
        except ValidationCodeException as refusal:
            self.said[name] = str(refusal)

    def publish(self, address: str | None, *bodies: str, to: str | None = None) -> list[str]:
        """The outcome of each."""
        publisher = self.connection.publisher(*([] if address is None else [address]))
        outcomes: list[str] = []
        try:
            for body in bodies:
                message = Message(body=Converter.string_to_bytes(body))
                if to is not None:
                    message = AddressHelper.message_to_address_helper(message, to)
                try:
                    outcomes.append(publisher.publish(message).remote_state.name)
                except AmqpMessageRejectedException:
                    outcomes.append("REJECTED")
                except SendException as refused:
                    outcomes.append("RELEASED" if refused.state == Delivery.RELEASED else str(refused.state))
        finally:
            publisher.close()
        return outcomes

    def consume(self, queue: str, count: int) -> list[Any]:
        """Bodies, with what the broker says of the way of each."""
        consumer = self.connection.consumer(AddressHelper.queue_address(queue))
        found: list[Any] = []
        try:
            for _ in range(count):
                message = consumer._receiver.receive(timeout=10)
                notes = message.annotations or {}
                found.append(
                    [
                        Converter.bytes_to_string(message.body),
                        notes.get("x-exchange"),
                        notes.get("x-routing-key"),
                    ]
                )
                consumer._receiver.accept()
        finally:
            consumer.close()
        return found

    def info(self, queue: str) -> list[Any]:
        info = self.management.queue_info(queue)
        return [
            info.name,
            info.queue_type.name,
            info.is_durable,
            info.is_auto_delete,
            info.is_exclusive,
            info.message_count,
            info.consumer_count,
            dict(sorted(info.arguments.items())),
        ]

    def holds(self, queue: str, count: int) -> int:
        """How many messages a queue says it has, once they are so many, or after a while."""
        for _ in range(50):
            found = self.management.queue_info(queue).message_count
            if found == count:
                break
            time.sleep(0.1)
        return int(found)


def queues(run: Run) -> None:
    management = run.management
    management.declare_queue(ClassicQueueSpecification(name=Q, max_len=3))
    management.declare_queue(ClassicQueueSpecification(name=Q, max_len=3))
    run.said["info"] = run.info(Q)
    run.fails(
        "other arguments", lambda: management.declare_queue(ClassicQueueSpecification(name=Q, max_len=4))
    )
    run.said["sent"] = run.publish(AddressHelper.queue_address(Q), "a", "b", "c", "d")
    run.said["holds"] = run.holds(Q, 3)
    run.said["got"] = [body for body, _, _ in run.consume(Q, 3)]
    run.publish(AddressHelper.queue_address(Q), "x", "y")
    run.said["holds two"] = run.holds(Q, 2)
    run.said["purged"] = management.purge_queue(Q)
    run.said["purged again"] = management.purge_queue(Q)
    management.delete_queue(Q)
    management.delete_queue(Q)
    run.fails("info of none", lambda: management.queue_info(Q))
    run.fails("purge of none", lambda: management.purge_queue(Q))
    run.fails("reserved", lambda: management.declare_queue(ClassicQueueSpecification(name="amq.mine")))
    management.declare_queue(QuorumQueueSpecification(name="interop-quorum"))
    run.said["quorum"] = run.info("interop-quorum")[:5]
    management.delete_queue("interop-quorum")
    limited = ClassicQueueSpecification(
        name="interop-limited", max_len=1, overflow_behaviour="reject-publish"
    )
    management.declare_queue(limited)
    run.said["too much"] = run.publish(AddressHelper.queue_address("interop-limited"), "a", "b", "c")[0::2]
    management.delete_queue("interop-limited")


def exchanges(run: Run) -> None:
    management = run.management
    names = [f"interop-{key}" for key in ("one", "two", "all")]
    for name in names:
        management.declare_queue(ClassicQueueSpecification(name=name))
    kinds = {"direct": ExchangeType.direct, "topic": ExchangeType.topic, "fanout": ExchangeType.fanout}
    for name, kind in kinds.items():
        management.declare_exchange(ExchangeSpecification(name=f"interop {name}", exchange_type=kind))
        management.declare_exchange(ExchangeSpecification(name=f"interop {name}", exchange_type=kind))
    run.fails(
        "other kind",
        lambda: management.declare_exchange(
            ExchangeSpecification(name="interop topic", exchange_type=ExchangeType.fanout)
        ),
    )
    bindings = [
        ("interop direct", "interop-one", "one"),
        ("interop direct", "interop-two", "two"),
        ("interop topic", "interop-one", "*.one"),
        ("interop topic", "interop-two", "#.two.#"),
        ("interop fanout", "interop-one", None),
        ("interop fanout", "interop-two", None),
    ]
    paths = [
        management.bind(
            ExchangeToQueueBindingSpecification(source_exchange=s, destination_queue=d, binding_key=k)
        )
        for s, d, k in bindings
    ]
    management.bind(
        ExchangeToExchangeBindingSpecification(
            source_exchange="interop topic", destination_exchange="interop fanout", binding_key="both"
        )
    )
    run.fails(
        "no exchange",
        lambda: management.bind(
            ExchangeToQueueBindingSpecification(
                source_exchange="nowhere", destination_queue=names[0], binding_key=""
            )
        ),
    )
    at = AddressHelper.exchange_address
    run.said["outcomes"] = [
        run.publish(at("interop direct", key), f"direct {key}")[0] for key in ("one", "two", "three")
    ] + [
        run.publish(at("interop topic", key), key)[0]
        for key in ("a.one", "a.two.b", "two", "a.b.one", "both")
    ]
    run.said["fanout"] = run.publish(at("interop fanout"), "to all")
    run.said["anonymous"] = run.publish(None, "by to", to=at("interop direct", "one"))
    run.said["straight"] = run.publish(None, "straight", to=AddressHelper.queue_address("interop-all"))
    run.said["one"] = run.consume("interop-one", 5)
    run.said["two"] = run.consume("interop-two", 5)
    run.said["all"] = [body for body, _, _ in run.consume("interop-all", 1)]
    management.unbind(paths[0])
    run.said["unbound"] = run.publish(at("interop direct", "one"), "gone")
    for name in kinds:
        management.delete_exchange(f"interop {name}")
    for name in names:
        management.delete_queue(name)


def deaths(run: Run) -> None:
    management = run.management
    management.declare_exchange(ExchangeSpecification(name="interop dlx"))
    management.declare_queue(ClassicQueueSpecification(name="interop-dead"))
    management.bind(
        ExchangeToQueueBindingSpecification(
            source_exchange="interop dlx", destination_queue="interop-dead", binding_key="dead"
        )
    )

    management.declare_queue(
        ClassicQueueSpecification(
            name="interop-brief",
            message_ttl=datetime.timedelta(milliseconds=300),
            dead_letter_exchange="interop dlx",
            dead_letter_routing_key="dead",
        )
    )
    run.publish(AddressHelper.queue_address("interop-brief"), "late")
    run.said["dead"] = [body for body, _, _ in run.consume("interop-dead", 1)]
    run.said["left"] = run.holds("interop-brief", 0)
    for name in ("interop-brief", "interop-dead"):
        management.delete_queue(name)
    management.delete_exchange("interop dlx")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    run = Run(parser.parse_args().url)
    for part in (queues, exchanges, deaths):
        part(run)
    run.management.close()
    run.connection.close()
    print(json.dumps(run.said))


if __name__ == "__main__":
    main()
