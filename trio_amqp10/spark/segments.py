"""Segments: received messages in Arrow files, which are read as rows.

A segment of format 2 has the octets of each message and the fields of its delivery, independent of the options. So it
can be read with any options: they decide about the rows, not about the stored data.

::

    payload          all octets of the message, as the peer sent them
    delivery_tag     the delivery-tag
    message_format   0 if the octets are sections (2.8.11)
    received_at      microseconds since 1970
    (metadata)       the format, the address and the peer of all messages; tags (``spool_terminus_store``)

A segment of format 1 has the rows of the run that wrote it. It can be read if it has the wanted columns, or the octets
(``includeRaw``); otherwise the error names options that make it readable.

Knows Arrow and messages; neither the spool nor Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.core.errors import AmqpError, RemoteProtocolError

from .rows import RowMaker, Rows
from .schema import read_schema
from .spool import Slice
from .storage import open_source, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from .options import ReadOptions
    from .rows import ReceivedMessage

_FORMAT: Final = b"trio-amqp10.format"
_ADDRESS: Final = b"trio-amqp10.address"
_PEER: Final = b"trio-amqp10.peer"
_FORMER_IDS: Final = b"trio-amqp10.ids"
"""The metadata of a segment of format 1 that has the message-ids of its rows."""
_STORED: Final = pa.schema(
    [
        ("payload", pa.large_binary()),
        ("delivery_tag", pa.binary()),
        ("message_format", pa.int64()),
        ("received_at", pa.int64()),
    ]
)
_ROWS: Final = 2000
"""The most rows of a batch."""


class SegmentError(AmqpError):
    """Rows of the spool cannot be read with these options, or by this version."""


class StoredMessage(NamedTuple):
    """A message of a segment, which rows are made from (``rows.ReceivedMessage``)."""

    payload: bytes
    tag: bytes
    message_format: int


# Writing ------------------------------------------------------------------------------------------


def segment(
    came: Sequence[ReceivedMessage],
    moments: list[int],
    *,
    address: str,
    peer: str,
    extra: dict[bytes, Any] | None = None,
) -> pa.RecordBatch:
    """Return the content of a segment with these messages.

    Args:
        came: the messages.
        moments: when each came, in microseconds since 1970.
        address: the address of the messages.
        peer: the container-id of the peer.
        extra: more metadata, by name; the values are stored as JSON.
    """
    arrays = [
        pa.array([each.payload for each in came], pa.large_binary()),
        pa.array([each.tag for each in came], pa.binary()),
        pa.array([each.message_format for each in came], pa.int64()),
        pa.array(moments, pa.int64()),
    ]
    metadata = {_FORMAT: b"2", _ADDRESS: address.encode(), _PEER: peer.encode()}
    metadata |= {name: json.dumps(value).encode() for name, value in (extra or {}).items()}
    return pa.RecordBatch.from_arrays(arrays, schema=_STORED).replace_schema_metadata(metadata)


# Reading ------------------------------------------------------------------------------------------


def extra_of(path: Path | str, name: bytes) -> Any:
    """Return metadata that was stored as ``extra`` in a segment; None if missing."""
    with open_source(str(path)) as file:
        metadata = pa.ipc.open_file(file).schema.metadata or {}
    return json.loads(metadata[name]) if name in metadata else None


def keys(path: Path | str, key: Callable[[bytes], str | None]) -> list[str | None]:
    """Return the key of each message of a segment; None for a message without a key.

    Args:
        path: the file, or the source of a store.
        key: computes the key from the octets of a message; for a segment of format 1, its own ids are returned.
    """
    with open_source(str(path)) as file:
        batch = pa.ipc.open_file(file).get_batch(0)
        metadata = batch.schema.metadata or {}
        if _FORMAT not in metadata:
            return list(json.loads(metadata.get(_FORMER_IDS, b"[]")))
        octets, formats = batch.column(0).to_pylist(), batch.column(2).to_pylist()
    return [None if kind else key(payload) for payload, kind in zip(octets, formats, strict=True)]


def inlined(one: Slice) -> Slice:
    """Return a slice that contains the rows, for a process that cannot open the file."""
    with _opened(one.source) as file:
        batch = pa.ipc.open_file(file).get_batch(0)
        metadata = batch.schema.metadata or {}
        names: tuple[bytes, ...] = (_FORMAT, _ADDRESS, _PEER)
        kept = {name: metadata[name] for name in names if name in metadata}
        rows = batch.slice(one.start, one.stop - one.start).replace_schema_metadata(kept)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_batch(rows)
    return Slice(sink.getvalue().to_pybytes(), 0, rows.num_rows, one.first + one.start)


def _opened(source: str | bytes) -> pa.NativeFile:
    if isinstance(source, bytes):
        return pa.BufferReader(source)
    try:
        return open_source(source)
    except FileNotFoundError:
        raise SegmentError(
            f"{shown(source)} does not exist here: the executors need the folder of option 'spool' at the same path as the driver, "
            "or option 'spool.transport' = 'inline'"
        ) from None


class SegmentReader:
    """Reads segments, and makes the rows that the present options ask for.

    Args:
        options: of a reader.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._schema = read_schema(options)
        self._makers: dict[str, RowMaker] = {}

    def read(self, slices: Iterable[Slice]) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows of slices, in order.

        Raises:
            SegmentError: a message cannot be decoded, and ``onDecodeError`` makes that an error; or rows of format 1 lack wanted columns.
            OSError: a file cannot be read.
        """
        for source, start, stop, first in slices:
            with _opened(source) as file:
                batch = pa.ipc.open_file(file).get_batch(0)
                metadata = batch.schema.metadata or {}
                kind = metadata.get(_FORMAT)
                if kind is None:
                    yield self._former(batch.slice(start, stop - start), first + start)
                    continue
                if kind != b"2":
                    raise SegmentError(
                        f"rows from {first + start} on are of format {kind.decode()}, and this program knows formats 1 and 2: "
                        "run it with a newer trio-amqp10"
                    )
                address, peer = metadata[_ADDRESS].decode(), metadata[_PEER].decode()
                for at in range(start, stop, _ROWS):
                    taken = batch.slice(at, min(_ROWS, stop - at))
                    octets, tags, formats, moments = [taken.column(place).to_pylist() for place in range(4)]
                    came = list(map(StoredMessage, octets, tags, formats))
                    yield self._made(came, moments, range(first + at, first + at + len(came)), address, peer)

    def _made(
        self, came: list[StoredMessage], moments: list[int], numbers: range, address: str, peer: str
    ) -> pa.RecordBatch:
        maker = self._makers.get(address)
        if maker is None:
            maker = self._makers[address] = RowMaker(self._options, address=address)
        rows, fault = Rows(), None
        try:
            maker.gather(rows, came, 0)
        except RemoteProtocolError as wrong:
            fault = wrong
        if rows.refused:
            # ``reject`` is too late: the message was accepted when an earlier run put it into the spool.
            fault = rows.refused[0][1]
        if fault is not None:
            raise SegmentError(
                f"a message of rows {numbers.start} to {numbers.stop - 1} cannot be decoded: {fault}. It is in the spool, and "
                "nothing is lost: with option 'onDecodeError' = 'deadletter-column' this query goes on, and has the octets of "
                "such messages in column 'body'"
            ) from fault
        rows.moments = moments
        return maker.batch(rows, numbers, peer=peer)

    def _former(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return rows of format 1, from stored columns or made from stored octets."""
        batch = batch.replace_schema_metadata(None)
        has = {each.name: each.type for each in batch.schema}
        if all(has.get(each.name) == each.type for each in self._schema):
            names = batch.schema.names
            return pa.RecordBatch.from_arrays(
                [batch.column(names.index(each.name)) for each in self._schema], schema=self._schema
            )
        whole = ("raw", "delivery_tag", "message_format", "received_at", "address", "peer")
        if not all(name in has for name in whole):
            raise SegmentError(
                f"rows {first} to {first + batch.num_rows - 1} were spooled by a version that stored columns, and have only "
                f"{', '.join(has)}: run the query with the options that it had, or 'columns' with some of these, until those are read; "
                "then change them"
            )
        columns = {name: batch.column(batch.schema.names.index(name)) for name in whole}
        columns["received_at"] = columns["received_at"].cast(pa.int64())
        raw, tags, formats, moments, addresses, peers = [each.to_pylist() for each in columns.values()]
        came = list(map(StoredMessage, raw, tags, formats))
        return self._made(came, moments, range(first, first + len(came)), addresses[0], peers[0])
