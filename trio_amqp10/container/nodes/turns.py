"""Long work of nodes, in pieces: between two of them all other connections have their turn.

Each turn has an end, so that one peer cannot have all others wait. What may take longer than that is written as steps: a
generator that yields where the rest is to wait for another turn, usually when ``Turns.is_over``. ``take_steps`` does them. As long as a turn
lasts, nothing waits: work that is short is done when the call returns.

Knows no node and no clock: the container gives the turns.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__all__ = [
    "ENDLESS",
    "Resumer",
    "Steps",
    "Turns",
    "each_in_turns",
    "finish",
    "guarded",
    "paced",
    "take_steps",
]

T = TypeVar("T")

Resumer: TypeAlias = "Callable[[Callable[[], object]], object]"
"""Has the function that it is given called once the steps may go on."""

Steps: TypeAlias = "Iterator[Resumer | None]"
"""Work that waits at each step: for another turn if that is None, or for something else."""


class Turns(Protocol):
    """The turns that connections and long work take; ``net.read_turns`` has them."""

    def is_over(self) -> bool:
        """Whether the turn that runs has had its time. False while none runs, as in a task of the user's."""
        ...

    def later(self, call: Callable[[], object]) -> None:
        """Have ``call`` called in a later turn, after all else that was left before; what it raises is logged."""
        ...


class _Endless:
    """No turn is ever over: for nodes without a container, and containers without trio."""

    def is_over(self) -> bool:
        return False

    def later(self, call: Callable[[], object]) -> None:
        call()


ENDLESS: Final[Turns] = _Endless()


def _nothing() -> None:
    """Nothing waits for the steps."""


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
    """These steps; if one raises, ``fail`` is called in place of those that are left, while the exception is handled."""
    try:
        yield from steps
    except Exception as failure:
        fail(failure)


def paced(turns: Turns, steps: Iterator[object]) -> Generator[None, None, None]:
    """The steps of work that knows no turns."""
    for _ in steps:
        if turns.is_over():
            yield


def finish(steps: Generator[object, None, T]) -> T:
    """Take all steps now, and return what they do."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            done: T = end.value
            return done


def each_in_turns(
    turns: Turns, items: Iterator[T], call: Callable[[T], object]
) -> Generator[None, None, None]:
    """Call a function with each item, and let go of it: steps of ``take_steps``."""
    left = deque(items)
    del items
    while left:
        call(left.popleft())  # all at once would be freed at once
        if turns.is_over():
            yield
