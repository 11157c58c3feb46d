"""Deliveries are written as a segment, without copies that the spool has and without what is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.receiving_figures import ReceivingFigures
from trio_amqp10.spark.spool import Spool, SpoolError
from trio_amqp10.spark.spool_writer import SpoolWriter, Taken

from .desk import bodies, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BAD = b"\x00\x53\x73\xc0\x01\x05"


class Came(NamedTuple):
    payload: bytes
    message_format: int = 0
    tag: bytes = b"tag"


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    one = Spool(tmp_path)
    yield one
    one.close()


def writer(spool: Spool, figures: ReceivingFigures, **given: str) -> SpoolWriter:
    needed = {"url": "amqp://h", "address": "q", "spool": "/s"}
    return SpoolWriter(QueueOptions.parse(needed | dotted(given)), spool, None, figures)


def write(one: SpoolWriter, *payloads: bytes) -> tuple[Any, int]:
    deliveries: Any = [Came(each) for each in payloads]
    receiver: Any = None
    return trio.run(one.write, [Taken(deliveries, receiver, 7)], "peer")


def said(*ids: int | None) -> list[bytes]:
    return [amqp.Message(b"%d" % (each or 0), message_id=each).to_payload() for each in ids]


def figures() -> ReceivingFigures:
    return ReceivingFigures()


def test_deliveries_are_one_segment_in_order(spool: Spool) -> None:
    payloads = said(1, 2, None)
    refused, largest = write(writer(spool, figures()), *payloads)
    assert (refused, largest) == ([], max(map(len, payloads)))
    assert (spool.end, len(spool.segments)) == (3, 1)
    assert bodies(spool) == [b"1", b"2", b"0"]


def test_copy_of_what_the_spool_has_is_left_out_and_counted(spool: Spool) -> None:
    write(writer(spool, figures(), dedup="message-id"), *said(1, 2))
    count = figures()
    again = writer(spool, count, dedup="message-id")  # which reads what is there
    write(again, *said(2, 3, 3, None, None))
    assert bodies(spool) == [b"1", b"2", b"3", b"0", b"0"]
    assert count.duplicates == 2
    assert write(again, *said(3)) == ([], 0)
    assert (spool.end, count.duplicates) == (5, 3)


def test_message_that_cannot_be_decoded_is_handed_back_to_be_rejected(spool: Spool) -> None:
    count = figures()
    refused, _ = write(writer(spool, count, onDecodeError="reject"), *said(1), BAD, *said(2))
    assert [delivery.payload for delivery, _ in refused] == [BAD]
    assert (bodies(spool), count.rejected, count.duplicates) == ([b"1", b"2"], 1, 0)


def test_disk_that_fails_is_no_lost_connection(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("broken")

    one = writer(spool, figures(), dedup="message-id")
    with monkeypatch.context() as patched:
        patched.setattr(Spool, "write", fail)
        with pytest.raises(SpoolError, match="cannot be written: broken"):
            write(one, *said(1))
    write(one, *said(1))  # which is no copy, because nothing was written
    assert bodies(spool) == [b"1"]
