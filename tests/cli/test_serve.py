"""What ``amqp10 serve`` does to its process, and how a signal at its start ends it."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.cli import serve as module
from trio_amqp10.cli.serve import ServeOptions, serve

from .first_line import interrupt_at_first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVE = partial(serve, ServeOptions(urls=["amqp://127.0.0.1:0"]))


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The garbage collector as it was, once the test is over."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


async def test_garbage_collector_looks_at_all_seldom_once_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    written, _ = await interrupt_at_first_line(
        SERVE, module, monkeypatch, lambda: frozen.append(gc.get_freeze_count())
    )
    assert written[0].startswith(b"listening amqp://127.0.0.1:")
    assert frozen[0] > 1_000
    young, middle, old = gc.get_threshold()
    assert (
        young >= 40_000
    )  # or it examines a few hundred clients each time that they dial and are cut off together
    assert young * (middle + 1) <= 100_000  # objects examined at once, some tens of milliseconds
    assert young * (middle + 1) * (old + 1) >= 500_000


async def test_signal_at_the_listening_line_ends_serve_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, cancelled = await interrupt_at_first_line(SERVE, module, monkeypatch)
    assert not cancelled
    assert "finishing the deliveries in flight" in capsys.readouterr().err
