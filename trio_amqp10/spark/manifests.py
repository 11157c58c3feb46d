"""Manifests: which rows a lane has, by names alone.

::

    lanes/LANE/epochs/EPOCH.json                        a receiver has begun
    segments/LANE/EPOCH.FIRST-END.arrow                 rows FIRST to END - 1, as octets (``segments``)
    manifests/LANE/EPOCH.FIRST-END.OCTETS.json          that segment is whole: its rows count from now on
    consumed.json                                       which rows Spark has consumed, of each epoch
    lanes/LANE/links, metrics.json, lock                as in a spool; a lock in folders only

Each start of a receiver is an *epoch*: a number, the row that it begins with, and eight digits by chance, so that two receivers never
write the same name, whatever they know of each other. One receiver writes an epoch, in order and without gaps. So there is nothing
to agree upon: a position is a row for each epoch, and what a receiver publishes late, though another has taken its place, is behind
the position of its own epoch and will be read.

A listing that was made while names were added may lack one and have the next (S3 lists page by page). Then ``Catalog.gap`` says so,
and the caller lists again.

Knows names and numbers; no store and no message.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LANE", "Catalog", "Epoch", "Manifest", "Part", "Positions"]

Positions = dict[str, int]
"""For each epoch, as ``LANE/EPOCH``: the row that comes next."""

LANE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
"""What a lane may be called."""
_EPOCH: Final = re.compile(r"(\d{8})-(\d{20})-[0-9a-f]{8}", re.ASCII)
_MANIFEST: Final = re.compile(
    r"manifests/([A-Za-z0-9_-]+)/(\d{8}-\d{20}-[0-9a-f]{8})\.(\d{20})-(\d{20})\.(\d+)\.json", re.ASCII
)
_MOST_EPOCHS: Final = 16
"""Epochs of a lane that a position names. An older one that publishes after that is read from its oldest manifest on."""


class Epoch(NamedTuple):
    """One life of a lane's receiver.

    Attributes:
        number: later ones have larger numbers; two that begin at the same time may have the same.
        first: the row that it begins with.
        name: unlike any other's.
    """

    number: int
    first: int
    name: str

    @classmethod
    def make(cls, number: int, first: int, chance: str) -> Epoch:
        """A new one; ``chance`` is eight hexadecimal digits."""
        return cls(number, first, f"{number:08d}-{first:020d}-{chance}")

    @classmethod
    def parse(cls, name: str) -> Epoch | None:
        """By its name; None for what is none."""
        found = _EPOCH.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2]), name)


class Manifest(NamedTuple):
    """Rows ``first`` to ``end - 1`` of an epoch of a lane, in one segment of so many octets."""

    lane: str
    epoch: str
    first: int
    end: int
    octets: int

    @classmethod
    def parse(cls, name: str) -> Manifest | None:
        """By its name; None for what is none."""
        found = _MANIFEST.fullmatch(name)
        return None if found is None else cls(found[1], found[2], int(found[3]), int(found[4]), int(found[5]))

    @property
    def key(self) -> str:
        """Lane and epoch, as positions name them."""
        return f"{self.lane}/{self.epoch}"

    @property
    def name(self) -> str:
        """Of the manifest."""
        return f"manifests/{self.lane}/{self.epoch}.{self.first:020d}-{self.end:020d}.{self.octets}.json"

    @property
    def segment(self) -> str:
        """The name of its segment."""
        return f"segments/{self.lane}/{self.epoch}.{self.first:020d}-{self.end:020d}.arrow"


class Part(NamedTuple):
    """Rows ``start`` to ``stop - 1`` of a manifest's, counted as the epoch counts them."""

    manifest: Manifest
    start: int
    stop: int


class Catalog:
    """What a listing shows.

    Args:
        names: of everything below ``manifests/``; what is no manifest is passed over.
    """

    def __init__(self, names: Iterable[str]) -> None:
        logs: defaultdict[str, list[Manifest]] = defaultdict(list)
        for each in map(Manifest.parse, names):
            if each is not None:
                logs[each.key].append(each)
        self._logs = {key: sorted(log, key=lambda each: each.first) for key, log in sorted(logs.items())}

    def manifests(self) -> list[Manifest]:
        """All of them, by lane, epoch and row."""
        return [each for log in self._logs.values() for each in log]

    def begun(self, start: Positions) -> Positions:
        """``start``, and where epochs begin that it does not name."""
        oldest: dict[str, str] = {}
        for key in start:
            lane = key.partition("/")[0]
            oldest[lane] = min(key, oldest.get(lane, key))
        found = dict(start)
        for key, log in self._logs.items():
            if key not in found:
                lane, _, name = key.partition("/")
                epoch = Epoch.parse(name)
                assert epoch is not None  # or it would be no manifest
                left_out = len([each for each in start if each.startswith(f"{lane}/")]) >= _MOST_EPOCHS
                found[key] = log[0].first if left_out and key < oldest[lane] else epoch.first
        return found

    def gap(self, start: Positions) -> str | None:
        """Which rows after ``start`` are missing before others that are there, for people; None if none are."""
        for key, row in self.begun(start).items():
            at = row
            for each in self._behind(key, at):
                if each.first > at:
                    return f"rows {at} to {each.first} of {key} are missing"
                at = each.end
        return None

    def ends(self, start: Positions) -> Positions:
        """How far each epoch goes; epochs that were read to their ends long ago are left out."""
        ends = {
            key: max([at, *[each.end for each in self._logs.get(key, ())[-1:]]])
            for key, at in self.begun(start).items()
        }
        lanes: defaultdict[str, list[str]] = defaultdict(list)
        for key in sorted(ends):
            lanes[key.partition("/")[0]].append(key)
        for keys in lanes.values():
            for key in keys[:-_MOST_EPOCHS]:
                if key not in self._logs:
                    del ends[key]
        return ends

    def unread(self, start: Positions) -> dict[str, list[Manifest]]:
        """Manifests with rows behind a position, of each epoch."""
        return {key: self._behind(key, at) for key, at in self.begun(start).items()}

    def parts(self, start: Positions, end: Positions) -> list[Part]:
        """Where the rows between two positions are, by lane, epoch and row; those that are missing are left out."""
        begun = self.begun(start)
        found: list[Part] = []
        for key, stop in sorted(end.items()):
            at = begun.get(key, 0)
            for each in self._behind(key, at):
                if each.first >= stop:
                    break
                found.append(Part(each, max(at, each.first), min(stop, each.end)))
        return found

    def last(self, position: Positions, rows: int) -> list[Part]:
        """The last so many rows of each lane before a position."""
        found: list[Part] = []
        missing: defaultdict[str, int] = defaultdict(lambda: rows)
        for key in sorted(position, reverse=True):
            lane = key.partition("/")[0]
            for each in reversed(self._logs.get(key, ())):
                stop = min(each.end, position[key])
                if stop <= each.first:
                    continue
                if not missing[lane]:
                    break
                start = max(each.first, stop - missing[lane])
                missing[lane] -= stop - start
                found.append(Part(each, start, stop))
        return found[::-1]

    def _behind(self, key: str, at: int) -> list[Manifest]:
        log = self._logs.get(key, [])
        return log[bisect_right(log, at, key=lambda each: each.end) :]
