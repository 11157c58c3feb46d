"""Properties of contents, by class (C 909-941, 1121-1143, 1325-1336, 1575-1587).

They are in the order of their flags. The class basic has the fourteen properties of 0-9-1, the class test has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.wire.content import BasicProperties, Properties, properties
from trio_amqp10.amqp091.wire.methods import octet, shortstr, table  # noqa: TC001 - the decorator reads them
from trio_amqp10.amqp091.wire.methods import timestamp as seconds  # noqa: TC001 - the same

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    """The class test, whose contents have no properties (asl)."""

    __test__ = False


PROPERTIES: Final[Mapping[int, type[Properties]]] = {
    each.class_id: each
    for each in (BasicProperties, FileProperties, StreamProperties, TunnelProperties, TestProperties)
}
"""The properties of each class, by the number of the class."""
