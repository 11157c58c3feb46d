"""``amqp10 top --spool``: show the figures of a Spark query's spool.

Reads the ``metrics.json`` files that receivers write, in the spool and those in its subfolders, or in an object store, and computes what
waits from the names there. A folder needs neither Spark nor Arrow.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.core.paths import local_path
from trio_amqp10.spark.option_values import location
from trio_amqp10.spark.spool_figures import present_figures
from trio_amqp10.spark.storage import FolderStore, is_remote, open_store, shown

from .command_runner import CommandError, Interrupts
from .screen import Screen, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from trio_amqp10.spark.storage import Store

_FILE: Final = "metrics.json"
_LATE: Final = 15.0
"""Seconds after which figures are outdated: receivers write every ten seconds."""
_INTERVAL: Final = 1.0
_REMOTE_INTERVAL: Final = 10.0
"""Seconds between two samples of an object store.

Receivers write so often, and a sample takes a few requests.
"""
_COLUMNS: Final = (
    *("spool", "state", "rows waiting", "octets waiting", "lag s", "received", "received/s"),
    *("depth at peer", "duplicates", "rejected", "connections", "full disk"),
)


@dataclass(frozen=True, kw_only=True)
class TopSpoolOptions:
    """The options of ``amqp10 top --spool``."""

    where: str
    interval: float | None = None
    once: bool = False
    json: bool = False
    timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class SpoolSample:
    """The figures of spools at one time.

    Attributes:
        time: seconds since 1970.
        spools: the figures of each spool, by the path of its folder within the watched folder.
    """

    time: float
    spools: dict[str, dict[str, Any]]

    def as_json(self, before: SpoolSample | None) -> bytes:
        """Return one line of JSON, with rates if there is an earlier sample."""
        shown = [
            {"folder": name, **figures, "age_seconds": round(self.age(name), 3)}
            | ({} if (rate := self.rate(name, before)) is None else {"rate": rate})
            for name, figures in self.spools.items()
        ]
        return json.dumps({"spools": shown}).encode() + b"\n"

    def age(self, name: str) -> float:
        """Return the age of the figures in seconds."""
        return max(0.0, self.time - _float(self.spools[name], "at"))

    def rate(self, name: str, before: SpoolSample | None) -> float | None:
        """Return the messages received a second between two writings of the file.

        None if the file was not written again, or was written by another run.
        """
        then = None if before is None else before.spools.get(name)
        if then is None:
            return None
        now = self.spools[name]
        seconds = _float(now, "at") - _float(then, "at")
        messages = _float(now, "received") - _float(then, "received")
        return round(messages / seconds, 1) if seconds > 0 and messages >= 0 else None

    def state(self, name: str) -> str:
        """Return the state to show: whether the receiver is silent, full or receiving."""
        if self.age(name) > _LATE:
            return f"silent for {self.age(name):.0f} s"
        return "full" if self.spools[name].get("full") else "receiving"


def _float(figures: dict[str, Any], name: str) -> float:
    value = figures.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0


async def top_spool(options: TopSpoolOptions, interrupts: Interrupts) -> None:
    """Show one sample, or samples until interrupted or silent for ``timeout``.

    Raises:
        CommandError: the spool has no figures, or a file of figures cannot be read.
    """
    store = _opened(options.where)
    interval = options.interval or (_REMOTE_INTERVAL if store.remote else _INTERVAL)
    screen = Screen(once=options.once, json=options.json)
    with interrupts.here(), screen:
        before: SpoolSample | None = None
        earlier: SpoolSample | None = None
        while True:
            sample = await trio.to_thread.run_sync(_sample, store)
            if before is not None and _written(sample) != _written(before):
                earlier = before
            await screen.show(partial(sample.as_json, earlier), partial(_drawn, sample, earlier))
            quiet = min(map(sample.age, sample.spools))
            if options.once or (options.timeout is not None and quiet >= options.timeout):
                return
            before = sample
            await trio.sleep(interval)


def _opened(where: str) -> Store:
    """Open a spool, which is not changed."""
    try:
        place = location(where)
        if not is_remote(place):
            return FolderStore(local_path(place))
        if find_spec("pyarrow") is None:
            raise CommandError(
                "--spool with a URI needs pyarrow: install it with pip install 'trio-amqp10[spool]'", 2
            )
        return open_store(place)
    except (ValueError, AmqpError) as wrong:
        raise CommandError(f"--spool {shown(where)}: {wrong}", 2) from None


def _written(sample: SpoolSample) -> list[float]:
    return [_float(each, "at") for each in sample.spools.values()]


def _sample(store: Store) -> SpoolSample:
    found: dict[str, dict[str, Any]] = {}
    for place, each in _stores(store).items():
        try:
            figures = present_figures(each)
        except (OSError, AmqpError) as wrong:
            raise CommandError(f"the figures of {each.where} cannot be read: {wrong}") from None
        found |= {str(Path(place) / folder): shown for folder, shown in figures.items()}
    if not found:
        raise CommandError(
            f"there is no {_FILE} in {store.where}: a query writes it when it receives; give the folder or URI of its option 'spool'"
        )
    return SpoolSample(time=time.time(), spools=found)


def _stores(store: Store) -> dict[str, Store]:
    """Return the stores of all spools: this one, or those in a folder and below it."""
    if store.remote:
        return {".": store}
    folder = Path(store.where)
    roots = [folder, *sorted(path.parent for path in folder.glob(f"*/{_FILE}"))]
    roots += sorted({path.parents[2] for path in folder.glob(f"**/lanes/*/{_FILE}")} - {*roots})
    return {str(each.relative_to(folder)): FolderStore(each) for each in roots if each.name != "lanes"}


def _drawn(sample: SpoolSample, before: SpoolSample | None) -> RenderableType:
    rows = [
        (
            str(figures.get("spool", ""))[:8] if name == "." else name,
            sample.state(name),
            *(
                number(figures.get(each))
                for each in ("rows_waiting", "octets_waiting", "lag_seconds", "received")
            ),
            number(sample.rate(name, before)),
            *(
                number(figures.get(each))
                for each in ("depth", "duplicates", "rejected", "connections", "resting")
            ),
        )
        for name, figures in sample.spools.items()
    ]
    return table("spools", _COLUMNS, rows)
