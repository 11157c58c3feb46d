"""Hosts that fail to authenticate too often are sent away for a while."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import acceptor, idle, listening, never
from trio_amqp10.net.login_failures import PERIOD, LoginFailures

USERS = {"ann": "s3cret", "bob": "b0b"}
SERVER = amqp.sasl.Server(USERS)
RIGHT = amqp.sasl.Scram("ann", "s3cret")
WRONG = amqp.sasl.Scram("ann", "0ther")


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


HOST = "192.0.2.1"


def test_user_of_a_host_waits_after_failures_until_one_is_forgiven() -> None:
    clock = Time()
    failures = LoginFailures(10, clock)
    for _ in range(9):
        failures.add(HOST, "ann")
        assert failures.wait(HOST, "ann") == 0
    failures.add(HOST, "ann")
    assert failures.wait(HOST, "ann") == pytest.approx(30)
    assert failures.wait("192.0.2.2", "ann") == 0
    clock.now += 29.9
    assert failures.wait(HOST, "ann") == pytest.approx(0.1)
    clock.now += 0.2
    assert failures.wait(HOST, "ann") == 0
    failures.add(HOST, "ann")
    assert failures.wait(HOST, "ann") == pytest.approx(29.9)
    clock.now += PERIOD
    assert failures.wait(HOST, "ann") == 0


def test_failures_of_one_user_do_not_shut_out_the_others_of_its_host() -> None:
    failures = LoginFailures(10, Time())
    for _ in range(50):
        failures.add(HOST, "ann")
    assert failures.wait(HOST, "ann") > 0
    assert failures.wait(HOST, "bob") == failures.wait(HOST) == 0


def test_failures_of_many_users_shut_out_their_host() -> None:
    clock = Time()
    failures = LoginFailures(10, clock)
    for number in range(99):
        failures.add(HOST, f"user {number}")
    assert failures.wait(HOST, "bob") == 0
    failures.add(HOST, None)  # no user was claimed
    assert failures.wait(HOST, "bob") == failures.wait(HOST) == pytest.approx(3)
    assert failures.wait("192.0.2.2", "bob") == 0


def test_failures_of_who_has_to_wait_make_it_wait_no_longer() -> None:
    failures = LoginFailures(2, Time())
    for _ in range(100):
        failures.add(HOST, "ann")
    assert failures.wait(HOST, "ann") == pytest.approx(150)
    assert failures.wait(HOST) == pytest.approx(15)


@pytest.mark.parametrize(
    ("failed", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_failures_count_as_one_host_who_is_one_subscriber(failed: str, other: str, same: bool) -> None:
    failures = LoginFailures(1, Time())
    failures.add(failed, "ann")
    assert bool(failures.wait(other, "ann")) is same


def test_failures_remember_so_many_users_and_no_more() -> None:
    failures = LoginFailures(1, Time(), numbers=4)
    for last in (1, 2, 3, 4):
        failures.add(f"192.0.2.{last}", "ann")  # two numbers each
    waits = [bool(failures.wait(f"192.0.2.{last}", "ann")) for last in (1, 2, 3, 4)]
    assert waits == [False, False, True, True]
    assert len(failures) == 4


@pytest.mark.parametrize(("most", "host"), [(None, "192.0.2.1"), (1, None)])
def test_failures_without_a_limit_or_a_host_are_logged_and_nothing_else(
    most: int | None, host: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    failures = LoginFailures(most, Time())
    failures.add(host, "a\nb" + "c" * 1000)
    assert failures.wait(host, "a\nb" + "c" * 1000) == 0
    assert len(failures) == 0
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    where = host or "this machine"
    assert record.message == f"a peer at {where} failed to authenticate as 'a\\nb{'c' * 61}'"


async def test_listener_refuses_a_limit_of_none_at_all() -> None:
    with pytest.raises(amqp.LocalProtocolError, match=r"max_failures=0 .*None for no limit"):
        await amqp.serve(idle, "amqp://127.0.0.1:0", max_failures=0)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes that are not held back: real sockets go by real time."""
    monkeypatch.setattr("trio_amqp10.amqp10.engine.sasl_server.FAILURE_PENALTY", 0.0)
    monkeypatch.setattr("trio_amqp10.amqp10.peer.listen._JITTER", 0.0)


async def dial(where: str | trio.abc.Stream, sasl: amqp.sasl.ClientMechanism) -> None:
    async with amqp.open_connection(where, sasl=sasl):
        pass


@pytest.mark.usefixtures("at_once")
async def test_row_16_user_that_guesses_waits_and_is_told_and_others_of_its_host_do_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    async with listening(idle, sasl=SERVER, max_failures=3) as [listener]:
        for _ in range(3):
            await dial(listener.url, RIGHT)  # is no failure, nor does it make any forgotten
            with pytest.raises(amqp.sasl.AuthenticationError, match="refused the credentials"):
                await dial(listener.url, WRONG)
        for sasl in (RIGHT, WRONG):
            with pytest.raises(amqp.sasl.AuthenticationError, match="a later attempt may succeed") as caught:
                await dial(listener.url, sasl)
            assert caught.value.temporary
        await dial(listener.url, amqp.sasl.Scram("bob", "b0b"))
    told = [
        re.sub(r"\b(100|[789]\d) s", "N s", each.message)  # of 100 s; a busy machine has spent some of them
        for each in caplog.records
        if each.levelno >= logging.INFO and "'ann'" in each.message
    ]
    failed = "a peer at 127.0.0.1 failed to authenticate as 'ann'"
    away = "every login as 'ann' from 127.0.0.1 is refused for the next N s: too many failures"
    waits = "refused the login of a peer at 127.0.0.1 as 'ann': too many failures, it must wait N s"
    assert told == [failed, failed, failed, away, waits, waits]


@pytest.mark.usefixtures("at_once")
async def test_row_16_host_that_guesses_many_names_waits_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.net.login_failures._USERS", 2)
    async with listening(idle, sasl=SERVER, max_failures=3) as [listener]:
        for number in range(6):
            with pytest.raises(amqp.sasl.AuthenticationError, match="refused the credentials"):
                await dial(listener.url, amqp.sasl.Scram(f"user {number}", "0ther"))
        for sasl in (RIGHT, WRONG):
            with pytest.raises(amqp.sasl.AuthenticationError, match="a later attempt may succeed"):
                await dial(listener.url, sasl)


@pytest.mark.usefixtures("at_once")
async def test_row_16_listener_without_a_limit_lets_a_host_guess_on() -> None:
    async with listening(idle, sasl=SERVER, max_failures=None) as [listener]:
        for _ in range(12):
            with pytest.raises(amqp.sasl.AuthenticationError):
                await dial(listener.url, WRONG)
        await dial(listener.url, RIGHT)


async def test_row_16_attempts_side_by_side_tell_no_more_than_one_after_the_other(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right password is among many that are tried at once, too late to count: it fails like the others."""

    async def at_once(work: Any, *_: Any, **__: Any) -> Any:
        return work()

    # A clock that jumps does not wait for threads: the password would be looked at before the failures are counted.
    monkeypatch.setattr("trio.to_thread.run_sync", at_once)
    monkeypatch.setattr("trio_amqp10.net.accept_loop.peer_host", lambda _: "192.0.2.1")
    accepting = acceptor(sasl=SERVER, failures=LoginFailures(3, trio.current_time))
    took: list[float] = []

    async def attempt(sasl: amqp.sasl.ClientMechanism) -> None:
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accepting.run, theirs, never)
            began = trio.current_time()
            with pytest.raises(amqp.sasl.AuthenticationError):
                await dial(ours, sasl)
            took.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(attempt, WRONG)
        await trio.sleep(0.1)
        nursery.start_soon(attempt, RIGHT)
    assert len(took) == 4
    assert all(1 <= each <= 2 for each in took)
    await trio.sleep(100)
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(accepting.run, theirs, idle)
        await dial(ours, RIGHT)
