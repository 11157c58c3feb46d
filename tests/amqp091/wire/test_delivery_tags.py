"""Delivery tags: what one settling would settle, and which tag may come again."""

from __future__ import annotations

from trio_amqp10.amqp091.wire.delivery_tags import Tags


def test_tags_know_what_one_settling_with_multiple_would_settle() -> None:
    tags = Tags()
    for tag in range(1, 6):
        tags.add(tag)
    assert tags.front({1, 2, 4}) == 2
    assert tags.front({2}) == 0
    assert tags.front(range(1, 6)) == 5
    assert 3 in tags
    tags.settle(3, multiple=True)
    assert 3 not in tags


def test_tag_of_a_delivery_that_needs_no_settling_may_come_again() -> None:
    tags = Tags()
    assert tags.add(1)
    assert not tags.add(1)
    assert tags.add(2, settled=True)
    assert tags.add(2, settled=True)
    assert tags.add(2)
    assert not tags.add(2)
    assert not tags.add(1, settled=True)


def test_rollback_restores_all_that_a_transaction_settled() -> None:
    tags = Tags()
    tags.transactional = True
    for tag in range(1, 5):
        tags.add(tag)
    tags.settle(4, multiple=False)
    tags.commit()
    tags.settle(2, multiple=False)
    tags.settle(1, multiple=False)
    tags.rollback()
    assert tags.settle(0, multiple=True) == (1, 2, 3)
