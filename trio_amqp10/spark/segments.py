"""Segments: messages as they came, in Arrow files; their rows are made when they are read.

A segment of format 2 has the octets of each message and what its delivery said, and no column of anybody's choice. So
whatever the options say when it is read, it can be read: they decide about the rows, not about what is stored.

::

    payload          all octets of the message, as the peer sent them
    delivery_tag     the sender's name for the delivery
    message_format   whether those octets are sections (2.8.11)
    received_at      microseconds since 1970
    (metadata)       the format, the address and the peer, which a segment has one of; tags (``spool_terminus_store``)

Format 1 had the rows of the run that wrote it. They are read if they have the columns that are wanted, or the octets
(``includeRaw``); if not, the error says with which options they can be read.

Knows Arrow and messages; neither the spool nor Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.errors import AmqpError, RemoteProtocolError

from .rows import RowMaker, Rows
from .schema import read_schema
from .spool import Slice
from .storage import open_source, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from .options import ReadOptions
    from .rows import Came

__all__ = ["SegmentError", "SegmentReader", "extra_of", "inlined", "keys", "segment"]

_FORMAT: Final = b"trio-amqp10.format"
_ADDRESS: Final = b"trio-amqp10.address"
_PEER: Final = b"trio-amqp10.peer"
_FORMER_IDS: Final = b"trio-amqp10.ids"
"""Where a segment of format 1 has the message-ids of its rows."""
_STORED: Final = pa.schema(
    [
        ("payload", pa.large_binary()),
        ("delivery_tag", pa.binary()),
        ("message_format", pa.int64()),
        ("received_at", pa.int64()),
    ]
)
_ROWS: Final = 2000
"""Rows that are made at a time."""


class SegmentError(AmqpError):
    """Rows of the spool cannot be read with these options, or by this version."""


class Stored(NamedTuple):
    """A message as it came (``rows.Came``)."""

    payload: bytes
    tag: bytes
    message_format: int


# Writing ------------------------------------------------------------------------------------------


def segment(
    came: Sequence[Came],
    moments: list[int],
    *,
    address: str,
    peer: str,
    extra: dict[bytes, Any] | None = None,
) -> pa.RecordBatch:
    """What a segment of these messages holds.

    Args:
        came: the messages.
        moments: when each came, in microseconds since 1970.
        address: where from.
        peer: whose container that is.
        extra: what else to say of them, by name; as JSON.
    """
    arrays = [
        pa.array([each.payload for each in came], pa.large_binary()),
        pa.array([each.tag for each in came], pa.binary()),
        pa.array([each.message_format for each in came], pa.int64()),
        pa.array(moments, pa.int64()),
    ]
    said = {_FORMAT: b"2", _ADDRESS: address.encode(), _PEER: peer.encode()}
    said |= {name: json.dumps(value).encode() for name, value in (extra or {}).items()}
    return pa.RecordBatch.from_arrays(arrays, schema=_STORED).replace_schema_metadata(said)


# Reading ------------------------------------------------------------------------------------------


def extra_of(path: Path | str, name: bytes) -> Any:
    """What the segment in this file says beside its messages; None if it says nothing of that name."""
    with open_source(str(path)) as file:
        metadata = pa.ipc.open_file(file).schema.metadata or {}
    return json.loads(metadata[name]) if name in metadata else None


def keys(path: Path | str, key: Callable[[bytes], str | None]) -> list[str | None]:
    """What ``key`` says of the messages in this file, by their octets; of a segment of format 1, what that says itself."""
    with open_source(str(path)) as file:
        batch = pa.ipc.open_file(file).get_batch(0)
        said = batch.schema.metadata or {}
        if _FORMAT not in said:
            return list(json.loads(said.get(_FORMER_IDS, b"[]")))
        octets, formats = batch.column(0).to_pylist(), batch.column(2).to_pylist()
    return [None if kind else key(payload) for payload, kind in zip(octets, formats, strict=True)]


def inlined(one: Slice) -> Slice:
    """The same rows with their octets, for a process that cannot see the file."""
    with _opened(one.source) as file:
        batch = pa.ipc.open_file(file).get_batch(0)
        said = batch.schema.metadata or {}
        names: tuple[bytes, ...] = (_FORMAT, _ADDRESS, _PEER)
        kept = {name: said[name] for name in names if name in said}
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
            f"{shown(source)} is not to be seen here: the executors need the folder of option 'spool' at the same path as the driver, "
            "or option 'spool.transport' = 'inline'"
        ) from None


class SegmentReader:
    """Makes rows of segments, as the options want them now.

    Args:
        options: of a reader.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._schema = read_schema(options)
        self._makers: dict[str, RowMaker] = {}

    def read(self, slices: Iterable[Slice]) -> Iterator[pa.RecordBatch]:
        """The rows of these slices, in order.

        Raises:
            SegmentError: a message cannot be decoded, and that is to be an error; or rows of format 1 lack what is wanted.
            OSError: a file cannot be read.
        """
        for source, start, stop, first in slices:
            with _opened(source) as file:
                batch = pa.ipc.open_file(file).get_batch(0)
                said = batch.schema.metadata or {}
                kind = said.get(_FORMAT)
                if kind is None:
                    yield self._former(batch.slice(start, stop - start), first + start)
                    continue
                if kind != b"2":
                    raise SegmentError(
                        f"rows from {first + start} on are of format {kind.decode()}, and this program knows formats 1 and 2: "
                        "run it with a newer trio-amqp10"
                    )
                address, peer = said[_ADDRESS].decode(), said[_PEER].decode()
                for at in range(start, stop, _ROWS):
                    taken = batch.slice(at, min(_ROWS, stop - at))
                    octets, tags, formats, moments = [taken.column(place).to_pylist() for place in range(4)]
                    came = list(map(Stored, octets, tags, formats))
                    yield self._made(came, moments, range(first + at, first + at + len(came)), address, peer)

    def _made(
        self, came: list[Stored], moments: list[int], numbers: range, address: str, peer: str
    ) -> pa.RecordBatch:
        maker = self._makers.get(address)
        if maker is None:
            maker = self._makers[address] = RowMaker(self._options, address=address)
        rows, fault = Rows(), None
        try:
            maker.gather(rows, came, 0)
        except RemoteProtocolError as wrong:
            fault = wrong
        if (
            rows.refused
        ):  # it was spooled when the options did not ask for that, and the peer has forgotten it
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
        """Rows of format 1: the columns that are wanted, or the octets, to make them from."""
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
        came = list(map(Stored, raw, tags, formats))
        return self._made(came, moments, range(first, first + len(came)), addresses[0], peers[0])
