"""No test leaves a connection: its thread would be alive in the next ones."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.kombu import wire

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    wire._close_all()
    until = time.monotonic() + 5
    while any(thread.name == "amqp" for thread in threading.enumerate()):
        assert time.monotonic() < until, "a thread of the library goes on"
        time.sleep(0.005)
