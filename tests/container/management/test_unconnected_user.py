"""Permissions of a user without a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10 import sasl
from trio_amqp10.container import Container
from trio_amqp10.container.management.errors import ManagementError

if TYPE_CHECKING:
    from trio_amqp10.broker.rights.access import Access


async def test_authorise_sees_the_identity_and_no_connection() -> None:
    seen: list[tuple[str | None, str, str | None]] = []

    async def authorise(access: Access) -> bool:
        seen.append((access.identity and access.identity.name, access.action, access.address))
        return access.action == "manage"

    container = Container(authorise=authorise)
    container.add_queue("orders")
    user = sasl.Identity("alice", "PLAIN")
    assert await container.management.on_behalf_of(user).purge("orders") == 0
    assert ("alice", "manage", "orders") in seen


async def test_user_who_is_not_authenticated_is_asked_for_too() -> None:
    def authorise(access: Access) -> bool:
        return access.identity is not None

    container = Container(authorise=authorise)
    container.add_queue("orders")
    with pytest.raises(ManagementError) as refused:
        await container.management.on_behalf_of(None).purge("orders")
    assert refused.value.reason == "forbidden"
