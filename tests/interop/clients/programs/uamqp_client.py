"""Microsoft's ``uamqp``, a library in C, as a client of the table: it dials with TLS alone, and CAFILE has the authority that it trusts."""

from __future__ import annotations

import inspect
import os
import socket
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import uamqp
from scenarios import Client, Got, main
from uamqp import address, authentication, constants, errors, message, types
from uamqp.receiver import MessageReceiver
from uamqp.sender import MessageSender

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 15
PROPERTIES = tuple(inspect.signature(message.MessageProperties).parameters)[:13]
OPEN = (constants.MessageSenderState.Open, constants.MessageReceiverState.Open)
LARGEST = 2 * 1024 * 1024
KEPT: list[Any] = []
"""What the garbage collector must not see: the library crashes when it frees what is not closed."""
SENT = constants.MessageSendResult.Ok
FIRST = constants.ReceiverSettleMode.ReceiveAndDelete
"""Settle mode ``first``; the library's name is for what its own clients do with it."""


class Uamqp(Client):
    def __init__(self, url: str, heartbeat: int = 0) -> None:
        parts = urlsplit(url)
        where: Any = {"port": parts.port, "verify": os.environ["CAFILE"]}
        if parts.username:
            login = authentication.SASLPlain(
                parts.hostname, unquote(parts.username), unquote(parts.password or ""), **where
            )
        else:
            login = authentication.SASLAnonymous(parts.hostname, **where)
        self.connection = uamqp.Connection(
            parts.hostname, login, idle_timeout=heartbeat * 1000 if heartbeat else None
        )
        self.session = uamqp.Session(self.connection, incoming_window=1000, outgoing_window=1000)
        KEPT.append(self)
        self.senders: dict[str, Any] = {}
        self.receivers: dict[str, Any] = {}
        self.arrived: dict[str, list[Any]] = {}
        self.session._session.begin()
        try:
            self._until(lambda: self.connection._state == uamqp.c_uamqp.ConnectionState.OPENED)
        except BaseException:
            self.close()
            raise
        _disable_nagle()

    def _until(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in {SECONDS} s; {self.connection._state}")
            for link in (*self.senders.values(), *self.receivers.values()):
                if link.get_state() in OPEN:  # before that, it would send a flow for a link without a handle
                    link.work()
            self.connection.work()
            if self.session._link_error:
                raise self.session._link_error
            if self.connection._state in (
                uamqp.c_uamqp.ConnectionState.ERROR,
                uamqp.c_uamqp.ConnectionState.END,
                uamqp.c_uamqp.ConnectionState.DISCARDING,
            ):
                raise ConnectionError(f"the connection is lost: {self.connection._state}")
            time.sleep(0.0005)

    def properties(self, number: int) -> dict[str, Any]:
        """Strings are bytes, because all strings arrive so; binary values are bytearrays."""
        identity = (b"id-%d" % number, number, uuid.UUID(int=number), bytearray(b"%d" % number))[number % 4]
        return {
            "message_id": identity,
            "user_id": b"guest",
            "to": b"to%d" % number,
            "subject": b"s%d" % number,
            "reply_to": b"r%d" % number,
            "correlation_id": b"c%d" % number,
            "content_type": b"text/plain",
            "content_encoding": b"utf-8",
            "absolute_expiry_time": 4_000_000_000_000 + number,
            "creation_time": 1_000_000_000_000 + number,
            "group_id": b"g%d" % number,
            "group_sequence": 1 + number,
            "reply_to_group_id": b"h%d" % number,
            "durable": True,
            "priority": 5,
            "application_properties": {
                b"text": b"t%d" % number,
                b"number": number,
                b"large": 2**40 + number,
                b"negative": -1 - number,
                b"true": True,
                b"half": number + 0.5,
                b"octets": bytearray(b"%d" % number),
                b"id": uuid.UUID(int=number),
                b"none": None,
            },
        }

    def declare(self, queue: str) -> None:
        KEPT.extend((self.senders.get(queue), self.receivers.get(queue)))
        self.senders[queue] = sender = MessageSender(
            self.session, b"here", address.Target(queue), receive_settle_mode=FIRST, max_message_size=LARGEST
        )
        arrived = self.arrived.setdefault(queue, [])
        self.receivers[queue] = receiver = MessageReceiver(
            self.session,
            address.Source(queue),
            b"here",
            arrived.append,
            receive_settle_mode=FIRST,
            prefetch=0,
            max_message_size=LARGEST,
        )
        sender.open()
        receiver.open()
        self._until(lambda: sender.get_state() in OPEN and receiver.get_state() in OPEN)

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        values = dict(properties)
        values.pop("delivery_mode", None)
        header = message.MessageHeader()
        header.durable = values.pop("durable", False)
        header.priority = values.pop("priority", None)
        headers = values.pop("application_properties", None)
        if isinstance(values.get("message_id"), int):
            values["message_id"] = types.AMQPuLong(values["message_id"])
        outcomes: list[Any] = []
        sent = uamqp.Message(
            body,
            message.MessageProperties(**values) if values else None,
            headers,
            header=header,
        )
        self.senders[queue].send(
            sent, lambda _, result, delivery_state=None: outcomes.append((result, delivery_state))
        )
        self._until(lambda: outcomes)
        assert constants.MessageSendResult(outcomes[0][0]) == SENT, outcomes

    def get(self, queue: str) -> Got:
        arrived, receiver = self.arrived[queue], self.receivers[queue]
        receiver.reset_link_credit(1)
        self._until(lambda: arrived)
        got = arrived.pop(0)
        found = {name: getattr(got.properties, name, None) for name in PROPERTIES}
        header = got.header
        found |= {"durable": header and header.durable, "priority": header and header.priority}
        found["application_properties"] = got.application_properties

        def settle(outcome: Any) -> None:
            receiver._settle_message(got.delivery_no, outcome)
            self.connection.work()

        return Got(
            b"".join(got.get_data()),
            found,
            lambda: settle(errors.MessageAccepted()),
            lambda: settle(errors.MessageModified(failed=True, undeliverable=False)),
            bool(header and header.delivery_count),
            bool(header and header.first_acquirer),
        )

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._until(lambda: time.monotonic() > until)

    def close(self) -> None:
        for link in (*self.senders.values(), *self.receivers.values()):
            link.destroy()
        self.session.destroy()
        self.connection.destroy()


def _disable_nagle() -> None:
    """Set TCP_NODELAY, which the library leaves unset: it writes a frame in two pieces, so each would take 40 ms."""
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if not os.readlink(file).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(file.name))) as each:
                if each.family == socket.AF_INET:
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


if __name__ == "__main__":
    main(Uamqp)
    sys.stdout.flush()
    os._exit(0)
