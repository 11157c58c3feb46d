"""Qpid Proton as a peer: send, receive, or listen. Runs under the peers' own venv, never under ours.

Prints JSON, one object a line: a listener ``{"port": ...}`` once it is ready, every mode its result at the
end. A listener takes any address as a queue, and gives out the corpus on ``generate-COUNT-SEED``; SIGTERM
or the deadline end it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import deque
from typing import Any

from corpus import Digest, Item, corpus, corpus_digest
from proton import Disposition, Endpoint, Message, SSLDomain, Url
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container
from proton_listening import listen


def to_message(one: Item) -> Message:
    # ``inferred`` makes a binary body a data section rather than an amqp-value (3.2.6).
    return Message(
        id=one.message_id, properties=one.properties, body=one.body, inferred=isinstance(one.body, bytes)
    )


def add_to(digest: Digest, message: Message) -> None:
    """Counted here and now: a binary body is a view of memory that the message owns."""
    digest.add(message.id, plain(message.properties), plain(message.body))


def plain(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


class Peer(MessagingHandler):
    """What all modes share: the deadline, the result, and errors that end the program."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(prefetch=arguments.credit, auto_accept=True)
        self.arguments = arguments
        self.container: Container | None = None
        self.failure: str | None = None

    def on_start(self, event: Any) -> None:
        self.container = event.container
        event.container.schedule(self.arguments.deadline, self)

    def on_timer_task(self, event: Any) -> None:
        self.fail(f"not finished after {self.arguments.deadline} s")

    def fail(self, reason: str) -> None:
        self.failure = self.failure or reason
        assert self.container is not None
        self.container.stop()

    def on_transport_error(self, event: Any) -> None:
        self.fail(f"transport: {event.transport.condition}")

    def on_connection_error(self, event: Any) -> None:
        self.fail(f"connection: {event.connection.remote_condition}")

    def on_session_error(self, event: Any) -> None:
        self.fail(f"session: {event.session.remote_condition}")

    def on_link_error(self, event: Any) -> None:
        self.fail(f"link: {event.link.remote_condition}")

    def result(self) -> dict[str, Any]:
        raise NotImplementedError

    def connect(self, event: Any) -> Any:
        arguments = self.arguments
        options: dict[str, Any] = {}
        if arguments.cafile:
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(arguments.cafile)
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
            if arguments.certfile:
                domain.set_credentials(arguments.certfile, arguments.certfile, None)
            options["ssl_domain"] = domain
        if arguments.user:
            options |= {"user": arguments.user, "password": arguments.password}
        if arguments.mechanism:
            options["allowed_mechs"] = arguments.mechanism
        return event.container.connect(
            Url(arguments.url),
            reconnect=False,
            heartbeat=20,
            max_frame_size=arguments.max_frame_size or None,
            **options,
        )

    def on_link_closed(self, event: Any) -> None:
        event.connection.close()  # the peer has answered our detach, so it has seen all that went before it

    def on_link_remote_detach(self, event: Any) -> None:
        event.connection.close()  # RabbitMQ 3 answers a closing detach with one that does not close

    def on_connection_closed(self, event: Any) -> None:
        event.container.stop()


class Send(Peer):
    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        self.items = corpus(arguments.seed, arguments.count)
        self.sent = self.settled = 0
        self.outcomes: dict[str, int] = {}

    def on_start(self, event: Any) -> None:
        super().on_start(event)
        options = AtMostOnce() if self.arguments.presettled else AtLeastOnce()
        event.container.create_sender(self.connect(event), self.arguments.address, options=options)

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self.sent < self.arguments.count:
            event.sender.send(to_message(next(self.items)))
            self.sent += 1
        if self.arguments.presettled and self.sent == self.arguments.count:
            event.sender.close()

    def on_accepted(self, event: Any) -> None:
        self.count("accepted", event)

    def on_rejected(self, event: Any) -> None:
        self.count("rejected", event)

    def on_released(self, event: Any) -> None:
        self.count("released", event)

    def count(self, outcome: str, event: Any) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.settled += 1
        if self.settled == self.arguments.count and not self.arguments.presettled:
            event.sender.close()

    def result(self) -> dict[str, Any]:
        digest = corpus_digest(self.arguments.seed, self.sent)
        return {"sent": self.sent, "outcomes": self.outcomes, "digest": digest}


class Receive(Peer):
    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        self.digest = Digest()
        self.settled = 0

    def on_start(self, event: Any) -> None:
        super().on_start(event)
        options = AtMostOnce() if self.arguments.presettled else AtLeastOnce()
        event.container.create_receiver(self.connect(event), self.arguments.address, options=options)

    def on_message(self, event: Any) -> None:
        if self.digest.count == self.arguments.count:
            return  # a queue with more in it: not ours to count
        add_to(self.digest, event.message)
        self.settled += event.delivery.settled
        if self.digest.count == self.arguments.count:
            event.receiver.close()

    def result(self) -> dict[str, Any]:
        return {
            "received": self.digest.count,
            "settled": self.settled,
            "digest": self.digest.hexdigest(),
        }


class Listen(Peer):
    """A container of queues; what it reports is what came in, address by address."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        super().__init__(arguments)
        self.queues: dict[str, deque[Message]] = {}
        self.digests: dict[str, Digest] = {}
        self.settled: dict[str, int] = {}
        self.given: dict[str, int] = {}
        self.outcomes: dict[str, dict[str, int]] = {}
        self.senders: dict[str, list[Any]] = {}
        self.sources: dict[Any, Any] = {}

    def on_start(self, event: Any) -> None:
        super().on_start(event)
        if self.arguments.certfile:
            domain = event.container.ssl.server
            domain.set_credentials(self.arguments.certfile, self.arguments.certfile, None)
            if self.arguments.cafile:
                domain.set_trusted_ca_db(self.arguments.cafile)
                domain.set_peer_authentication(SSLDomain.VERIFY_PEER, self.arguments.cafile)
            listen(event.container, "amqps")
        else:
            listen(event.container)

    def on_connection_bound(self, event: Any) -> None:
        sasl = event.transport.sasl()
        sasl.allow_insecure_mechs = True
        if self.arguments.sasl_config:
            sasl.config_path(self.arguments.sasl_config)
            event.transport.require_auth(True)
        if self.arguments.mechanism:
            sasl.allowed_mechs(self.arguments.mechanism)
        if self.arguments.max_frame_size:
            event.transport.max_frame_size = self.arguments.max_frame_size

    def on_transport_error(self, event: Any) -> None:
        pass  # a client that leaves is no failure of the listener

    def on_connection_closed(self, event: Any) -> None:
        pass

    def on_link_closed(self, event: Any) -> None:
        pass

    def on_link_remote_detach(self, event: Any) -> None:
        event.link.detach()

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.snd_settle_mode = link.remote_snd_settle_mode
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        if link.is_sender:
            address = link.remote_source.address
            if address.startswith("generate-"):
                _, count, seed = address.split("-")
                self.sources[link] = (to_message(one) for one in corpus(int(seed), int(count)))
            self.senders.setdefault(address, []).append(link)

    def on_sendable(self, event: Any) -> None:
        self.pump(event.sender)

    def pump(self, sender: Any) -> None:
        address = sender.remote_source.address
        while sender.credit and sender.state & Endpoint.LOCAL_ACTIVE:
            if sender in self.sources:
                message = next(self.sources[sender], None)
            else:
                waiting = self.queues.get(address)
                message = waiting.popleft() if waiting else None
            if message is None:
                return
            sender.send(message)
            self.given[address] = self.given.get(address, 0) + 1

    def on_message(self, event: Any) -> None:
        address = event.receiver.remote_target.address
        message = event.message
        add_to(self.digests.setdefault(address, Digest()), message)
        self.settled[address] = self.settled.get(address, 0) + event.delivery.settled
        if isinstance(message.body, memoryview):
            message.body = bytes(message.body)
        self.queues.setdefault(address, deque()).append(message)
        for sender in self.senders.get(address, []):
            self.pump(sender)

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if delivery.link.is_sender and delivery.updated:
            name = "accepted" if delivery.remote_state == Disposition.ACCEPTED else str(delivery.remote_state)
            mine = self.outcomes.setdefault(delivery.link.remote_source.address, {})
            mine[name] = mine.get(name, 0) + 1

    def on_link_closing(self, event: Any) -> None:
        for links in self.senders.values():
            if event.link in links:
                links.remove(event.link)

    def result(self) -> dict[str, Any]:
        return {
            "received": {a: d.count for a, d in self.digests.items()},
            "digests": {a: d.hexdigest() for a, d in self.digests.items()},
            "settled": self.settled,
            "sent": self.given,
            "outcomes": self.outcomes,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["send", "receive", "listen"])
    parser.add_argument("--url", help="amqp://[user:password@]host:port")
    parser.add_argument("--address")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--presettled", action="store_true")
    parser.add_argument("--credit", type=int, default=100)
    parser.add_argument(
        "--cafile", help="authorities to believe, in PEM; a listener asks for certificates then"
    )
    parser.add_argument(
        "--certfile", help="our own certificate with its key, in PEM; a listener has TLS then"
    )
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--sasl-config", help="a listener's folder with proton-server.conf, for Cyrus SASL")
    parser.add_argument("--mechanism", help="the only one to use")
    parser.add_argument("--max-frame-size", type=int, default=0)
    parser.add_argument("--deadline", type=float, default=60.0, help="seconds until it gives up")
    arguments = parser.parse_args()
    peer = {"send": Send, "receive": Receive, "listen": Listen}[arguments.mode](arguments)
    Container(peer).run()
    print(json.dumps({**peer.result(), **({"error": peer.failure} if peer.failure else {})}), flush=True)
    return 1 if peer.failure else 0


if __name__ == "__main__":
    sys.exit(main())
