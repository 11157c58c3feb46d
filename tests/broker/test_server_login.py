"""A login in steps: answered questions, challenges without end, mechanisms that raise, and failures that count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trio_amqp10.broker.server_login import ServerLogin, context_of
from trio_amqp10.sasl.mechanism import Challenge, Question, Refused, Verified

ADA = Verified("ada")


class Failures:
    """Failed logins of one host; ``shut`` are the names that must wait."""

    def __init__(self, *shut: str | None) -> None:
        self.counted: list[str | None] = []
        self._shut = shut

    def permits(self, name: str | None) -> bool:
        return name not in self._shut

    def failed(self, name: str | None) -> None:
        self.counted.append(name)


class Exchange:
    """A mechanism whose steps are given; an exception among them is raised."""

    claimed_name = "ada"

    def __init__(self, *steps: Any) -> None:
        self.answers: list[Any] = []
        self._steps = list(steps)

    def step(self, _: bytes) -> Any:
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    def answer(self, value: Any) -> Any:
        self.answers.append(value)
        return self.step(b"")


def login_of(exchange: Any, *shut: str | None) -> tuple[ServerLogin, Failures]:
    failures = Failures(*shut)
    accepted: Any = SimpleNamespace(
        failures=failures, transport=SimpleNamespace(channel_bindings={"x": b"1"}, peer_certificate=b"der")
    )
    login = ServerLogin(accepted)
    login.exchange = exchange
    return login, failures


async def outcome(*steps: Any, shut: tuple[str | None, ...] = ()) -> Any:
    exchange: Any = Exchange(*steps)
    login, _ = login_of(exchange, *shut)
    return await login.outcome(exchange, exchange.step, b"")


async def yes() -> bool:
    return True


async def fail() -> bool:
    raise OSError("the directory is away")


async def test_right_credentials_are_verified_and_wrong_ones_refused() -> None:
    assert await outcome(ADA) is ADA
    assert isinstance(await outcome(Refused()), Refused)


async def test_right_credentials_of_a_name_that_must_wait_are_refused() -> None:
    assert isinstance(await outcome(ADA, shut=("ada",)), Refused)


async def test_mechanism_that_raises_refuses() -> None:
    assert isinstance(await outcome(ValueError("octets of a stranger")), Refused)


async def test_questions_are_answered_by_the_application_or_by_a_thread() -> None:
    exchange: Any = Exchange(Question("ada", yes), Question.of_work("a key", lambda: 7), ADA)
    login, _ = login_of(exchange)
    assert await login.outcome(exchange, exchange.step, b"") is ADA
    assert exchange.answers == [True, 7]


@pytest.mark.logs_errors
async def test_question_that_cannot_be_answered_refuses(caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(await outcome(Question("ada", fail), ADA), Refused)
    assert "the directory is away" in caplog.text


async def test_login_has_so_many_challenges_and_no_more() -> None:
    exchange: Any = Exchange(*(Challenge(b"again") for _ in range(17)))
    login, _ = login_of(exchange)
    found = [await login.outcome(exchange, exchange.step, b"") for _ in range(17)]
    assert all(isinstance(each, Challenge) for each in found[:16])
    assert isinstance(found[16], Refused)


def test_failure_counts_against_the_name_that_was_claimed_unless_it_waits_already() -> None:
    login, failures = login_of(Exchange())
    login.count_failure()
    assert failures.counted == ["ada"]
    login, failures = login_of(None)
    login.count_failure()
    assert failures.counted == [None]
    login, failures = login_of(Exchange(), "ada")
    login.count_failure()
    assert failures.counted == []


def test_mechanism_begins_with_what_is_known_of_the_transport() -> None:
    login, _ = login_of(None)
    begun: list[Any] = []

    def begin(context: Any) -> str:
        begun.append(context)
        return "exchange"

    mechanism: Any = SimpleNamespace(begin=begin)
    assert login.begin(mechanism) == "exchange"
    assert login.exchange == "exchange"
    assert begun == [context_of(login.accepted)]
    assert begun[0].channel_bindings == {"x": b"1"}
    assert begun[0].peer_certificate == b"der"
