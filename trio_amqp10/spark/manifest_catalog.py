"""Manifests: file names that describe the rows of a lane.

::

    lanes/LANE/epochs/EPOCH.json                        an epoch has begun
    segments/LANE/EPOCH.FIRST-END.arrow                 rows FIRST to END - 1, as octets (``segments``)
    manifests/LANE/EPOCH.FIRST-END.OCTETS.json          that segment is complete: its rows count from now on
    consumed.json                                       the rows that Spark has consumed, of each epoch
    lanes/LANE/links, metrics.json, lock                as in a spool; a lock in folders only

Each start of a receiver is an *epoch*: a number, its first row, and eight random digits, so that two receivers never
write the same name, even if they do not know of each other. One receiver writes an epoch, in order and without gaps. A position is a
row for each epoch. So receivers need not agree on anything: rows that a receiver publishes late, after another has taken its place, come
after the position of its own epoch, and are read.

A listing that was made while names were added may lack one name and have the next (S3 lists page by page). ``Catalog.gap`` finds this,
and the caller lists again.

Knows names and numbers; neither stores nor messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Positions = dict[str, int]
"""The number of the next row of each epoch, by ``LANE/EPOCH``."""

LANE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
"""The allowed names of lanes."""
_EPOCH: Final = re.compile(r"(\d{8})-(\d{20})-[0-9a-f]{8}", re.ASCII)
_MANIFEST: Final = re.compile(
    r"manifests/([A-Za-z0-9_-]+)/(\d{8}-\d{20}-[0-9a-f]{8})\.(\d{20})-(\d{20})\.(\d+)\.json", re.ASCII
)
_MOST_EPOCHS: Final = 16
"""The most epochs of a lane in a position.

An older epoch that publishes later is read from its oldest manifest on.
"""


class Epoch(NamedTuple):
    """The time from the start of a lane's receiver to its end.

    Attributes:
        number: grows with each epoch of a lane; two that begin at the same time may have the same number.
        first: the number of its first row.
        name: unique.
    """

    number: int
    first: int
    name: str

    @classmethod
    def make(cls, number: int, first: int, chance: str) -> Epoch:
        """Return a new epoch; ``chance`` is eight random hexadecimal digits."""
        return cls(number, first, f"{number:08d}-{first:020d}-{chance}")

    @classmethod
    def parse(cls, name: str) -> Epoch | None:
        """Return the epoch of this name; None if it is no name of an epoch."""
        found = _EPOCH.fullmatch(name)
        return None if found is None else cls(int(found[1]), int(found[2]), name)


class Manifest(NamedTuple):
    """One segment: rows ``first`` to ``end - 1`` of an epoch, and its size in octets."""

    lane: str
    epoch: str
    first: int
    end: int
    octets: int

    @classmethod
    def parse(cls, name: str) -> Manifest | None:
        """Return the manifest of this name; None if it is no name of a manifest."""
        found = _MANIFEST.fullmatch(name)
        return None if found is None else cls(found[1], found[2], int(found[3]), int(found[4]), int(found[5]))

    @property
    def key(self) -> str:
        """The lane and the epoch, as the key of positions."""
        return f"{self.lane}/{self.epoch}"

    @property
    def name(self) -> str:
        """The file name of the manifest."""
        return f"manifests/{self.lane}/{self.epoch}.{self.first:020d}-{self.end:020d}.{self.octets}.json"

    @property
    def segment(self) -> str:
        """The file name of the segment."""
        return f"segments/{self.lane}/{self.epoch}.{self.first:020d}-{self.end:020d}.arrow"


class Part(NamedTuple):
    """Rows ``start`` to ``stop - 1`` of an epoch, which are in one segment."""

    manifest: Manifest
    start: int
    stop: int


class Catalog:
    """The manifests of one listing.

    Args:
        names: all names below ``manifests/``; names that are no manifests are ignored.
    """

    def __init__(self, names: Iterable[str]) -> None:
        epochs: defaultdict[str, list[Manifest]] = defaultdict(list)
        for each in map(Manifest.parse, names):
            if each is not None:
                epochs[each.key].append(each)
        self._epochs = {
            key: sorted(manifests, key=lambda each: each.first) for key, manifests in sorted(epochs.items())
        }

    def manifests(self) -> list[Manifest]:
        """Return all manifests, by lane, epoch and row."""
        return [each for manifests in self._epochs.values() for each in manifests]

    def begun(self, start: Positions) -> Positions:
        """Return ``start`` with the first rows of the epochs that it lacks."""
        oldest: dict[str, str] = {}
        for key in start:
            lane = key.partition("/")[0]
            oldest[lane] = min(key, oldest.get(lane, key))
        found = dict(start)
        for key, manifests in self._epochs.items():
            if key not in found:
                lane, _, name = key.partition("/")
                epoch = Epoch.parse(name)
                assert epoch is not None  # or it would be no manifest
                left_out = len([each for each in start if each.startswith(f"{lane}/")]) >= _MOST_EPOCHS
                found[key] = manifests[0].first if left_out and key < oldest[lane] else epoch.first
        return found

    def gap(self, start: Positions) -> str | None:
        """Describe rows after ``start`` that are missing before rows that are there.

        None if there is no such gap.
        """
        for key, row in self.begun(start).items():
            at = row
            for each in self._after(key, at):
                if each.first > at:
                    return f"rows {at} to {each.first} of {key} are missing"
                at = each.end
        return None

    def ends(self, start: Positions) -> Positions:
        """Return the end of each epoch, without old epochs that were read to their ends."""
        ends = {
            key: max([at, *[each.end for each in self._epochs.get(key, ())[-1:]]])
            for key, at in self.begun(start).items()
        }
        lanes: defaultdict[str, list[str]] = defaultdict(list)
        for key in sorted(ends):
            lanes[key.partition("/")[0]].append(key)
        for keys in lanes.values():
            for key in keys[:-_MOST_EPOCHS]:
                if key not in self._epochs:
                    del ends[key]
        return ends

    def unread(self, start: Positions) -> dict[str, list[Manifest]]:
        """Return the manifests with rows after a position, of each epoch."""
        return {key: self._after(key, at) for key, at in self.begun(start).items()}

    def parts(self, start: Positions, end: Positions) -> list[Part]:
        """Return the parts between two positions, by lane, epoch and row.

        Missing rows are left out.
        """
        begun = self.begun(start)
        found: list[Part] = []
        for key, stop in sorted(end.items()):
            at = begun.get(key, 0)
            for each in self._after(key, at):
                if each.first >= stop:
                    break
                found.append(Part(each, max(at, each.first), min(stop, each.end)))
        return found

    def last(self, position: Positions, rows: int) -> list[Part]:
        """Return the last ``rows`` rows of each lane before a position."""
        found: list[Part] = []
        missing: defaultdict[str, int] = defaultdict(lambda: rows)
        for key in sorted(position, reverse=True):
            lane = key.partition("/")[0]
            for each in reversed(self._epochs.get(key, ())):
                stop = min(each.end, position[key])
                if stop <= each.first:
                    continue
                if not missing[lane]:
                    break
                start = max(each.first, stop - missing[lane])
                missing[lane] -= stop - start
                found.append(Part(each, start, stop))
        return found[::-1]

    def _after(self, key: str, at: int) -> list[Manifest]:
        manifests = self._epochs.get(key, [])
        return manifests[bisect_right(manifests, at, key=lambda each: each.end) :]
