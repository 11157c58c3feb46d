"""Turns: long work of nodes, divided so that all peers are served in between.

Each turn has a limited time, so that one peer cannot make all others wait. Work that may take longer is written as steps: a
generator that yields when the rest must wait for another turn, usually when ``Turns.is_over``. ``take_steps`` runs them. While
the turn lasts, nothing waits, so short work is done when the call returns.

Knows no node and no clock: the container provides the turns.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

T = TypeVar("T")

Resumer: TypeAlias = "Callable[[Callable[[], object]], object]"
"""Calls its argument once the steps may go on."""

Steps: TypeAlias = "Iterator[Resumer | None]"
"""Work that waits at each step: for another turn (None), or for a ``Resumer``."""


class Turns(Protocol):
    """The turns of connections and of long work; ``net.read_turns`` provides them."""

    def is_over(self) -> bool:
        """Whether the time of the running turn is over.

        False while none runs, as in a user's task.
        """
        ...

    def later(self, call: Callable[[], object]) -> None:
        """Call ``call`` in a later turn, after all earlier calls; exceptions are logged."""
        ...


class _Endless:
    """One endless turn, for nodes without a container and containers without trio."""

    def is_over(self) -> bool:
        return False

    def later(self, call: Callable[[], object]) -> None:
        call()


ENDLESS: Final[Turns] = _Endless()


def _nothing() -> None: ...


def take_steps(turns: Turns, steps: Steps, then: Callable[[], object] = _nothing) -> bool:
    """Take steps in this turn and later ones, and call ``then`` after the last.

    Returns:
        Whether all is done already.
    """
    for resumer in steps:
        (turns.later if resumer is None else resumer)(partial(take_steps, turns, steps, then))
        return False
    then()
    return True


def guarded(steps: Steps, fail: Callable[[Exception], object]) -> Steps:
    """Yield these steps; if one raises, call ``fail`` in place of the rest.

    ``fail`` is called while the exception is handled.
    """
    try:
        yield from steps
    except Exception as failure:
        fail(failure)


def paced(turns: Turns, steps: Iterator[object]) -> Generator[None, None, None]:
    """Turn work of many small steps into steps that fill a turn each."""
    for _ in steps:
        if turns.is_over():
            yield


def finish(steps: Generator[object, None, T]) -> T:
    """Take all steps now, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            done: T = end.value
            return done


def each_in_turns(
    turns: Turns, items: Iterator[T], call: Callable[[T], object]
) -> Generator[None, None, None]:
    """Return steps that call a function with each item, and then drop the item."""
    left = deque(items)
    del items
    while left:
        call(left.popleft())  # Freeing all items together would take too long.
        if turns.is_over():
            yield
