"""Connect to the ``$management`` node of a container, by AMQP 1.0.

No other protocol reaches that node: a URL of AMQP 0-9-1 stands for the same host and port in AMQP 1.0. Knows no request.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio_amqp10 as amqp
from trio_amqp10.amqp091.client.urls import parse_place
from trio_amqp10.net.urls import parse_url

from .command_runner import CommandError
from .server_defaults import is_091

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .dial_options import DialOptions


def management_url(text: str) -> tuple[str, str | None]:
    """Return the URL to dial in AMQP 1.0, and the hostname for its ``open`` frame.

    For a URL of 0-9-1 the hostname is the virtual host, or None for ``/``.

    Raises:
        LocalProtocolError: the text is not a URL.
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
    """Open a connection of AMQP 1.0 for requests to ``$management``.

    Args:
        url: a URL of AMQP 1.0 or 0-9-1.
        dial: the options for dialling.

    Raises:
        CommandError: the URL is of 0-9-1, and the server does not support AMQP 1.0.
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
            f"management needs AMQP 1.0, which the server at {parse_place(url).url.authority} does not support: give the URL of "
            'a server that does, as amqp:// or amqps:// of "amqp10 serve --management"'
        ) from None
