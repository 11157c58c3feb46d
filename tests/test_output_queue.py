"""What an engine has to write: answers, and what was sent because there was room."""

from __future__ import annotations

from trio_amqp10.output_queue import OutputQueue


def test_first_octets_and_the_end_are_news() -> None:
    news: list[int] = []
    queue = OutputQueue(10)
    queue.add(b"ab")
    queue.notify()
    assert queue.take() == b"ab"
    queue.on_output = lambda: news.append(queue.size)
    queue.add(b"ab")
    queue.add_paced(b"cd")
    assert (news, bool(queue), queue.wrote) == ([0], True, True)
    assert (queue.take(), bool(queue)) == (b"abcd", False)
    queue.add_paced(b"e")
    queue.notify()
    assert news == [0, 0, 1]


def test_answers_alone_take_the_room_for_answers() -> None:
    queue = OutputQueue(4)
    queue.add_paced(b"abcd")
    assert (queue.has_room, queue.has_room_for_answers) == (False, True)
    queue.add(b"abcd")
    assert (queue.size, queue.answers, queue.has_room_for_answers) == (8, 4, False)
    queue.clear()
    assert (queue.has_room, queue.has_room_for_answers, queue.take()) == (True, True, b"")
