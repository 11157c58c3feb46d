"""Qpid Proton as one side, or its codec alone. Runs in the peers' own environment, never in ours."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, Any

from lines import Span, go, read_job, tell
from proton import Endpoint, Message, SSLDomain, Url
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container

if TYPE_CHECKING:
    from types import SimpleNamespace


def make(job: SimpleNamespace, body: bytes, number: int) -> Message:
    """Message number n, anew."""
    if job.message == "bytes":
        return Message(body=body, inferred=True)
    if job.message == "id":
        return Message(body=body, inferred=True, id=number)
    return Message(
        body=body,
        inferred=True,
        durable=job.durable,
        id=number,
        address="orders",
        subject="order",
        reply_to="replies",
        correlation_id=f"c-{number}",
        content_type="application/octet-stream",
        properties={"number": number, "region": "north", "urgent": True},
    )


def read(job: SimpleNamespace, message: Message) -> Any:
    """What a program would read."""
    if job.message == "bytes":
        return len(message.body)
    if job.message == "id":
        return message.body, message.id
    return message.body, message.id, message.properties["number"]


class Side(MessagingHandler):
    def __init__(self, job: SimpleNamespace) -> None:
        super().__init__(prefetch=job.credit, auto_accept=True)
        self.job = job
        self.body = bytes(job.size)
        self.sent = self.done = 0
        self.span: Span | None = None
        self.result: dict[str, float] = {}

    def finish(self) -> None:
        assert self.span is not None
        self.result = self.span.end(self.job.count)

    def on_transport_error(self, event: Any) -> None:
        if not self.result:
            sys.stderr.write(f"proton: {event.transport.condition}\n")
            event.container.stop()


class Send(Side):
    """Dials and sends; the span ends when every outcome is known, or what was sent settled is read."""

    def on_start(self, event: Any) -> None:
        url, domain = self.job.url, None
        if self.job.cafile:
            url = url.replace("127.0.0.1", "localhost")  # Proton looks for no addresses in a certificate
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(self.job.cafile)
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        connection = event.container.connect(Url(url), reconnect=False, ssl_domain=domain)
        options = AtMostOnce() if self.job.guarantee == "at-most-once" else AtLeastOnce()
        event.container.create_sender(connection, self.job.address, options=options)

    def on_sendable(self, event: Any) -> None:
        if self.span is None:
            go()
            self.span = Span()
        while event.sender.credit and self.sent < self.job.count:
            event.sender.send(make(self.job, self.body, self.sent))
            self.sent += 1
        if self.job.guarantee == "at-most-once" and self.sent == self.job.count:
            event.sender.close()

    def on_accepted(self, event: Any) -> None:
        self.done += 1
        if self.done == self.job.count:
            self.finish()
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
        if self.job.certfile:
            scheme, domain = "amqps", SSLDomain(SSLDomain.MODE_SERVER)
            domain.set_credentials(self.job.certfile, self.job.certfile, None)
        self.acceptor = event.container.listen(f"{scheme}://127.0.0.1:{port}", ssl_domain=domain)
        tell(url=f"{scheme}://127.0.0.1:{port}")

    def on_link_opening(self, event: Any) -> None:
        event.link.target.copy(event.link.remote_target)
        event.link.source.copy(event.link.remote_source)

    def on_message(self, event: Any) -> None:
        self.span = self.span or Span()
        read(self.job, event.message)
        self.done += 1
        if self.done == self.job.count:
            self.finish()

    def on_connection_closed(self, event: Any) -> None:
        if event.connection.state & Endpoint.LOCAL_ACTIVE:
            event.connection.close()
        self.acceptor.close()
        event.container.stop()


def codec(job: SimpleNamespace) -> dict[str, float]:
    """Microseconds to make and encode a message, and to decode all of one, each with its own ids."""
    body = bytes(job.size)
    made = Span()
    for number in range(job.count):
        make(job, body, number).encode()
    encoded = made.end(job.count)["us"]
    payloads = [make(job, body, number).encode() for number in range(job.count)]
    read_span = Span()
    for octets in payloads:
        message = Message()
        message.decode(octets)
        _ = (message.durable, message.id, message.address, message.subject, message.reply_to)
        _ = (message.correlation_id, message.content_type, message.properties, message.body)
    return {"make and encode us": encoded, "decode us": read_span.end(job.count)["us"]}


def main() -> None:
    job = read_job()
    if job.role == "codec":
        tell(result=codec(job))
        return
    handler = Send(job) if job.role == "send" else Receive(job)
    Container(handler).run()
    tell(result=handler.result)


if __name__ == "__main__":
    main()
