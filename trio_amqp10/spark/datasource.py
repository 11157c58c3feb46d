"""The data source ``amqp10``: checks options, and makes readers and writers.

Knows the options and the schema; ``readers`` and ``writers`` do the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from .offset_stream import LogBatchReader, LogReader
from .options import BrowseOptions, LogOptions, OptionError, QueueOptions, SinkOptions
from .readers import BrowseReader, QueueStreamReader
from .schema import check_sink, read_schema
from .writers import BatchWriter, StreamWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .options import ReadOptions


class Amqp10DataSource(DataSource):
    """The data source of ``format("amqp10")``.

    ``readStream`` receives from a queue or a log, ``read`` browses a queue or reads a log, and ``write`` and
    ``writeStream`` send.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format``."""
        return "amqp10"

    def schema(self) -> StructType:
        """Return the columns; only the options that decide them are checked here."""
        return from_arrow_schema(read_schema(self._read_options()))

    def _read_options(self) -> QueueOptions | LogOptions | BrowseOptions:
        """Parse the options as those of a stream, or otherwise as those of a batch.

        Spark does not pass here whether it will stream, so the options that only one of both has decide.
        """
        if self._is_log:
            return LogOptions.parse(self.options)
        try:
            return QueueOptions.parse(self.options)
        except OptionError as no_stream:
            try:
                return BrowseOptions.parse(self.options)
            except OptionError as no_batch:
                wanted = "spool" in self.options or self.options.get("mode") == "queue"
                raise (no_stream if wanted else no_batch) from None

    @property
    def _is_log(self) -> bool:
        return self.options.get("mode", "").strip().lower() == "log"

    def reader(self, schema: StructType) -> BrowseReader | LogBatchReader:
        """Make the reader for ``spark.read``."""
        if self._is_log:
            ranged = LogOptions.parse(self.options)
            ranged.check_batch()
            _check_schema(schema, ranged)
            return LogBatchReader(ranged)
        options = BrowseOptions.parse(self.options)
        _check_schema(schema, options)
        return BrowseReader(options)

    def streamReader(self, schema: StructType) -> QueueStreamReader | LogReader:  # noqa: N802 - Spark's name
        """Make the reader for ``spark.readStream``."""
        if self._is_log:
            replayed = LogOptions.parse(self.options)
            replayed.check_stream()
            _check_schema(schema, replayed)
            return LogReader(replayed)
        options = QueueOptions.parse(self.options)
        _check_schema(schema, options)
        return QueueStreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Make the writer for ``df.write``."""
        options = _sink_options(self.options, schema)
        if overwrite:
            raise OptionError("messages cannot be overwritten: use mode('append')")
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        """Make the writer for ``df.writeStream``."""
        options = _sink_options(self.options, schema)
        if overwrite:
            raise OptionError(
                "outputMode('complete') replaces the rows of earlier batches, and messages cannot be replaced: use outputMode('append') with "
                "a watermark, or send the rows of each batch in foreachBatch"
            )
        return StreamWriter(options)


def _check_schema(schema: StructType, options: ReadOptions) -> None:
    wanted, ours = to_arrow_schema(schema, timezone="UTC"), read_schema(options)
    if not wanted.equals(ours):
        raise OptionError(
            f"the schema cannot be chosen with .schema(...): use option 'columns'; with these options it is {ours.names}"
        )


def _sink_options(given: Any, schema: StructType) -> SinkOptions:
    options = SinkOptions.parse(given)
    check_sink(
        to_arrow_schema(schema, timezone="UTC"),
        ignore_unknown=options.ignore_unknown_columns,
        has_address=options.address is not None,
        property_columns=options.property_columns,
    )
    return options
