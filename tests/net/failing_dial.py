"""A dial that fails some times before it succeeds."""

from __future__ import annotations

import logging

import trio

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.backoff import Backoff  # noqa: TC001
from trio_amqp10.net.redial import Redial

LOG = logging.getLogger("trio_amqp10.test")


class Dial:
    """An attempt that fails ``failures`` times, then succeeds; stores their times."""

    def __init__(self, failures: int, failure: Exception | None = None) -> None:
        self.left = failures
        self.failure = failure or OSError("nobody there")
        self.times: list[float] = []
        self.seen: list[Exception] = []
        self.cleaned: list[Exception] = []

    async def __call__(self) -> str:
        await trio.lowlevel.checkpoint()
        self.times.append(trio.current_time())
        if self.left:
            self.left -= 1
            raise self.failure
        return "reached"

    async def clean_up(self, failure: Exception) -> None:
        self.cleaned.append(failure)

    def redial(self, backoff: Backoff | None, final: type[Exception] = LocalProtocolError) -> Redial:
        return Redial(
            backoff,
            is_final=lambda failure: isinstance(failure, final),
            log=LOG,
            failed=self.seen.append,
        )
