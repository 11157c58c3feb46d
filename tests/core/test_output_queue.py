"""The output of an engine: answers, and paced octets."""

from __future__ import annotations

from trio_amqp10.core.output_queue import OutputQueue


def test_first_octets_are_news() -> None:
    news: list[int] = []
    queue = OutputQueue(10, lambda: news.append(queue.size))
    queue.add(b"ab")
    queue.add_paced(b"cd")
    assert (news, bool(queue), queue.wrote) == ([0], True, True)
    assert (queue.take(), bool(queue)) == (b"abcd", False)
    queue.add_paced(b"e")
    assert news == [0, 0]


def test_answers_alone_take_the_room_for_answers() -> None:
    queue = OutputQueue(4, lambda: None)
    queue.add_paced(b"abcd")
    assert (queue.has_room, queue.has_room_for_answers) == (False, True)
    queue.add(b"abcd")
    assert (queue.size, queue.answers, queue.has_room_for_answers) == (8, 4, False)
    queue.clear()
    assert (queue.has_room, queue.has_room_for_answers, queue.take()) == (True, True, b"")
