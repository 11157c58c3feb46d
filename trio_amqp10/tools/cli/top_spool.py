"""``amqp10 top --spool``: show the figures of a Spark query's spool.

Reads the ``metrics.json`` files that receivers write in the folder, its subfolders and those of lanes. Needs neither
Spark nor Arrow.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from .command_runner import CommandError, Interrupts
from .screen import Screen, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

_FILE: Final = "metrics.json"
_LATE: Final = 15.0
"""Seconds after which figures are outdated: receivers write every ten seconds."""
_COLUMNS: Final = (
    *("spool", "state", "rows waiting", "octets waiting", "lag s", "received", "received/s"),
    *("depth at peer", "duplicates", "rejected", "connections", "full disk"),
)


@dataclass(frozen=True, kw_only=True)
class TopSpoolOptions:
    """The options of ``amqp10 top --spool``."""

    folder: str
    interval: float = 1.0
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
        CommandError: the folder has no figures, or a file of figures cannot be read.
    """
    screen = Screen(once=options.once, json=options.json)
    with interrupts.here(), screen:
        before: SpoolSample | None = None
        earlier: SpoolSample | None = None
        while True:
            sample = await trio.to_thread.run_sync(_sample, Path(options.folder))
            if before is not None and _written(sample) != _written(before):
                earlier = before
            await screen.show(partial(sample.as_json, earlier), partial(_drawn, sample, earlier))
            quiet = min(map(sample.age, sample.spools))
            if options.once or (options.timeout is not None and quiet >= options.timeout):
                return
            before = sample
            await trio.sleep(options.interval)


def _written(sample: SpoolSample) -> list[float]:
    return [_float(each, "at") for each in sample.spools.values()]


def _sample(folder: Path) -> SpoolSample:
    found: dict[str, dict[str, Any]] = {}
    for path in [
        folder / _FILE,
        *sorted(folder.glob(f"*/{_FILE}")),
        *sorted(folder.glob(f"**/lanes/*/{_FILE}")),
    ]:
        try:
            figures: Any = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as wrong:
            raise CommandError(f"{path} cannot be read: {wrong}") from None
        if not isinstance(figures, dict) or "rows_waiting" not in figures:
            raise CommandError(f"{path} has no figures of a spool")
        found[str(path.parent.relative_to(folder))] = cast("dict[str, Any]", figures)
    if not found:
        raise CommandError(
            f"there is no {_FILE} in {folder}: a query writes it when it receives; give the folder of its option 'spool'"
        )
    return SpoolSample(time=time.time(), spools=found)


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
