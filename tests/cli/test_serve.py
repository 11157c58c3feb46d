"""What ``amqp10 serve`` does to its process, and what a signal does to it at its very start."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.cli import serve as module
from trio_amqp10.cli.command_runner import Interrupts
from trio_amqp10.cli.serve import ServeOptions, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def test_garbage_collector_looks_at_all_seldom_once_it_serves(
    collector: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[bytes] = []
    frozen: list[int] = []

    async def write_out(octets: bytes) -> None:
        await trio.lowlevel.checkpoint()
        said.append(octets)
        frozen.append(gc.get_freeze_count())
        interrupts.interrupt()

    monkeypatch.setattr(module, "write_out", write_out)
    with trio.CancelScope() as everything:
        interrupts = Interrupts(everything)
        await serve(ServeOptions(urls=["amqp://127.0.0.1:0"]), interrupts)
    assert said[0].startswith(b"listening amqp://127.0.0.1:")
    assert frozen[0] > 1_000
    young, middle, old = gc.get_threshold()
    assert young >= 40_000  # or a few hundred strangers that come and go together are looked at each time
    assert young * (middle + 1) <= 100_000  # objects at a look, some tens of milliseconds
    assert young * (middle + 1) * (old + 1) >= 500_000


async def test_signal_behind_the_line_that_it_listens_ends_it_well(
    collector: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def write_out(octets: bytes) -> None:
        interrupts.interrupt()
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(module, "write_out", write_out)
    with trio.CancelScope() as everything:
        interrupts = Interrupts(everything)
        await serve(ServeOptions(urls=["amqp://127.0.0.1:0"]), interrupts)
    assert not everything.cancelled_caught
    assert "finishing the deliveries in flight" in capsys.readouterr().err
