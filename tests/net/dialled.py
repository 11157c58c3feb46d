"""A client of a toy protocol that dials, and dials again."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import trio

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.dialling_base import DiallingBase
from trio_amqp10.net.recovery_base import RecoveryBase

EVEN = Backoff(initial=1, factor=1, maximum=1, jitter=False, attempts=1)


class Connection:
    """A connection that logs its calls; its transport ends with ``pump.finished``."""

    def __init__(self) -> None:
        self.recovery: Any = None
        self.told: list[str] = []
        self.pump: Any = self
        self.finished = trio.Event()

    def lost_to(self) -> Exception:
        return OSError("lost")

    async def hang_up(self) -> None:
        self.told.append("hang up")

    def on_ready(self) -> None:
        self.told.append("ready")

    def fail(self, failure: Exception) -> None:
        self.told.append(f"fail: {failure}")

    async def aclose(self) -> None:
        if self.recovery is not None:
            self.recovery.stop()
        self.told.append("closed")


class Recovery(RecoveryBase[Connection]):
    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.test")

    @staticmethod
    def is_final(failure: Exception) -> bool:
        return isinstance(failure, LocalProtocolError)

    def exhausted(self, last: BaseException | None) -> Exception:
        return OSError(f"exhausted: {last}")

    async def restore(self) -> None:
        self._connection.told.append("restore")

    def passed(self, loss: Exception) -> None:
        self._connection.told.append(f"passed: {loss}")


class Dialling(DiallingBase[Connection, str]):
    """A client that reaches only the places in ``answers``."""

    recovery_class = Recovery

    def __init__(
        self, *places: str, answers: str = "", backoff: Backoff | None = None, stream: Any = None
    ) -> None:
        super().__init__(places, stream, backoff)
        self.answers = answers
        self.dialled: list[str] = []

    async def _dial(self) -> str:
        place = self._next_place()
        self.dialled.append(place)
        await trio.lowlevel.checkpoint()
        if place not in self.answers:
            raise OSError(place)
        connection = self._connection or Connection()
        connection.finished = trio.Event()
        self._connection = connection
        return place
