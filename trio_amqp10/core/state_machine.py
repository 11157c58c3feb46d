"""A state that follows a table of permitted steps.

Knows no protocol: a protocol's subclass defines which step is the end of the transport, and the error for a step
that the table does not list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from .errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .errors import RemoteProtocolError

S = TypeVar("S", bound=Enum)
P = TypeVar("P", bound=Enum)


class StateMachine(ABC, Generic[S, P]):
    """A state, and the table of its steps.

    Args:
        table: from a state and a step to the next state.
        start: the first state.
        end: the state after ``LOST``.

    Attributes:
        LOST: the step at which the enclosing transport or endpoint ends: always legal, and final.
        state: changed only by ``step``.
    """

    LOST: ClassVar[Enum]

    __slots__ = ("_end", "_table", "state")

    def __init__(self, table: Mapping[S, Mapping[P, S]], start: S, end: S) -> None:
        self._table = table
        self._end = end
        self.state: S = start

    @property
    def over(self) -> bool:
        """Whether it is in the state after ``LOST``."""
        return self.state is self._end

    def permits(self, step: P) -> bool:
        """Whether the table lists the step."""
        return step is self.LOST or step in self._table[self.state]

    def step(self, step: P) -> None:
        """Take a local step.

        Raises:
            LocalProtocolError: the table does not list it.
        """
        if not self.permits(step):
            raise LocalProtocolError(self._unexpected(step))
        self.state = self._end if step is self.LOST else self._table[self.state][step]

    def receive(self, step: P) -> None:
        """Take a step of the peer.

        Raises:
            RemoteProtocolError: the table does not list it; ``fault`` defines the rule.
        """
        if not self.permits(step):
            raise self.fault(step, self._unexpected(step))
        self.step(step)

    @abstractmethod
    def fault(self, step: P, description: str, /) -> RemoteProtocolError:
        """Return the error for a peer's step that the table does not list."""

    def _unexpected(self, step: P) -> str:
        return f"{step.name.lower()} in state {self.state.name}"
