"""What only an adapter can raise."""

from __future__ import annotations

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import describe, link_error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (None, "without an error"),
        (amqp.ErrorInfo(condition="x:y"), "x:y"),
        (amqp.ErrorInfo(condition="x:y", description="why\tso\x07"), "x:y: why\ufffdso\ufffd"),
        (amqp.ErrorInfo(condition="x:y", description="z" * 5000), "x:y: " + "z" * 1019),
    ],
)
def test_error_is_described_within_bounds(error: amqp.ErrorInfo | None, text: str) -> None:
    assert describe(error) == text


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("amqp:link:stolen", amqp.LinkStolenError),
        ("amqp:link:redirect", amqp.LinkRedirectError),
        ("amqp:link:detach-forced", amqp.LinkDetachedError),
        (None, amqp.LinkDetachedError),
    ],
)
def test_link_error_follows_the_condition(condition: str | None, kind: type[Exception]) -> None:
    error = None if condition is None else amqp.ErrorInfo(condition=condition)
    raised = link_error("n", error, False)
    assert type(raised) is kind
    assert not raised.closed
    assert "link 'n' was detached" in str(raised)


def test_refused_and_detached_are_told_apart() -> None:
    refused = link_error("n", None, True, amqp.LinkRefusedError)
    assert "was refused" in str(refused)
    assert isinstance(refused, amqp.LinkDetachedError)


def test_delivery_errors_carry_outcome_and_delivery() -> None:
    rejected = amqp.Rejected(error=amqp.ErrorInfo(condition="x:y", description="z"))
    delivery = object()
    raised = amqp.DeliveryRejectedError(rejected, delivery)
    assert raised.outcome is rejected
    assert raised.delivery is delivery
    assert raised.condition == "x:y"
    assert str(raised) == "rejected, x:y: z"
    assert amqp.DeliveryRejectedError(amqp.Rejected(), delivery).condition is None
    assert "sent again" in str(amqp.DeliveryReleasedError(amqp.Released(), delivery))
    assert "delivery_failed" in str(amqp.DeliveryModifiedError(amqp.Modified(delivery_failed=True), delivery))


def test_link_error_names_the_address_where_there_is_one() -> None:
    raised = link_error("n", None, True, amqp.LinkRefusedError, "orders")
    assert str(raised) == "the link to 'orders' (n) was refused, without an error"


async def test_every_message_about_a_link_names_its_address() -> None:
    container = amqp.Container(strict=True)
    container.add_queue("orders")
    async with container.connect() as conn:
        async with conn.open_sender("orders", name="tea") as sender:
            with pytest.raises(
                amqp.LocalProtocolError, match=r"^the link to 'orders' \(tea\) cannot be resumed"
            ):
                await sender.resume()
        with pytest.raises(trio.ClosedResourceError, match=r"^the link to 'orders' \(tea\) was closed here$"):
            await sender.send("late")
        async with conn.open_receiver("orders", name="tea") as receiver:
            container.remove_node("orders")
            with pytest.raises(amqp.LinkDetachedError, match=r"^the link to 'orders' \(tea\) was detached, "):
                await receiver.receive()
        for opening in (conn.open_sender("none", name="tea"), conn.open_receiver("none", name="tea")):
            with pytest.raises(amqp.LinkRefusedError, match=r"^the link to 'none' \(tea\) was refused, "):
                async with opening:
                    pytest.fail("it is open")
