"""Record conversations to a file, and replay them against a peer.

Knows files and streams; ``tools.trace.frame_log`` has the format.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self

import trio

from trio_amqp10.amqp10.peer.tapped_stream import tapped
from trio_amqp10.amqp10.spec.transport import Attach
from trio_amqp10.tools.trace.frame_log import FrameLog, Record, Way, entries_of
from trio_amqp10.tools.trace.frame_text import describe
from trio_amqp10.tools.trace.read_capture import read_capture

from .expectations import Expectation

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator
    from types import TracebackType

    from trio_amqp10.tools.trace.frame_splitter import Piece

    from .scripted_peer import ScriptedPeer

_OF_ITS_OWN: Final = (
    "container_id",
    "hostname",
    "name",
    "initial_response",
    "challenge",
    "response",
    "additional_data",
)
"""Fields that differ in every run, or that a frame log does not keep."""


class Recorder:
    """A writer of a frame log: ``with Recorder("talk.jsonl") as recorder``.

    Args:
        path: the file, which is overwritten.
        secrets: whether to keep passwords and other secrets; otherwise they are replaced by ``*``, and a replay cannot
            authenticate with them.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, secrets: bool = False) -> None:
        self._log = FrameLog(secrets=secrets)
        self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - open until close()
        self._file.write(self._log.begin())
        self._conversations = 0
        self._began: float | None = None

    def record(self, stream: trio.abc.Stream, *, dialled: bool = True) -> trio.abc.Stream:
        """Return the stream, recorded from now on as a new conversation.

        Args:
            stream: the stream whose octets to record, in both directions.
            dialled: whether this end has dialled; the octets of the dialling end are ``>``.
        """
        self._conversations += 1
        ways: tuple[Way, Way] = (">", "<") if dialled else ("<", ">")
        written, read = (partial(self._keep, self._conversations, way) for way in ways)
        return tapped(stream, written, read)

    def _keep(self, conversation: int, way: Way, octets: bytes) -> None:
        if not self._file.closed:
            self._file.write(self._log.feed(Record(conversation, way, octets, self._now())))

    def _now(self) -> float:
        now = trio.current_time()
        if self._began is None:
            self._began = now
        return now - self._began

    def close(self) -> None:
        """Write incomplete frames, and close the file. A second call has no effect."""
        if not self._file.closed:
            self._file.write(self._log.finish())
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


def read_recording(path: str | os.PathLike[str], conversation: int = 1) -> list[Record]:
    """Read one conversation of a frame log or a network capture (pcap, pcapng).

    Args:
        path: the file.
        conversation: the number of the conversation, from 1.

    Raises:
        OSError: the file cannot be read.
        LocalProtocolError: the file has neither a frame log nor AMQP.
    """
    records = read_capture(Path(path).read_bytes()).records
    return [record for record in records if record.conversation == conversation]


async def replay(
    records: Iterable[Record],
    peer: ScriptedPeer,
    way: Way,
    *,
    ignoring: Collection[str] = _OF_ITS_OWN,
    passing_over: tuple[type[Any], ...] = (),
) -> None:
    """Replay one end of a conversation: write its frames, and expect those it read.

    A link uses the name that the other side gives it in this run.

    Args:
        records: the records of one conversation.
        peer: the scripted peer that replays.
        way: the end to replay: ``>`` the end that dialled, ``<`` the end that was dialled.
        ignoring: the fields that may differ.
        passing_over: the performatives that may arrive or not, such as ``Flow``: they depend on timing.

    Raises:
        AssertionError: the other side behaves differently; the message shows every difference.

    Cancelled: a part of the conversation was replayed.
    """
    names: dict[str, str] = {}
    for entry in entries_of(records):
        piece = entry.piece
        if entry.way == way:
            await peer.send(*_again(piece, names), channel=piece.channel or 0, payload=piece.payload)
        elif not piece.is_empty and not isinstance(piece.performative, passing_over):
            await _expect(piece, peer, ignoring, passing_over)
            if isinstance(piece.performative, Attach) and peer.last is not None:
                names[piece.performative.name] = peer.last.performative.name


def _again(piece: Piece, names: dict[str, str]) -> tuple[Any, ...]:
    """Return the octets to write for a piece, or an attach with the link's new name."""
    performative = piece.performative
    if (
        isinstance(performative, Attach)
        and names.get(performative.name, performative.name) != performative.name
    ):
        return (replace(performative, name=names[performative.name]),)
    return (piece.octets.removesuffix(piece.payload),)


async def _expect(
    piece: Piece, peer: ScriptedPeer, ignoring: Collection[str], passing_over: tuple[type[Any], ...]
) -> None:
    if piece.performative is None:
        await peer.expect(piece.octets)
        return
    want = Expectation.of(piece.performative, piece.channel, piece.payload)
    fields = {name: value for name, value in want.fields.items() if name not in ignoring}
    while isinstance((await peer.peek(describe(piece))).performative, passing_over):
        await peer.next()
    await peer.expect(want.cls, channel=want.channel, payload=want.payload, **fields)


def chunkings(octets: bytes, *, splits: int = 200, seed: int = 0) -> Iterator[list[bytes]]:
    """Split the same octets in many ways, as a transport may deliver them.

    A correct reader has the same result for each: all at once, octet by octet, split in two at every position, and split at
    random ``splits`` times.

    Args:
        octets: the octets to deliver.
        splits: the number of random splits.
        seed: the seed for the random splits.
    """
    yield [octets]
    yield [octets[pos : pos + 1] for pos in range(len(octets))]
    yield from ([octets[:pos], octets[pos:]] for pos in range(1, len(octets)))
    random = Random(seed)
    for _ in range(splits):
        cuts = sorted(random.choices(range(len(octets) + 1), k=random.randrange(9)))
        pieces = [octets[a:b] for a, b in pairwise([0, *cuts, len(octets)])]
        yield [piece for piece in pieces if piece]
