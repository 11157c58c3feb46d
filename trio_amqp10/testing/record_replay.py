"""Record conversations to a file, and replay them against a peer.

Knows files and streams; the format is in ``trace.records``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, Self

import trio

from trio_amqp10.peer.tapped_stream import tapped
from trio_amqp10.spec.transport import Attach
from trio_amqp10.trace.frame_log import FrameLog, Record, Way, entries_of
from trio_amqp10.trace.frame_text import describe
from trio_amqp10.trace.read_capture import read_capture

from .expectations import Expectation

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator
    from types import TracebackType

    from trio_amqp10.trace.frame_splitter import Piece

    from .scripted_peer import ScriptedPeer

__all__ = ["Recorder", "chunkings", "read_recording", "replay"]

_OF_ITS_OWN: Final = (
    "container_id",
    "hostname",
    "name",
    "initial_response",
    "challenge",
    "response",
    "additional_data",
)
"""Fields that are new in every run, or that a frame log does not keep."""


class Recorder:
    """Writes a frame log: ``with Recorder("talk.jsonl") as recorder``.

    Args:
        path: the file; what was there is replaced.
        secrets: keep passwords and the like; otherwise they are replaced by ``*``, and a replay cannot
            authenticate with them.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], *, secrets: bool = False) -> None:
        self._log = FrameLog(secrets=secrets)
        self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - as long as we live
        self._file.write(self._log.begin())
        self._conversations = 0
        self._began: float | None = None

    def record(self, stream: trio.abc.Stream, *, dialled: bool = True) -> trio.abc.Stream:
        """The same stream, recorded from now on, as a conversation of its own.

        Args:
            stream: whose octets to keep, both ways.
            dialled: whether this end has dialled; ``>`` is what the one who dialled writes.
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
        """Write what was not complete, and close the file. Twice is fine."""
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
    """One conversation of a file: a frame log, or a capture of a network (pcap, pcapng).

    Args:
        path: the file.
        conversation: which one, from 1.

    Raises:
        OSError: it cannot be read.
        LocalProtocolError: nothing of the kind is in it.
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
    """Play one end of a conversation again: write what it wrote, and expect what it read.

    Links keep the names that the other side gives them now.

    Args:
        records: of one conversation.
        peer: who plays.
        way: the end to play: ``>`` who dialled, ``<`` who was dialled.
        ignoring: fields that may differ.
        passing_over: performatives that may come or not, such as ``Flow``: they depend on timing.

    Raises:
        AssertionError: the other side does otherwise; the message shows every difference.

    Cancelled: some of it has happened.
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
    """What to write for a piece: its octets, but for a link that has another name now."""
    said = piece.performative
    if isinstance(said, Attach) and names.get(said.name, said.name) != said.name:
        return (replace(said, name=names[said.name]),)
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
    """Ways in which a transport may deliver the same octets: whatever reads them has to come to the same end.

    All at once, octet by octet, in two at every place, and ``splits`` times in pieces of chance.

    Args:
        octets: what to deliver.
        splits: how many random ways.
        seed: of their chance.
    """
    yield [octets]
    yield [octets[pos : pos + 1] for pos in range(len(octets))]
    yield from ([octets[:pos], octets[pos:]] for pos in range(1, len(octets)))
    random = Random(seed)
    for _ in range(splits):
        cuts = sorted(random.choices(range(len(octets) + 1), k=random.randrange(9)))
        pieces = [octets[a:b] for a, b in pairwise([0, *cuts, len(octets)])]
        yield [piece for piece in pieces if piece]
