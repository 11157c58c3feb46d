"""A message that a consumer cannot take stays for another that can, and the consumer gets those behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp10.server.test_message_not_taken import Choosy
from tests.container.served import redialled
from trio_amqp10.amqp091.server.native_message import Published
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.container import Container, Queue

from .protocols import PROTOCOLS
from .untakeable_scripts import UNTAKEABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.content import Content

_LARGE = {f"h{n}": "x" * 1000 for n in range(20)}


def of_10(body: str, headers: dict[str, str]) -> Content:
    return content_of_message(amqp.Message(body.encode(), application_properties=headers))


def of_091(body: str, headers: dict[str, str]) -> Content:
    octets = BasicProperties(headers=headers or None).encode(USUAL)
    return Published("", "q", octets, body.encode())


def filled(make: Callable[[str, dict[str, str]], Content]) -> tuple[Container, Queue]:
    container = Container()
    container.add_queue("dead")
    container.add_queue("q", dead_letter="dead")
    queue = container.nodes["q"]
    assert isinstance(queue, Queue)
    queue.put(make("large", _LARGE), None)
    queue.put(make("behind", {}), None)
    return container, queue


def test_every_protocol_has_an_entry() -> None:
    assert {name for name, entry in PROTOCOLS.items() if entry.narrow_consumer is not None} == set(UNTAKEABLE)


@pytest.mark.parametrize("make", [of_10, of_091])
@pytest.mark.parametrize("protocol", UNTAKEABLE)
async def test_message_stays_for_another_and_those_behind_it_come(
    protocol: str,
    make: Callable[[str, dict[str, str]], Content],
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    narrow = UNTAKEABLE[protocol]
    container, queue = filled(make)
    async with redialled(narrow.serve(container), monkeypatch), narrow.receive() as receiving:
        if narrow.takes:
            assert await receiving.next() == b"large"
        assert await receiving.next() == b"behind"
        await wait_all_tasks_blocked()
    await wait_all_tasks_blocked()
    assert len(container.nodes["dead"]) == 0  # type: ignore[arg-type]
    assert queue.figures["accepted"] == (2 if narrow.takes else 1)
    if not narrow.takes:
        wide = Choosy("wide", cannot="none", credit=1)
        assert queue.pull(wide)  # type: ignore[arg-type]
        assert (wide.given, wide.redelivered, queue.available) == ([b"large"], [False], 0)
    lines = [each for each in caplog.messages if "stays for other consumers" in each]
    limited = (
        protocol == "1.0"
    )  # whose link says how large a message may be: that is no surprise to be logged
    assert len(lines) == (0 if narrow.takes or limited else 1)


@pytest.mark.parametrize("make", [of_10, of_091])
@pytest.mark.parametrize("protocol", [name for name, each in UNTAKEABLE.items() if each.get is not None])
async def test_request_for_one_message_is_answered(
    protocol: str,
    make: Callable[[str, dict[str, str]], Content],
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
) -> None:
    narrow = UNTAKEABLE[protocol]
    container, queue = filled(make)
    assert narrow.get is not None
    async with redialled(narrow.serve(container), monkeypatch):
        assert [await narrow.get() for _ in range(3)] == [b"large", b"behind", None]
    assert (len(queue), queue.figures["accepted"]) == (0, 2)


async def test_message_that_is_too_large_only_in_translation_stays_too(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    narrow = UNTAKEABLE["1.0"]
    container = Container()
    container.add_queue("q")
    queue = container.nodes["q"]
    assert isinstance(queue, Queue)
    large = of_091("x" * 9_980, {})
    assert large.size <= 10_000 < len(large.sections())
    queue.put(large, None)
    queue.put(of_091("behind", {}), None)
    async with redialled(narrow.serve(container), monkeypatch), narrow.receive() as receiving:
        assert await receiving.next() == b"behind"
    await wait_all_tasks_blocked()
    assert (queue.available, queue.figures["accepted"]) == (1, 1)


@pytest.mark.parametrize("protocol", UNTAKEABLE)
async def test_message_that_cannot_be_translated_stays_too(
    protocol: str,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a fault of a translation would show itself: each protocol reads another form through ``as_message`` or ``sections``."""

    class Strange(Published):
        def as_message(self) -> object:
            raise OverflowError("a date that no calendar has")

        def sections(self) -> bytes:
            raise OverflowError("a date that no calendar has")

        @property
        def properties(self) -> BasicProperties:
            raise OverflowError("a date that no calendar has")

    narrow = UNTAKEABLE[protocol]
    if protocol in ("0-9-1", "10.3"):  # whose own form this is: it comes from AMQP 1.0

        class Foreign(type(of_10("", {}))):  # type: ignore[misc]
            def as_message(self) -> object:
                raise OverflowError("a date that no calendar has")

        strange: Content = Foreign(of_10("strange", {}).octets)
    else:
        strange = Strange("", "q", b"\0\0", b"strange")
    container = Container()
    container.add_queue("q")
    queue = container.nodes["q"]
    assert isinstance(queue, Queue)
    queue.put(strange, None)
    queue.put(of_10("behind", {}), None)
    async with redialled(narrow.serve(container), monkeypatch), narrow.receive() as receiving:
        assert await receiving.next() == b"behind"
    await wait_all_tasks_blocked()
    assert (queue.available, queue.figures["accepted"]) == (1, 1)
    assert sum("a date that no calendar has" in each for each in caplog.messages) == 1
