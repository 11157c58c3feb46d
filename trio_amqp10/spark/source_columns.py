"""Source columns: where and when a message entered its log or queue (3.2.3).

``sourceColumns=true`` adds them to the columns of a reader. Peers give these values in message annotations:

===================  =========  ==============================  ===============================
column               type       Event Hubs and Service Bus      RabbitMQ 4
===================  =========  ==============================  ===============================
``enqueued_time``    timestamp  ``x-opt-enqueued-time``         ``x-opt-rabbitmq-received-time``
``sequence_number``  bigint     ``x-opt-sequence-number``       ``x-stream-offset``
``offset``           string     ``x-opt-offset``                ``x-stream-offset``
``partition_key``    string     ``x-opt-partition-key``         null
``partition``        string     of the address of a log, or     of the name of a partition of a
                                ``x-opt-partition-id``          super stream
===================  =========  ==============================  ===============================

A value of another type is null, as one that is missing; the column ``message_annotations`` has it.

Knows values and addresses; neither rows nor peers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from trio_amqp10.amqp10.message.sections import ANNOTATIONS, read_section

from .property_columns import ARROW_TYPES, taker_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ANNOTATIONS: Final = {
    "enqueued_time": ("timestamp", ("x-opt-enqueued-time", "x-opt-rabbitmq-received-time")),
    "sequence_number": ("long", ("x-opt-sequence-number", "x-stream-offset")),
    "offset": ("string", ("x-opt-offset", "x-stream-offset")),
    "partition_key": ("string", ("x-opt-partition-key",)),
    "partition": ("string", ("x-opt-partition-id",)),
}
"""The type of each column, and its annotations."""
SOURCE_COLUMNS: Final = {name: ARROW_TYPES[kind] for name, (kind, _) in _ANNOTATIONS.items()}
"""The Arrow type of each column."""
_PARTITIONS: Final = "/Partitions/"
_QUEUES: Final = "/queues/"


def source_reader(names: Iterable[str]) -> Callable[[bytes, Any], tuple[Any, ...]]:
    """Make a function that reads columns from the annotations of a message, in order."""
    wanted = [(taker_of(kind), keys) for kind, keys in [_ANNOTATIONS[name] for name in names]]

    def read(payload: bytes, span: Any) -> tuple[Any, ...]:
        found = read_section(ANNOTATIONS, payload, span)
        row: list[Any] = []
        for take, keys in wanted:
            value = next((found[key] for key in keys if found.get(key) is not None), None)
            row.append(None if value is None else take(value))
        return tuple(row)

    return read


def partition_of(address: str, super_streams: Iterable[str] = ()) -> str | None:
    """Return the partition that an address names; None if it names none.

    Args:
        address: of a log.
        super_streams: the names of the super streams whose partitions are read.
    """
    _, found, partition = address.rpartition(_PARTITIONS)
    if found:
        return partition
    stream = unquote(address.removeprefix(_QUEUES))
    owners = [each for each in super_streams if stream.startswith(f"{each}-")]
    return stream.removeprefix(f"{max(owners, key=len)}-") if owners else None


def source_arrays(
    names: list[str], rows: list[tuple[Any, ...] | None], partition: str | None
) -> dict[str, pa.Array]:
    """Return the columns of rows.

    Args:
        names: the columns.
        rows: what ``source_reader`` has read for each row; None for a message without annotations.
        partition: that of the address, which counts before that of an annotation.
    """
    made: dict[str, pa.Array] = {}
    for place, name in enumerate(names):
        if name == "partition" and partition is not None:
            values: list[Any] = [partition] * len(rows)
        else:
            values = [None if row is None else row[place] for row in rows]
        made[name] = pa.array(values, SOURCE_COLUMNS[name])
    return made
