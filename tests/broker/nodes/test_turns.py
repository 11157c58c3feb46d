"""Long work of nodes in turns: steps go on later, in order, and fail where they are guarded."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.broker.nodes.turns import ENDLESS, each_in_turns, finish, guarded, paced, take_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Counted:
    """Turns that are over after so many questions; the calls of later ones wait."""

    def __init__(self, length: int) -> None:
        self.waiting: deque[Callable[[], object]] = deque()
        self.turns = 1
        self._length = length
        self._asked = 0

    def is_over(self) -> bool:
        self._asked += 1
        return self._asked % self._length == 0

    def later(self, call: Callable[[], object]) -> None:
        self.waiting.append(call)

    def run(self) -> None:
        while self.waiting:
            self.turns += 1
            self.waiting.popleft()()


@given(st.integers(0, 30), st.integers(1, 10))
def test_items_are_worked_on_in_order_and_so_many_in_a_turn(count: int, length: int) -> None:
    turns = Counted(length)
    done: list[int] = []
    ended: list[str] = []
    at_once = take_steps(
        turns, each_in_turns(turns, iter(range(count)), done.append), lambda: ended.append("end")
    )
    assert done == list(range(min(count, length)))
    assert at_once is (count < length)
    turns.run()
    assert done == list(range(count))
    assert ended == ["end"]
    assert turns.turns == count // length + 1


@given(st.integers(0, 30), st.integers(1, 10))
def test_small_steps_are_gathered_into_turns(count: int, length: int) -> None:
    assert len(list(paced(Counted(length), iter(range(count))))) == count // length


def test_work_in_an_endless_turn_is_done_at_once() -> None:
    done: list[int] = []
    assert take_steps(ENDLESS, each_in_turns(ENDLESS, iter([1, 2]), done.append))
    assert done == [1, 2]
    ENDLESS.later(lambda: done.append(3))
    assert done == [1, 2, 3]


def test_steps_wait_for_who_resumes_them() -> None:
    resumers: list[Any] = []
    done: list[str] = []

    def steps() -> Iterator[Any]:
        done.append("first")
        yield resumers.append
        done.append("second")

    assert not take_steps(ENDLESS, steps(), lambda: done.append("end"))
    assert done == ["first"]
    resumers[0]()
    assert done == ["first", "second", "end"]


def test_step_that_fails_is_told_in_place_of_the_rest() -> None:
    failures: list[Exception] = []
    done: list[str] = []

    def steps() -> Iterator[None]:
        done.append("first")
        yield
        raise ValueError("a bug")

    turns = Counted(1)
    take_steps(turns, guarded(steps(), failures.append), lambda: done.append("end"))
    turns.run()
    assert done == ["first", "end"]
    assert [str(each) for each in failures] == ["a bug"]


def test_step_that_fails_unguarded_raises() -> None:
    def steps() -> Iterator[None]:
        raise ValueError("a bug")
        yield

    with pytest.raises(ValueError, match="a bug"):
        take_steps(ENDLESS, steps())


def test_finish_takes_all_steps_and_returns_their_result() -> None:
    def steps() -> Any:
        yield
        yield
        return 7

    assert finish(steps()) == 7
