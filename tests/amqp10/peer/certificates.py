"""What tests of TLS dial: an authority, and URLs."""

from __future__ import annotations

from typing import Any

import trio_amqp10 as amqp

from .authority import authority

CA = str(authority().cafile)


async def dial(where: Any, **options: Any) -> None:
    async with amqp.open_connection(where, **options):
        pass


def url(scheme: str = "amqps", host: str = "127.0.0.1", port: int = 0) -> str:
    return f"{scheme}://{host}:{port}"


SCHEMES = ["amqps", "amqp+tls"]
