"""azure-servicebus as a client of a container that stands in for the service; a process of its own, one JSON line.

Its development emulator is dialled without TLS, at the port that is given. Every connection begins with a token at ``$cbs``.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusAuthorizationError

QUEUE = "orders"


def client(
    options: argparse.Namespace, *, key: str | None = None, name: str | None = None
) -> ServiceBusClient:
    settings = {
        "Endpoint": f"sb://127.0.0.1:{options.port}",
        "SharedAccessKeyName": name or options.name,
        "SharedAccessKey": key or options.key,
        "UseDevelopmentEmulator": "true",
    }
    text = "".join(f"{name}={value};" for name, value in settings.items())
    return ServiceBusClient.from_connection_string(text, retry_total=0)


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["exchange", "refused"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps((exchange if options.mode == "exchange" else refused)(options)))


if __name__ == "__main__":
    main()
