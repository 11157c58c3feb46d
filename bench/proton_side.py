"""Qpid Proton as one side of a measurement. Runs under the peers' own environment, never under ours.

Takes the same JSON and tells the same lines as ``trio_amqp10.cli.bench_processes``, so that either can be
at either end.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from typing import Any

from proton import Endpoint, Message, SSLDomain, Url
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container


def tell(**items: Any) -> None:
    print(json.dumps(items), flush=True)


class Span:
    """Wall and processor time between two moments, for so many messages."""

    def __init__(self) -> None:
        self.wall = time.perf_counter()
        self.cpu = time.process_time()

    def end(self, count: int) -> dict[str, float]:
        wall = time.perf_counter() - self.wall
        cpu = time.process_time() - self.cpu
        return {"messages_per_second": count / wall, "cpu_us": cpu / count * 1e6}


class Side(MessagingHandler):
    def __init__(self, side: dict[str, Any]) -> None:
        super().__init__(prefetch=side["credit"], auto_accept=True)
        self.side = side
        self.count: int = side["count"]
        self.done = 0
        self.span: Span | None = None
        self.result: dict[str, float] = {}

    def finish(self) -> None:
        assert self.span is not None
        self.result = self.span.end(self.count)

    def on_transport_error(self, event: Any) -> None:
        if not self.result:
            sys.stderr.write(f"proton: {event.transport.condition}\n")
            event.container.stop()


class Send(Side):
    """Dials and sends; the span ends when every outcome is known, or what was sent settled is read."""

    def __init__(self, side: dict[str, Any]) -> None:
        super().__init__(side)
        self.message = Message(body=bytes(side["size"]), inferred=True)
        self.sent = 0

    def on_start(self, event: Any) -> None:
        url, domain = self.side["url"], None
        if self.side["cafile"]:
            url = url.replace("127.0.0.1", "localhost")  # Proton looks for no addresses in a certificate
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(self.side["cafile"])
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        connection = event.container.connect(Url(url), reconnect=False, ssl_domain=domain)
        options = AtMostOnce() if self.side["presettled"] else AtLeastOnce()
        event.container.create_sender(connection, self.side["address"], options=options)

    def on_sendable(self, event: Any) -> None:
        self.span = self.span or Span()
        while event.sender.credit and self.sent < self.count:
            event.sender.send(self.message)
            self.sent += 1
        if self.side["presettled"] and self.sent == self.count:
            event.sender.close()

    def on_accepted(self, event: Any) -> None:
        self.done += 1
        if self.done == self.count:
            event.sender.close()

    def on_link_closed(self, event: Any) -> None:
        if not self.result:
            self.finish()
            event.connection.close()


class Receive(Side):
    """Listens on a free port; the span runs from the first message to the last."""

    def on_start(self, event: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        scheme, domain = "amqp", None
        if self.side["certfile"]:
            scheme, domain = "amqps", SSLDomain(SSLDomain.MODE_SERVER)
            domain.set_credentials(self.side["certfile"], self.side["certfile"], None)
        self.acceptor = event.container.listen(f"{scheme}://127.0.0.1:{port}", ssl_domain=domain)
        tell(url=f"{scheme}://127.0.0.1:{port}")

    def on_link_opening(self, event: Any) -> None:
        event.link.target.copy(event.link.remote_target)
        event.link.source.copy(event.link.remote_source)

    def on_message(self, event: Any) -> None:
        self.span = self.span or Span()
        len(event.message.body)
        self.done += 1
        if self.done == self.count:
            self.finish()

    def on_connection_closed(self, event: Any) -> None:
        if event.connection.state & Endpoint.LOCAL_ACTIVE:
            event.connection.close()
        self.acceptor.close()
        event.container.stop()


def main() -> None:
    side = json.loads(sys.argv[1])
    handler = Send(side) if side["role"] == "send" else Receive(side)
    Container(handler).run()
    tell(result=handler.result)


if __name__ == "__main__":
    main()
