"""Qpid Proton as a client with wishes: a selector on a source, a reply node that is made for it.

Runs under the peers' own venv, never under ours. Arguments: select URL | request URL. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container, Selector


class Select(MessagingHandler):
    """Takes what is green."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.bodies: list[Any] = []

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(self.url, reconnect=False)
        event.container.create_receiver(connection, "colours", options=Selector("colour = 'green'"))

    def on_message(self, event: Any) -> None:
        self.bodies.append(event.message.body)
        if len(self.bodies) == 2:
            print(json.dumps({"bodies": self.bodies}))
            event.connection.close()


class Request(MessagingHandler):
    """Asks, and waits for the reply."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.sent = False

    def on_start(self, event: Any) -> None:
        self.connection = event.container.connect(self.url, reconnect=False)
        self.receiver = event.container.create_receiver(self.connection, None, dynamic=True)

    def on_link_opened(self, event: Any) -> None:
        if event.receiver == self.receiver:
            self.sender = event.container.create_sender(self.connection, "upper")

    def on_sendable(self, event: Any) -> None:
        if not self.sent:
            self.sent = True
            reply_to = self.receiver.remote_source.address
            event.sender.send(Message(body="hello", reply_to=reply_to, correlation_id=7))

    def on_message(self, event: Any) -> None:
        reply = event.message
        said = {"body": reply.body, "correlation_id": int(reply.correlation_id), "dynamic": True}
        print(json.dumps(said))
        event.connection.close()


if __name__ == "__main__":
    kind = {"select": Select, "request": Request}[sys.argv[1]]
    Container(kind(sys.argv[2])).run()
