"""Connect to a broker, and find out of which kind it is.

Knows both kinds of ends; knows no plan.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

import trio_amqp10 as amqp
from trio_amqp10.net.urls import parse_url, split_url
from trio_amqp10.rabbitmq import ManagementError, open_management
from trio_amqp10.tools.cli.command_runner import CommandError, in_options
from trio_amqp10.tools.cli.dial_management import management_url
from trio_amqp10.tools.cli.open_management import RABBITMQ, operation_errors
from trio_amqp10.tools.cli.server_defaults import is_091

from .container_end import ContainerEnd
from .rabbitmq_end import RabbitMQEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.tools.cli.dial_options import DialOptions

End: TypeAlias = ContainerEnd | RabbitMQEnd

_PATIENCE: Final = 5.0
"""Seconds to wait for the first answer of RabbitMQ."""
_LONG_PATIENCE: Final = 600.0
"""Seconds to wait for each reply of a container, which may move messages for it."""


@asynccontextmanager
async def open_end(url: str, dial: DialOptions) -> AsyncGenerator[End, None]:
    """Connect to a container or to RabbitMQ 4.

    Args:
        url: a URL of AMQP 1.0, or of 0-9-1 with a virtual host.
        dial: the options for dialling.

    Raises:
        CommandError: it is neither.
        OSError, AmqpError: as ``open_connection``.

    Cancelled: the connection is closed.
    """
    where, host = management_url(url)
    name = parse_url(where).authority
    if host is not None:
        async with dial.dial(where, hostname=host) as connection:
            known = connection.remote.properties.get("product")
        if known == RABBITMQ:  # which takes a virtual host only in this form
            host = f"vhost:{host}"
    async with dial.dial(where, hostname=host) as connection, AsyncExitStack() as stack:
        if connection.remote.properties.get("product") != RABBITMQ:
            try:
                management = await stack.enter_async_context(
                    connection.open_management(timeout=_LONG_PATIENCE)
                )
            except (amqp.LinkRefusedError, amqp.SessionEndedError) as refused:
                raise CommandError(
                    in_options(f"{name} is neither a container with $management nor RabbitMQ 4 ({refused})")
                ) from None
            with operation_errors():
                yield ContainerEnd(connection, management, name)
            return
        try:
            broker = await stack.enter_async_context(open_management(connection))
            with trio.fail_after(_PATIENCE), suppress(ManagementError):  # Any answer is one of RabbitMQ.
                await broker.queue("amqp10")
        except trio.TooSlowError:
            raise CommandError(
                f"{name}: RabbitMQ did not answer within {_PATIENCE:g} s: run the command again later"
            ) from None
        except (amqp.LinkRefusedError, amqp.SessionEndedError) as refused:
            raise CommandError(
                f"{name} is RabbitMQ without /management ({refused}): expected version 4 or later"
            ) from None
        yield RabbitMQEnd(connection, broker, name, partial(dial.dial_091, _url_091(url)))


def _url_091(url: str) -> str:
    """Return the URL of the same broker in AMQP 0-9-1.

    One of AMQP 1.0 leads to the virtual host ``/``.
    """
    return url if is_091(url) else split_url(url)[0]
