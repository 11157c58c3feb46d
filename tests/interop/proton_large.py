"""Qpid Proton with one large message: ``send`` it in blocks, or ``listen`` for it. Runs under the peers' own venv.

``--count`` is its size in octets. Both print JSON, as ``proton_peer.py`` does: the size, and the SHA-256 of the body.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from typing import Any

from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton_listening import Stop, listen

BLOCK = 256 * 1024
SECTION = b"\x00\x53\x75\xb0"
"""A data section of four octets of size, and that many more."""


def block(number: int) -> bytes:
    """No two blocks are alike, so that none can be lost, doubled or changed for another unseen."""
    return hashlib.sha256(number.to_bytes(4, "big")).digest() * (BLOCK // 32)


class Peer(MessagingHandler):
    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(auto_accept=False, prefetch=1)
        self.arguments = arguments
        self.sha = hashlib.sha256()
        self.size = 0
        self.outcome = ""

    def on_start(self, event: Any) -> None:
        event.container.schedule(self.arguments.deadline, Stop(event.container))

    def add(self, octets: bytes) -> None:
        self.sha.update(octets)
        self.size += len(octets)

    def result(self) -> dict[str, Any]:
        return {"size": self.size, "sha256": self.sha.hexdigest(), "outcome": self.outcome}


class Send(Peer):
    def on_start(self, event: Any) -> None:
        super().on_start(event)
        self.container = event.container
        self.delivery: Any = None
        self.begun = 0
        connection = event.container.connect(self.arguments.url, reconnect=False)
        event.container.create_sender(connection, self.arguments.address)

    def on_sendable(self, event: Any) -> None:
        if self.delivery is None:
            self.sender = event.sender
            self.delivery = self.sender.delivery("large")
            self.sender.stream(SECTION + self.arguments.count.to_bytes(4, "big"))
            self.more()

    def more(self) -> None:
        """A few blocks at a time, as long as Proton has put the last ones on their way."""
        while self.size < self.arguments.count and self.delivery.pending < 4 * BLOCK:
            octets = block(self.begun)[: self.arguments.count - self.size]
            self.begun += 1
            self.add(octets)
            self.sender.stream(octets)
        if self.size < self.arguments.count:
            self.container.schedule(0.001, Again(self))
        else:
            self.sender.advance()

    def on_accepted(self, event: Any) -> None:
        self.outcome = "accepted"
        event.connection.close()

    def on_rejected(self, event: Any) -> None:
        self.outcome = "rejected"
        event.connection.close()

    def on_connection_closed(self, event: Any) -> None:
        event.container.stop()


class Again:
    def __init__(self, send: Send) -> None:
        self.send = send

    def on_timer_task(self, event: Any) -> None:
        self.send.more()


class Listen(Peer):
    def on_start(self, event: Any) -> None:
        super().on_start(event)
        listen(event.container)

    def on_link_opening(self, event: Any) -> None:
        event.link.target.copy(event.link.remote_target)

    def on_message(self, event: Any) -> None:
        self.add(bytes(event.message.body))
        self.outcome = "accepted"
        self.accept(event.delivery)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["send", "listen"])
    parser.add_argument("--url", help="amqp://host:port")
    parser.add_argument("--address")
    parser.add_argument("--count", type=int, default=0, help="octets")
    parser.add_argument("--deadline", type=float, default=60.0, help="seconds until it gives up")
    arguments, _ = parser.parse_known_args()
    peer: Any = {"send": Send, "listen": Listen}[arguments.mode](arguments)
    Container(peer).run()
    print(json.dumps(peer.result()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
