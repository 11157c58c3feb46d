"""Dispositions as frames of the draft: extents, size, and when there is none."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import transport
from trio_amqp10.amqp10.wire.values import Symbol, ULong

from .links import PAYLOAD, data, receiving, transfer
from .pairs import attached_pair, frames_in, talk


def test_ranges_of_one_pass_are_extents_of_one_frame() -> None:
    script, link = receiving(credit=100)
    for number in range(6):
        script << transfer(number, data(b"x"))
    deliveries = list(link.queue)
    for number in (0, 1, 3, 5):
        deliveries[number].accept()
    deliveries[2].release()
    (body,) = script.said()
    assert body.role is True
    assert [(each.first, each.last) for each in body.extents] == [(0, 1), (3, None), (5, None), (2, None)]
    assert all(each.settled for each in body.extents)


def test_very_many_ranges_are_several_frames() -> None:
    one, two, sender, receiver = attached_pair(credit=1_000, max_frame_size=4_096)
    sent = [sender.send(PAYLOAD) for _ in range(200)]
    talk(one, two)
    for delivery in list(receiver.queue)[::2]:
        delivery.modify(annotations={"x": "y" * 100})
    assert len([body for _, body in frames_in(two.data_to_send() or b"")]) > 3
    for delivery in list(receiver.queue)[1::2]:
        delivery.accept()
    talk(one, two)
    assert [each.settled for each in sent] == [False, True] * 100


def test_outcome_that_is_longer_in_the_draft_goes_without_its_attributes() -> None:
    one, two, sender, receiver = attached_pair(max_frame_size=4_096)
    sent = [sender.send(PAYLOAD) for _ in range(2)]
    talk(one, two)
    many = {Symbol(f"key{number:03}"): ULong(0) for number in range(300)}
    first, second = receiver.queue
    first.modify(delivery_failed=True, annotations=many)
    two.sessions[0].settlement.dispose(
        second, final.Rejected(error=transport.Error(condition=Symbol("x:y"), info=many))
    )
    talk(one, two)
    assert sent[0].state == final.Modified(delivery_failed=True)
    assert sent[1].state == final.Rejected(error=transport.Error(condition=Symbol("x:y")))


def test_sender_that_settles_first_hears_nothing_and_one_that_does_not_hears_the_outcome() -> None:
    script, link = receiving()
    script << transfer(0, data(b"once at most"), settled=True)
    link.queue.popleft().accept()
    assert script.said() == []
    script << transfer(1, data(b"once at least"))
    delivery = link.queue.popleft()
    assert not delivery.settled
    delivery.accept()
    (disposition,) = script.said()
    (extent,) = disposition.extents
    assert (extent.first, extent.settled) == (1, True)
    assert delivery.settled
