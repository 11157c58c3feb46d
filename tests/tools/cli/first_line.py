"""A command that gets a signal while it writes its first line to stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_amqp10.tools.cli.command_runner import Interrupts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import ModuleType

    import pytest


async def interrupt_at_first_line(
    command: Callable[[Interrupts], Awaitable[None]],
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[list[bytes], bool]:
    """Run a command of ``module``, call ``meanwhile`` and interrupt it in its first write.

    Returns:
        What it wrote, and whether the whole command was cancelled, which ``amqp10`` reports with 130.
    """
    written: list[bytes] = []

    async def write_out(octets: bytes) -> None:
        written.append(octets)
        if len(written) == 1:
            meanwhile()
            interrupts.interrupt()
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(module, "write_out", write_out)
    with trio.CancelScope() as everything:
        interrupts = Interrupts(everything)
        await command(interrupts)
    return written, everything.cancelled_caught
