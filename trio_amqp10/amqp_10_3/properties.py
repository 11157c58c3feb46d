"""The properties of contents of 10.3, class by class, in the order of their flags (C 909-941, 1121-1143, 1325-1336, 1575-1587).

Those of the class basic are the fourteen of 0-9-1. Contents of the class test have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.content import BasicProperties, Properties, properties
from trio_amqp10.amqp091.methods import octet, shortstr, table  # noqa: TC001 - the decorator reads them
from trio_amqp10.amqp091.methods import timestamp as seconds  # noqa: TC001 - the same

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROPERTIES", "FileProperties", "StreamProperties", "TestProperties", "TunnelProperties"]


@properties(70)
class FileProperties(Properties):
    """The properties of the class file (C 1121-1143)."""

    content_type: shortstr | None = None
    content_encoding: shortstr | None = None
    headers: table | None = None
    priority: octet | None = None
    reply_to: shortstr | None = None
    message_id: shortstr | None = None
    filename: shortstr | None = None
    timestamp: seconds | None = None
    cluster_id: shortstr | None = None


@properties(80)
class StreamProperties(Properties):
    """The properties of the class stream (C 1325-1336)."""

    content_type: shortstr | None = None
    content_encoding: shortstr | None = None
    headers: table | None = None
    priority: octet | None = None
    timestamp: seconds | None = None


@properties(110)
class TunnelProperties(Properties):
    """The properties of the class tunnel (C 1575-1587)."""

    headers: table | None = None
    proxy_name: shortstr | None = None
    data_name: shortstr | None = None
    durable: octet | None = None
    broadcast: octet | None = None


@properties(120)
class TestProperties(Properties):
    """Contents of the class test have no properties (asl)."""

    __test__ = False


PROPERTIES: Final[Mapping[int, type[Properties]]] = {
    each.class_id: each
    for each in (BasicProperties, FileProperties, StreamProperties, TunnelProperties, TestProperties)
}
"""By the number of the class."""
