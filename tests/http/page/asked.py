"""The requests of the page, as the page makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.http.served import Client


async def post(client: Client, operation: str, **body: Any) -> Any:
    """The answer of an operation that succeeds."""
    answer = await client.ask("POST", f"amqp10/{operation}", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def fault(client: Client, operation: str, **body: Any) -> tuple[int, str]:
    """The status and the reason of an operation that is refused."""
    status, _, reason = await client.fault("POST", f"amqp10/{operation}", body)
    return status, reason
