"""Computes offsets of logs: the end of a batch, and the beginning of a new log.

An offset is the number of the next message, by log. A checkpoint may have logs that are not read now: their numbers are
kept, so that a log that reappears is not read again. A new log joins at its beginning, with no row in that
batch: so its beginning is in Spark's journal before a message of it is read, and a batch that is planned again has the same
rows.

Knows numbers; neither peers nor Spark.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trio_amqp10.core.errors import AmqpError

from .options import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Offsets = dict[str, int]

_log = logging.getLogger("trio_amqp10.spark")


class DataLossError(AmqpError):
    """Messages that a checkpoint or a batch refers to are not in the log any more."""


def beginnings(
    logs: Iterable[str],
    place_of: Callable[[str], str | int | Moment],
    starts: Callable[[], Mapping[str, int]],
    ends: Mapping[str, int],
    at_moments: Callable[[Mapping[str, int]], Mapping[str, int]],
) -> Offsets:
    """Return the number at which to begin, or to end, each log.

    Args:
        logs: the logs.
        place_of: returns the option for a log: ``earliest``, ``latest``, a number or a moment.
        starts: finds the number of the first message of each log; called only if needed.
        ends: the number after the last message of each log.
        at_moments: finds, for logs with a moment in milliseconds since 1970, the number of the first message that came
            then or later, or the number after the last message; called only if needed.
    """
    wanted = {log: place_of(log) for log in logs}
    moments = {log: where.milliseconds for log, where in wanted.items() if isinstance(where, Moment)}
    found: Mapping[str, int] = starts() if "earliest" in wanted.values() else {}
    by_moment: Mapping[str, int] = at_moments(moments) if moments else {}
    chosen: Offsets = {}
    for log, where in wanted.items():
        if isinstance(where, Moment):
            chosen[log] = by_moment[log]
        else:
            chosen[log] = (
                found[log] if where == "earliest" else ends[log] if where == "latest" else int(where)
            )
    return chosen


def next_offsets(
    at: Mapping[str, int],
    ends: Mapping[str, int],
    begin: Callable[[list[str]], Mapping[str, int]],
    *,
    most: int | None,
    fail_on_data_loss: bool,
) -> Offsets:
    """Return the end of the next batch, with about as many rows of each log.

    A log with fewer rows leaves its share to the others.

    Args:
        at: where the last batch ended.
        ends: the number after the last message of each log that is read now.
        begin: finds where to begin logs that are not in ``at``, and logs that were replaced.
        most: the most rows of the batch; None for all rows.
        fail_on_data_loss: whether a log that ends before ``at`` is an error; otherwise it is read from its beginning.

    Raises:
        DataLossError: a log ends before ``at``, so it was replaced by another one of the same name.
    """
    lost = [log for log, end in ends.items() if end < at.get(log, 0)]
    for log in lost:
        loss = f"the checkpoint is at message {at[log]} of {log!r}, which ends with {ends[log]} now: it was replaced by another log of that name"
        if fail_on_data_loss:
            raise DataLossError(
                f"{loss}; begin with a new checkpoint, or read the new log from its beginning with option 'failOnDataLoss' = 'false'"
            )
        _log.warning("%s; it is read from its beginning", loss)
    chosen = dict(at)
    joining = [log for log in ends if log not in at]
    if joining or lost:
        chosen |= begin(joining + lost)
    known = sorted(
        (log for log in ends if log in at and log not in lost), key=lambda log: ends[log] - at[log]
    )
    left = most
    for place, log in enumerate(known):
        chosen[log] = ends[log]
        if left is not None:
            share = -(-left // (len(known) - place))
            chosen[log] = min(ends[log], at[log] + share)
            left -= chosen[log] - at[log]
    return chosen


def ranges(start: Mapping[str, int], end: Mapping[str, int], least: int) -> list[tuple[str, int, int]]:
    """Return the messages between two offsets as ranges: log, first number, end.

    Args:
        start: where the batch begins.
        end: where the batch ends.
        least: about the number of ranges to return.
    """
    found = [(log, start[log], stop) for log, stop in end.items() if stop > start.get(log, stop)]
    rows = sum(stop - first for _, first, stop in found)
    size = max(1, -(-rows // least))
    return [(log, at, min(at + size, stop)) for log, first, stop in found for at in range(first, stop, size)]
