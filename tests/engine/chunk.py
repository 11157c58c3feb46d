"""One chunk with one whole message, as a pump has the engine read it."""

from __future__ import annotations

from tests.naive.performatives import frame
from trio_amqp10.engine.connection import Connection
from trio_amqp10.engine.fast import WHOLE_OVERHEAD, transfer_head, write_transfer
from trio_amqp10.engine.stack import Stack
from trio_amqp10.headers import AMQP_HEADER
from trio_amqp10.spec.messaging import Source, Target

from .helpers import BEGIN
from .links import Owner, attach

__all__ = ["Chunk"]


class Chunk:
    """A conversation in which three messages have come, and a fourth is read."""

    def __init__(self) -> None:
        connection = Connection("engine")
        self.stack = Stack(connection, 0.0)
        connection.open()
        self.stack.receive_data(AMQP_HEADER + frame("open", container_id="peer"), 0.0)
        session = connection.session()
        session.begin()
        self.stack.receive_data(frame("begin", remote_channel=0, **BEGIN), 0.0)
        self.link = session.receiver("x")
        self.link.attach(source=Source(address="q"), target=Target())
        self.link.owner = Owner()
        self.link.set_credit(10)
        self.stack.receive_data(attach("x", 0, role=False), 0.0)
        while self.stack.next_event() is not None:
            pass
        self.number = 0
        for _ in range(4):
            self.write()
            if self.number < 4:
                self.read()

    def write(self) -> None:
        """What the peer sends next."""
        size = WHOLE_OVERHEAD + 4
        head = write_transfer(transfer_head(0, 0), size, self.number, self.number, settled=False)
        self.octets = head + b"body"
        self.number += 1

    def read(self) -> None:
        """Read it, and take what is to be woken."""
        self.stack.receive_slice(self.octets, 0.0)
        assert not self.stack.has_input()
        assert self.stack.next_event() is None
        assert self.stack.take_touched() == [self.link.owner]
