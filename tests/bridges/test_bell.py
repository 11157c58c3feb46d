"""A bell wakes the loop of another thread, however often it is rung, as an eventfd and as a pair of sockets."""

from __future__ import annotations

import os
import select
import sys
import threading

import pytest
import trio
import trio.testing

from trio_amqp10.bridges.bell import Bell

SECONDS = 60


@pytest.fixture(params=["linux", "another system"])
def bell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bell:
    if request.param != "linux":
        monkeypatch.setattr(sys, "platform", "freebsd")
    elif sys.platform != "linux":
        pytest.skip("Linux has eventfd")
    return Bell()


def is_readable(bell: Bell) -> bool:
    return bool(select.select([bell.number], [], [], 0)[0])


def test_bell_is_readable_from_ring_to_silence(bell: Bell) -> None:
    assert not is_readable(bell)
    for rings in (1, 3):
        for _ in range(rings):
            bell.ring()
        assert is_readable(bell)
        bell.silence()
        assert not is_readable(bell)
    number = bell.number
    bell.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


async def test_another_thread_wakes_a_task(bell: Bell) -> None:
    ringer = threading.Thread(target=bell.ring)
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.lowlevel.wait_readable, bell.number)
            await trio.testing.wait_all_tasks_blocked()
            ringer.start()
    ringer.join()
    bell.close()
