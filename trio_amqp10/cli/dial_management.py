"""Where the management of a container is reached: ``$management`` is a node that AMQP 1.0 alone has.

A URL of AMQP 0-9-1 stands for the same host and port in AMQP 1.0. Knows what is dialled; knows no request.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio_amqp10 as amqp
from trio_amqp10.amqp091.client.urls import parse_place
from trio_amqp10.net.urls import parse_url

from .amqp091_target import is_091
from .command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .dial_options import DialOptions

__all__ = ["dial_management", "management_url"]


def management_url(text: str) -> tuple[str, str | None]:
    """What to dial in AMQP 1.0 for this URL, and the hostname to ask for there: the virtual host of 0-9-1, unless it is ``/``.

    Raises:
        LocalProtocolError: it is no URL.
    """
    if not is_091(text):
        parse_url(text)
        return text, None
    place = parse_place(text)
    scheme, _, rest = str(place.url).partition("://")
    user, password = (
        None if each is None else quote(each, safe="") for each in (place.url.username, place.url.password)
    )
    login = "" if user is None else f"{user}@" if password is None else f"{user}:{password}@"
    return f"{scheme}://{login}{rest}", None if place.virtual_host == "/" else place.virtual_host


@asynccontextmanager
async def dial_management(url: str, dial: DialOptions) -> AsyncGenerator[amqp.Connection, None]:
    """A connection of AMQP 1.0 to ask ``$management`` on.

    Args:
        url: of AMQP 1.0, or of 0-9-1.
        dial: how.

    Raises:
        CommandError: the URL is of 0-9-1, and what answers there does not speak AMQP 1.0.
        OSError, AmqpError: as ``open_connection``.

    Cancelled: the connection is closed.
    """
    where, hostname = management_url(url)
    try:
        async with dial.dial(where, hostname=hostname) as connection:
            yield connection
    except amqp.RemoteProtocolError as failure:
        if not is_091(url) or failure.rule != "protocol-header":
            raise
        raise CommandError(
            f"management is a part of AMQP 1.0, which what listens at {parse_place(url).url.authority} does not speak: give "
            'a URL where it is spoken, as amqp:// or amqps:// of "amqp10 serve --management"'
        ) from None
