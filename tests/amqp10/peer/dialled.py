"""A listener to dial, with users."""

from __future__ import annotations

from typing import Any

import trio_amqp10 as amqp

USERS = amqp.sasl.Server(users={"ann": "s3cret"})


def somebody_listens(_: object) -> bool:
    """In place of ``is_private``."""
    return False


async def dial(where: Any, **options: Any) -> None:
    async with amqp.open_connection(where, **options):
        pass
