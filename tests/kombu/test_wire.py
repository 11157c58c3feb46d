from __future__ import annotations

import logging
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import trio

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.dial_options import WhereAndOptions
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, LinkRefusedError
from trio_amqp10.kombu.window import Window
from trio_amqp10.kombu.wire import Wire
from trio_amqp10.net.errors import ConnectionClosedError
from trio_amqp10.testing import running_container

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture
def url() -> Generator[str]:
    with running_container(["q"], strict=True) as made:
        yield made


@pytest.fixture
def wire(url: str) -> Generator[Wire]:
    made = Wire.dial(WhereAndOptions(url), 5)
    yield made
    made.close()


def test_message_goes_out_and_comes_in(wire: Wire) -> None:
    wire.send("q", Message("tea"))
    link = wire.receiver("q")
    link.start(Window(), wire)
    link.open(True)
    arrived = wire.next_arrival(5)
    assert arrived is not None
    assert arrived[0] is link.source
    assert arrived[1].message.body == "tea"


def test_message_for_no_node_is_refused_and_the_wire_goes_on(wire: Wire) -> None:
    with pytest.raises(LinkRefusedError, match="no node 'none'"):
        wire.send("none", Message("tea"))
    wire.send("q", Message("tea"))


def test_pull_returns_none_from_an_empty_queue(wire: Wire) -> None:
    link = wire.receiver("q")
    assert link.pull(5) is None
    wire.send("q", Message("tea"))
    delivery = link.pull(5)
    assert delivery is not None
    assert delivery.message.body == "tea"


def test_senders_that_were_not_used_for_long_are_closed(wire: Wire) -> None:
    with running_container() as url:
        other = Wire.dial(WhereAndOptions(url), 5)
        for number in range(70):
            other.send(f"q{number}", Message("tea"))
        assert len(other._senders) == 64
        assert ("q0", False) not in other._senders
        other.close()


def test_wait_for_a_message_ends_in_time(wire: Wire) -> None:
    began = time.monotonic()
    assert wire.next_arrival(0.05) is None
    assert wire.next_arrival(0) is None
    assert time.monotonic() - began < 5


def test_loss_ends_the_wait() -> None:
    with running_container() as url:
        wire = Wire.dial(WhereAndOptions(url), 5)
        failures: list[BaseException] = []

        def wait() -> None:
            for _ in range(2):
                try:
                    wire.next_arrival(None)
                except ConnectionClosedError as lost:
                    failures.append(lost)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
    thread.join(10)
    assert [type(one) for one in failures] == [ConnectionClosedError] * 2
    assert not wire.is_alive
    with pytest.raises(ConnectionClosedError):
        wire.send("q", Message("tea"))
    wire.close()


def test_descriptor_is_readable_while_messages_wait(wire: Wire) -> None:
    link = wire.receiver("q")
    link.start(Window(), wire)
    link.open(True)
    fd = wire.fileno()
    assert not select.select([fd], [], [], 0)[0]
    wire.send("q", Message("tea"))
    assert select.select([fd], [], [], 5)[0]
    wire.quiet()
    assert not select.select([fd], [], [], 0)[0]
    wire.signal_if_waiting()
    assert select.select([fd], [], [], 0)[0]
    wire.next_arrival(0)
    wire.quiet()
    wire.signal_if_waiting()
    assert not select.select([fd], [], [], 0)[0]


@pytest.mark.parametrize("comes_before_the_octets_are_read", [True, False])
def test_message_that_comes_while_the_descriptor_is_made_quiet_does_not_silence_it(
    wire: Wire, comes_before_the_octets_are_read: bool
) -> None:
    link = wire.receiver("q")
    link.start(Window(), wire)

    class Interrupted:
        """A socket during whose reading a message comes."""

        def recv(self, size: int) -> bytes:
            if comes_before_the_octets_are_read:
                wire.deliver(link.source, message)
                return reading.recv(size)
            octets = reading.recv(size)
            wire.deliver(link.source, message)
            return octets

        def fileno(self) -> int:
            return reading.fileno()

        def close(self) -> None:
            reading.close()

    message: Any = object()
    wire.deliver(link.source, message)
    fd = wire.fileno()
    assert wire._signals is not None
    reading, writing = wire._signals
    wire._signals = Interrupted(), writing  # type: ignore[assignment]
    wire.quiet()
    assert [wire.next_arrival(0), wire.next_arrival(0)] == [(link.source, message)] * 2
    wire.signal_if_waiting()
    wire.deliver(link.source, message)
    assert select.select([fd], [], [], 0)[0]


def test_host_that_does_not_answer_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object, **__: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr("trio_amqp10.net.dialling_base.connect", silent)
    with pytest.raises(ConnectionClosedError, match=r"192\.0\.2\.1:5672 cannot be reached within 0\.1 s"):
        Wire.dial(WhereAndOptions("amqp://192.0.2.1:5672"), 0.1)


@pytest.mark.whole
def test_full_queue_ends_a_send_in_time() -> None:
    from trio_amqp10 import Container

    container = Container("small")
    container.add_queue("q", max_length=1)
    with running_container(container=container) as url:
        wire = Wire.dial(WhereAndOptions(url), 5)
        wire.seconds = 0.2
        with pytest.raises((trio.TooSlowError, DeliveryRejectedError)):
            for _ in range(200):
                wire.send("q", Message("tea"))
        wire.close()


def test_messages_that_nobody_waits_for_are_out_before_the_wire_is_closed(wire: Wire, url: str) -> None:
    other = Wire.dial(WhereAndOptions(url), 5)
    other.confirms = False
    for number in range(500):
        other.send("q", Message(number))
    other.close()
    link = wire.receiver("q")
    found = [link.pull(5) for _ in range(500)]
    assert [None if one is None else one.message.body for one in found] == list(range(500))


@pytest.mark.logs_errors
def test_message_that_nobody_waits_for_is_logged_if_it_is_not_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from trio_amqp10 import Container

    container = Container("small")
    container.add_queue("q", max_length=1, overflow="reject")
    with running_container(container=container) as url, caplog.at_level(logging.ERROR):
        wire = Wire.dial(WhereAndOptions(url), 5)
        wire.confirms = False
        wire.send("q", Message("one"))
        wire.send("q", Message("two"))
        wire.close()
    assert "was not accepted, and may be lost" in caplog.text


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, as workers have
def test_child_process_can_close_its_copy(wire: Wire) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            assert wire.is_inherited
            wire.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    wire.send("q", Message("tea"))
