"""Answers to arrivals whose senders may be gone, or want none."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.broker.nodes.arrival_answers import accept, answer, refuse, refuse_durable, release
from trio_amqp10.broker.stores import StoreError
from trio_amqp10.broker.stores.base import StoreFullError
from trio_amqp10.core.errors import LocalProtocolError

FULL, FAILED = StoreFullError("full"), StoreError("broken")


class Arrived:
    """An arrival that notes its answer; one that is ``gone`` raises in place of it."""

    tag = b"t"

    def __init__(self, *, settled: bool = False, keeps: bool = False, gone: bool = False) -> None:
        self.settled = settled
        self.said: list[Any] = []
        self._keeps = keeps
        self._gone = gone

    def _say(self, *word: Any) -> None:
        if self._gone:
            raise LocalProtocolError("the link is gone")
        self.said.append(word)

    def accept(self) -> None:
        self._say("accept")

    def reject(self, condition: str, description: str) -> None:
        self._say("reject", str(condition), description)

    def release(self) -> None:
        self._say("release")

    def keep(self) -> bool:
        return self._keeps


class Inlet:
    """A link that notes how it was closed."""

    def __init__(self) -> None:
        self.closed: list[Any] = []

    def close(self, *why: Any) -> None:
        self.closed.append(why)


def told(failure: StoreError | None, **options: Any) -> tuple[list[Any], list[Any]]:
    """What an arrival and its link are told when the store has written it, or has failed."""
    inlet: Any = Inlet()
    arrival: Any = Arrived(**options)
    answer(inlet, arrival, failure)
    return arrival.said, inlet.closed


def test_arrival_is_accepted_once_it_is_written() -> None:
    assert told(None) == ([("accept",)], [])
    assert told(None, settled=True) == ([("accept",)], [])


@pytest.mark.parametrize(
    ("failure", "condition", "text"),
    [
        (FULL, "amqp:resource-limit-exceeded", "the store is full"),
        (FAILED, "amqp:internal-error", "the store failed"),
    ],
)
def test_arrival_that_could_not_be_written_is_still_its_senders(
    failure: StoreError, condition: str, text: str
) -> None:
    assert told(failure) == ([("reject", condition, text)], [])
    assert told(failure, settled=True) == ([], [(condition, text, {"delivery-tag": b"t"})])
    assert told(failure, keeps=True) == ([], [])
    assert told(failure, keeps=True, settled=True) == ([], [])


def test_answer_to_a_sender_that_is_gone_is_dropped() -> None:
    arrival: Any = Arrived(gone=True)
    accept(arrival)
    refuse(arrival, "amqp:not-found", "nobody")
    release(arrival)
    assert arrival.said == []


def test_release_gives_an_arrival_back() -> None:
    arrival: Any = Arrived()
    release(arrival)
    assert arrival.said == [("release",)]


@pytest.mark.parametrize("settled", [False, True])
def test_durable_message_is_refused_by_an_answer_or_with_its_link(settled: bool) -> None:
    inlet: Any = Inlet()
    arrival: Any = Arrived(settled=settled)
    refuse_durable(inlet, arrival, "orders")
    (words,) = inlet.closed if settled else arrival.said
    assert words[-2] == "amqp:precondition-failed"
    assert "orders" in words[-1]
    assert (arrival.said == []) is settled
