"""azure-servicebus as a client of a container that stands in for the service; a process of its own, one JSON line.

Its development emulator is dialled without TLS, at the port that is given; with ``--cafile``, the service over a WebSocket.
Every connection begins with a token at ``$cbs``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from typing import Any

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    OperationTimeoutError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    SessionCannotBeLockedError,
)
from azure_namespace import dialling

QUEUE = "orders"


def client(
    options: argparse.Namespace, *, key: str | None = None, name: str | None = None
) -> ServiceBusClient:
    text, more = dialling(options, name, key)
    return ServiceBusClient.from_connection_string(text, retry_total=0, **more)


def exchange(options: argparse.Namespace) -> dict[str, Any]:
    """Send, receive and complete so many."""
    got: list[str] = []
    with client(options) as connection:
        with connection.get_queue_sender(QUEUE) as sender:
            for number in range(options.count):
                message = ServiceBusMessage(f"message {number}", message_id=str(number))
                sender.send_messages(message)
        with connection.get_queue_receiver(QUEUE, max_wait_time=5) as receiver:
            while len(got) < options.count:
                for message in receiver.receive_messages(max_message_count=10, max_wait_time=5):
                    got.append(str(message))
                    receiver.complete_message(message)
    return {"got": got}


def refused(options: argparse.Namespace) -> dict[str, Any]:
    """Try with a wrong key, and to receive with a key that only sends."""
    said: dict[str, Any] = {}
    for case, other in (("wrong key", {"key": "d3Jvbmc="}), ("sends only", {})):
        try:
            with client(options, **other) as connection, connection.get_queue_receiver(QUEUE):
                said[case] = "was let in"
        except (ServiceBusAuthenticationError, ServiceBusAuthorizationError) as refusal:
            said[case] = type(refusal).__name__
    return said


def settle(options: argparse.Namespace) -> dict[str, Any]:
    """Settle in every way, look, schedule, renew; take from the dead-letter queue, a subscription and sessions."""
    said: dict[str, Any] = {}
    with client(options) as connection:
        _settle_all(connection, said)
        _schedule(connection, said)
        if not options.cafile:
            _expire(connection, said)
        _subscribe(connection, said)
        _have_sessions(connection, said)
    return said


def _settle_all(connection: ServiceBusClient, said: dict[str, Any]) -> None:
    names = ["complete", "abandon", "dead", "defer", "renew"]
    with connection.get_queue_sender(QUEUE) as sender:
        sender.send_messages([ServiceBusMessage(name, message_id=name) for name in names])
    with connection.get_queue_receiver(QUEUE, max_wait_time=2) as receiver:
        said["peeked"] = [str(message) for message in receiver.peek_messages(10)]
        got = {str(message): message for message in receiver.receive_messages(5, max_wait_time=2)}
        said["received"] = [[name, got[name].sequence_number, got[name].delivery_count] for name in names]
        receiver.complete_message(got["complete"])
        receiver.abandon_message(got["abandon"])
        receiver.dead_letter_message(got["dead"], reason="bad", error_description="sour")
        receiver.defer_message(got["defer"])
        before = got["renew"].locked_until_utc
        time.sleep(0.01)
        said["renewed"] = receiver.renew_message_lock(got["renew"]) > before
        receiver.complete_message(got["renew"])
        [deferred] = receiver.receive_deferred_messages(got["defer"].sequence_number)
        said["deferred"] = [str(deferred), deferred.state.name]
        receiver.complete_message(deferred)
        [again] = receiver.receive_messages(5, max_wait_time=2)
        said["again"] = [str(again), again.delivery_count]
        receiver.complete_message(again)
        try:
            receiver.receive_deferred_messages(77)
        except MessageNotFoundError:
            said["unknown number"] = "MessageNotFoundError"
    with connection.get_queue_receiver(QUEUE, sub_queue="deadletter", max_wait_time=2) as receiver:
        [dead] = receiver.receive_messages(5, max_wait_time=2)
        said["dead"] = [str(dead), dead.dead_letter_reason, dead.dead_letter_error_description]
        receiver.complete_message(dead)


def _schedule(connection: ServiceBusClient, said: dict[str, Any]) -> None:
    due = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)
    with connection.get_queue_sender(QUEUE) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage("later"), ServiceBusMessage("never")], due)
        sender.cancel_scheduled_messages(numbers[1])
    with connection.get_queue_receiver(QUEUE, max_wait_time=5) as receiver:
        [message] = receiver.receive_messages(2, max_wait_time=5)
        said["scheduled"] = [str(message), datetime.datetime.now(datetime.UTC) >= due]
        receiver.complete_message(message)


def _expire(connection: ServiceBusClient, said: dict[str, Any]) -> None:
    """The lock ends before the settlement: by our clock, and by the service's, which a client on uamqp does not hear of."""
    with connection.get_queue_sender("short") as sender:
        sender.send_messages(ServiceBusMessage("tea"))
    lost: list[str] = []
    with connection.get_queue_receiver("short", max_wait_time=5) as receiver:
        for trusts_clock in (True, False):
            [message] = receiver.receive_messages(1, max_wait_time=5)
            if not trusts_clock:
                message._expiry = datetime.datetime.max.replace(tzinfo=datetime.UTC)
            time.sleep(1.2)
            try:
                receiver.complete_message(message)
            except MessageLockLostError as refusal:
                lost.append(type(refusal).__name__)
        [message] = receiver.receive_messages(1, max_wait_time=5)
        receiver.complete_message(message)
        said["lock lost"] = [*lost, message.delivery_count]


def _subscribe(connection: ServiceBusClient, said: dict[str, Any]) -> None:
    with connection.get_topic_sender("prices") as sender:
        sender.send_messages(ServiceBusMessage("oil"))
    for name in ("one", "two"):
        with connection.get_subscription_receiver(
            "prices", name, receive_mode="receiveanddelete", max_wait_time=2
        ) as receiver:
            said[name] = [str(message) for message in receiver]


def _have_sessions(connection: ServiceBusClient, said: dict[str, Any]) -> None:
    with connection.get_queue_sender("sessions") as sender:
        for name in ("x", "y"):
            sender.send_messages(ServiceBusMessage(f"for {name}", session_id=name))
    with connection.get_queue_receiver("sessions", session_id="y", max_wait_time=1) as receiver:
        receiver.session.set_state(b"state")
        said["session"] = [receiver.session.session_id, receiver.session.get_state().decode()]
        said["session renewed"] = receiver.session.renew_lock() > datetime.datetime.now(datetime.UTC)
        [message] = receiver.receive_messages(5, max_wait_time=1)
        said["of y"] = [str(message), message.session_id]
        receiver.complete_message(message)
        try:
            connection.get_queue_receiver("sessions", session_id="y").receive_messages(1, max_wait_time=1)
        except SessionCannotBeLockedError as refusal:
            said["locked session"] = type(refusal).__name__
        with connection.get_queue_receiver(
            "sessions", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1
        ) as other:
            said["next session"] = [other.session.session_id, [str(message) for message in other]]
    with connection.get_queue_receiver("sessions", session_id="x", max_wait_time=1) as receiver:
        for message in receiver:
            receiver.complete_message(message)
    if not hasattr(connection, "list_queue_sessions"):
        return  # a client on uamqp: it would wait a minute for the next session
    said["sessions"] = list(connection.list_queue_sessions("sessions"))
    try:
        with connection.get_queue_receiver("sessions", session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1):
            pass
    except OperationTimeoutError as refusal:
        said["no session"] = type(refusal).__name__


MODES = {"exchange": exchange, "refused": refused, "settle": settle}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--cafile")
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps(MODES[options.mode](options)))


if __name__ == "__main__":
    main()
