"""Requests to the management node of a peer: its statuses, replies of the wrong shape, and replies that do not come."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.container.management import ManagementError, OperationRefusedError
from trio_amqp10.container.management.remote_requests import RemoteRequests

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

OK = {"statusCode": 200, "statusDescription": "OK"}


@asynccontextmanager
async def answered(
    body: Any = None, status: Any = OK, *, after: float = 0, asked: list[amqp.Message] | None = None
) -> AsyncGenerator[RemoteRequests]:
    """Requests to a peer that answers each with the same."""
    container = amqp.Container()

    @container.function("$management")
    async def answer(message: amqp.Message) -> amqp.Message:
        if asked is not None:
            asked.append(message)
        await trio.sleep(after)
        return amqp.Message(body, application_properties=status)

    async with container.connect() as conn, conn.open_requester("$management") as requester:
        yield RemoteRequests(requester, "$management", 10)


async def test_request_has_its_properties_and_returns_the_body() -> None:
    asked: list[amqp.Message] = []
    async with answered({"count": 3}, asked=asked) as requests:
        assert await requests.reply_to("PURGE", [1], name="q", if_empty=True, count=2, reason=None) == {
            "count": 3
        }
        await requests.node_reply_to("EXPORT")
    properties = dict(asked[0].application_properties)
    assert properties == {"operation": "PURGE", "name": "q", "if-empty": True, "count": 2}
    assert type(properties["count"]) is amqp.Int
    assert asked[0].body == [1]
    assert dict(asked[1].application_properties) == {
        "operation": "EXPORT",
        "type": "org.amqp.management",
        "name": "self",
    }


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "invalid"),
        (403, "forbidden"),
        (404, "not-found"),
        (409, "exists"),
        (412, "precondition"),
        (422, "refused"),
        (500, "store-failed"),
        (501, "not-implemented"),
        (302, "other"),
        (199, "other"),
    ],
)
async def test_refusal_has_the_reason_of_management(status: int, reason: str) -> None:
    async with answered(None, {"statusCode": status, "statusDescription": "not here"}) as requests:
        with pytest.raises(OperationRefusedError) as refused:
            await requests.reply_to("PURGE")
    error = refused.value
    assert isinstance(error, ManagementError)
    assert (error.operation, error.status, error.reason, error.description) == (
        "PURGE",
        status,
        reason,
        "not here",
    )
    assert str(error) == f"the peer refuses PURGE: not here ({status})"


async def test_refusal_in_the_form_of_event_hubs_is_one() -> None:
    status = {"status-code": 404, "status-description": "not here"}
    async with answered(None, status) as requests:
        with pytest.raises(OperationRefusedError, match=r"refuses PURGE: not here \(404\)"):
            await requests.reply_to("PURGE")


@pytest.mark.parametrize("description", [None, 5, ""])
async def test_refusal_without_a_description_says_so(description: Any) -> None:
    async with answered(None, {"statusCode": 404, "statusDescription": description}) as requests:
        with pytest.raises(OperationRefusedError, match=r"refuses PURGE: without a description \(404\)"):
            await requests.reply_to("PURGE")


@pytest.mark.parametrize("status", [{}, {"statusCode": "200"}, {"statusCode": True}, {"statusCode": None}])
async def test_reply_without_a_status_is_of_another_shape(status: Any) -> None:
    async with answered({}, status) as requests:
        with pytest.raises(
            amqp.RemoteProtocolError, match=r"PURGE has another shape .* statusCode="
        ) as wrong:
            await requests.reply_to("PURGE")
    assert (wrong.value.condition, wrong.value.scope) == ("amqp:invalid-field", "link")


@pytest.mark.parametrize("body", [None, [], "x", 5, b"x"])
async def test_body_that_is_no_map_is_of_another_shape(body: Any) -> None:
    async with answered(body) as requests:
        for call in (requests.map_reply_to("EXPORT"), requests.page("queue", 0, 5)):
            with pytest.raises(amqp.RemoteProtocolError, match=r"the body is .*: expected a map"):
                await call


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"attributeNames": ["name"]},
        {"attributeNames": "name", "results": []},
        {"attributeNames": ["name"], "results": [5]},
        {"attributeNames": ["name"], "results": [["q"], ["a", "b"]]},
        {"attributeNames": ["name"], "results": {"a": 1}},
    ],
)
async def test_table_with_other_rows_is_of_another_shape(table: Any) -> None:
    async with answered(table) as requests:
        with pytest.raises(amqp.RemoteProtocolError, match="expected a table"):
            await requests.page("queue", 0, 5)


@pytest.mark.parametrize(("status", "more"), [(OK, True), ({**OK, "more": False}, False)])
async def test_page_without_more_is_followed_by_another_if_it_is_full(status: Any, more: bool) -> None:
    async with answered({"attributeNames": ["name"], "results": [["q"]]}, status) as requests:
        assert await requests.page("queue", 0, 1) == ([{"name": "q"}], more)
        assert await requests.page("queue", 0, 2) == ([{"name": "q"}], False)


async def test_reply_that_never_comes_is_waited_for_so_long(autojump_clock: MockClock) -> None:
    async with answered(after=100) as requests:
        began = trio.current_time()
        with pytest.raises(
            trio.TooSlowError,
            match=r"^\$management did not answer PURGE within 10 s: it may have done it or not$",
        ):
            await requests.reply_to("PURGE")
        assert trio.current_time() - began == 10
