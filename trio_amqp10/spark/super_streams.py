"""Finds the streams of RabbitMQ that the options mean, through its management.

A super stream is an exchange with a stream for each partition, which is called ``<exchange>-<key>`` and bound with that
key; by default the keys are numbers from 0 on. Over AMQP 1.0, RabbitMQ does not list the bindings of an exchange; it
only answers whether one queue is bound with one key. So numbers are tried until one is not bound; other keys must be
given (``partitionKeys``). Likewise, queues are not listed, and their numbered names are tried.

Knows the management of RabbitMQ 4, not the content of streams (``log_dialects``).
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import trio

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.rabbitmq import ManagementError, open_management, queue_address

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import trio_amqp10 as amqp
    from trio_amqp10.rabbitmq import Management

    from .options import LogOptions

_NOT_FOUND: Final = 404
_QUEUES: Final = "/queues/"


async def find_streams(connection: amqp.Connection, options: LogOptions) -> tuple[str, ...]:
    """Return the addresses of the streams that the options mean and that exist now.

    Raises:
        LocalProtocolError: a super stream has no partition, or no queue matches the pattern.
        LinkRefusedError: the peer has no management of RabbitMQ 4.
        ManagementError: the management refuses a request.
        TimeoutError: the management did not answer within ``read_timeout`` seconds.

    Cancelled: nothing has changed.
    """
    if options.addressed:
        return options.addressed
    try:
        return await _find(connection, options)
    except trio.TooSlowError:
        raise TimeoutError(
            f"the management of {options.where} did not answer within {options.read_timeout:g} s (readTimeout), so it is "
            "unknown which streams exist"
        ) from None


async def _find(connection: amqp.Connection, options: LogOptions) -> tuple[str, ...]:
    found: list[str] = []
    async with open_management(connection, timeout=options.read_timeout) as broker:
        if options.address_pattern is not None:
            found += [address async for address in _numbered(broker, options.address_pattern)]
        for name in options.super_streams or ():
            partitions = [each async for each in _partitions(broker, name, options.partition_keys)]
            if not partitions:
                raise LocalProtocolError(
                    f"{name!r} is no super stream with numbered partitions: there is no queue {name + '-0'!r} that is bound to it "
                    "with the key '0'. If its partitions have other keys, name them in option 'partitionKeys'"
                )
            found += partitions
    if not found:
        raise LocalProtocolError(
            f"there is no queue at {options.address_pattern!r} with a 0 in place of the *, so there is nothing to read"
        )
    return tuple(found)


async def _numbered(broker: Management, pattern: str) -> AsyncGenerator[str]:
    for number in count():
        address = pattern.replace("*", str(number))
        try:
            await broker.queue(unquote(address.removeprefix(_QUEUES)))
        except ManagementError as refused:
            if refused.status != _NOT_FOUND:
                raise
            return
        yield address


async def _partitions(broker: Management, name: str, keys: tuple[str, ...] | None) -> AsyncGenerator[str]:
    for key in map(str, count()) if keys is None else keys:
        queue = f"{name}-{key}"
        if await broker.bindings(name, queue=queue, routing_key=key):
            yield queue_address(queue)
        elif keys is None:
            return
        else:
            raise LocalProtocolError(f"{name!r} has no partition of the key {key!r} (option 'partitionKeys')")
