"""The table of clients: which are tried, in what, and what is known not to work with any of them, and why.

``test_clients`` holds each cell, with a container and with RabbitMQ 4; ``page`` writes the table into the manual. Knows no process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SCENARIOS: Final[dict[str, str]] = {
    "with_password": "connects with a user's password, and closes",
    "without_password": "connects without one: ANONYMOUS in AMQP 1.0, its default user in 0-9-1",
    "wrong_password": "is refused with a wrong password, and reports it",
    "declare": "declares a durable queue twice (0-9-1), or attaches to it in both directions (1.0)",
    "properties": "200 messages with each property, and with headers or application properties of each type",
    "outcomes": "200 messages whose sending ends with a confirm or an outcome",
    "requeue": "a message that is put back comes again, marked as delivered before",
    "large": "a message of 1 MiB",
    "idle": "stays connected while nothing moves for more than two heartbeats of 1 s",
    "restart": "the server ends and starts again: a durable message is there when the client connects again",
}
"""What is tried, in this order, by the name that the programs have for it."""

TITLES: Final[dict[str, str]] = {
    "with_password": "password",
    "without_password": "no password",
    "wrong_password": "wrong password",
    "declare": "declare",
    "properties": "properties",
    "outcomes": "outcomes",
    "requeue": "requeue",
    "large": "1 MiB",
    "idle": "idle",
    "restart": "restart",
}
"""The scenarios as the heads of columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """A row of the table.

    Attributes:
        name: that of its package.
        language: that it is written for.
        protocol: ``0-9-1`` or ``1.0``.
        peer: what ``install.sh`` calls the installation.
        program: the file in ``programs``.
        tls: whether it dials with TLS; some can do nothing else.
    """

    name: str
    language: str
    protocol: str
    peer: str
    program: str
    tls: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Except:
    """A cell that is not "yes".

    Attributes:
        found: ``no`` for a fault, ``absent`` for what the client does not have.
        what: what happens, and why.
        says: a part of what the program reports.
        servers: with which servers: ``container``, ``rabbitmq4``.
    """

    found: str
    what: str
    says: str = ""
    servers: tuple[str, ...] = ("container", "rabbitmq4")


CLIENTS: Final = (
    Client(name="pika", language="Python", protocol="0-9-1", peer="pika", program="pika_client.py"),
    Client(name="aio-pika", language="Python", protocol="0-9-1", peer="pika", program="aio_pika_client.py"),
    Client(name="kombu", language="Python", protocol="0-9-1", peer="pika", program="kombu_client.py"),
    Client(
        name="amqpstorm",
        language="Python",
        protocol="0-9-1",
        peer="http-clients",
        program="amqpstorm_client.py",
    ),
    Client(
        name="amqplib", language="JavaScript", protocol="0-9-1", peer="amqplib", program="amqplib_client.js"
    ),
    Client(
        name="@cloudamqp/amqp-client",
        language="JavaScript",
        protocol="0-9-1",
        peer="clients-js",
        program="cloudamqp_client.js",
    ),
    Client(name="bunny", language="Ruby", protocol="0-9-1", peer="bunny", program="bunny_client.rb"),
    Client(
        name="php-amqplib",
        language="PHP",
        protocol="0-9-1",
        peer="php-amqplib",
        program="php_amqplib_client.php",
    ),
    Client(
        name="amqp-tools",
        language="the shell",
        protocol="0-9-1",
        peer="amqp-tools",
        program="amqp_tools_client.py",
    ),
    Client(
        name="python-qpid-proton",
        language="Python",
        protocol="1.0",
        peer="proton",
        program="proton_client.py",
    ),
    Client(
        name="qpid-proton-cpp",
        language="C++",
        protocol="1.0",
        peer="proton-cpp",
        program="proton_cpp_client.py",
    ),
    Client(name="rhea", language="JavaScript", protocol="1.0", peer="clients-js", program="rhea_client.js"),
    Client(
        name="rhea-promise",
        language="JavaScript",
        protocol="1.0",
        peer="clients-js",
        program="rhea_promise_client.js",
    ),
    Client(
        name="@azure/core-amqp",
        language="JavaScript",
        protocol="1.0",
        peer="clients-js",
        program="azure_core_amqp_client.js",
    ),
    Client(
        name="amqp10", language="JavaScript", protocol="1.0", peer="clients-js", program="amqp10_client.js"
    ),
    Client(
        name="@sap/xb-msg-amqp-v100",
        language="JavaScript",
        protocol="1.0",
        peer="clients-js",
        program="sap_client.js",
    ),
    Client(
        name="uamqp", language="Python", protocol="1.0", peer="uamqp", program="uamqp_client.py", tls=True
    ),
)

_ONE_CALL = "each command is a connection of its own"
_HALF = "with a heartbeat of 2 s: it announces half of it, and a container accepts no less than 1 s"

EXCEPTIONS: Final[dict[tuple[str, str], Except]] = {
    ("amqp-tools", "properties"): Except(
        found="absent", what="``amqp-get`` writes the body, and no properties"
    ),
    ("amqp-tools", "outcomes"): Except(found="absent", what="``amqp-publish`` asks for no confirms"),
    ("amqp-tools", "requeue"): Except(found="absent", what="``amqp-get`` acknowledges what it gets"),
    ("amqp-tools", "idle"): Except(found="absent", what=_ONE_CALL),
    ("amqp10", "requeue"): Except(
        found="no",
        what="it leaves the outcome to the program only with rcv-settle-mode second, a mode that RabbitMQ 4 does not have",
        says="nothing came",
        servers=("rabbitmq4",),
    ),
    **{
        ("uamqp", scenario): Except(
            found="no",
            what="it sends, but does not receive: it takes the answer to its attach for a refusal, because the target in it is null",
            says="Source and/or Target is NULL",
            servers=("rabbitmq4",),
        )
        for scenario in ("declare", "properties", "outcomes", "requeue", "large", "idle", "restart")
    },
}
"""The cells that are not "yes", by client and scenario."""

REMARKS: Final[dict[tuple[str, str], str]] = {
    ("pika", "properties"): "without floats, which it does not write",
    ("@cloudamqp/amqp-client", "properties"): "without a priority of 0, which it does not send",
    ("bunny", "properties"): "without a boolean in an array within an array, which it loses (amq-protocol)",
    ("php-amqplib", "properties"): "floats arrive as strings, because it writes them so",
    ("python-qpid-proton", "idle"): _HALF,
    ("qpid-proton-cpp", "idle"): _HALF,
    (
        "qpid-proton-cpp",
        "requeue",
    ): "its ``modify`` leaves delivery-failed false, which counts no attempt (3.4.5)",
    ("@azure/core-amqp", "properties"): "without a user-id, which its form of a message does not have",
    (
        "amqp10",
        "properties",
    ): "with ``session.options.outgoingWindow`` raised: the client decreases it by each transfer, and cannot write a flow when it is below 0",
    (
        "amqp10",
        "outcomes",
    ): "with a ``credit`` policy that gives none until there is a listener: it drops messages that come before one",
    ("amqp10", "large"): "with ``receiverLink.attach.maxMessageSize`` raised from 10,000",
    (
        "@sap/xb-msg-amqp-v100",
        "requeue",
    ): "it releases the message, which counts no attempt (3.4.4), because it does not write ``modified``",
    ("uamqp", "with_password"): "with TLS: it does not dial without",
    (
        "uamqp",
        "outcomes",
    ): "with ``receive_settle_mode=ReceiveAndDelete`` for its sender, too: otherwise it asks for rcv-settle-mode second, and does not settle",
    ("uamqp", "large"): "with ``max_message_size`` raised from 1 MiB for the whole message",
}
"""The notes of cells with "yes", by client and scenario."""
