"""Which streams of RabbitMQ are to be read: those that are named, or those that its management knows.

A super stream is an exchange with a stream for each partition, which is called ``<exchange>-<key>`` and bound with that
key; without keys of one's own those are numbers from 0 on. RabbitMQ lists no bindings of an exchange over AMQP 1.0: it
says of one queue and one key whether they are bound. So numbers are asked for until there is none; other keys have to be
known (``partitionKeys``). So it is with queues: no list, but an answer for each name.

Knows the management of RabbitMQ 4; what is in a stream, ``log_dialects`` knows.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import trio

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.rabbitmq import ManagementError, open_management, queue_address

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import trio_amqp10 as amqp
    from trio_amqp10.rabbitmq import Management

    from .options import LogOptions

__all__ = ["find_streams"]

_NOT_FOUND: Final = 404
_QUEUES: Final = "/queues/"


async def find_streams(connection: amqp.Connection, options: LogOptions) -> tuple[str, ...]:
    """The addresses of the streams that the options mean, now: there may be more later.

    Raises:
        LocalProtocolError: a super stream has no partition, or nothing has an address of this pattern.
        LinkRefusedError: the peer has no management of RabbitMQ 4.
        ManagementError: it does not say.
        TimeoutError: it did not answer within ``read_timeout`` seconds.

    Cancelled: nothing has happened.
    """
    if options.addressed:
        return options.addressed
    try:
        return await _find(connection, options)
    except trio.TooSlowError:
        raise TimeoutError(
            f"the management of {options.where} did not answer within {options.read_timeout:g} s (readTimeout), so nobody knows "
            "which streams there are"
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
                    "with the key '0'. Where its partitions have other keys, name those in option 'partitionKeys'"
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
