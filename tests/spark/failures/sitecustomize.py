"""Lets a process die or wait before or after a step of ``trio_amqp10.spark``.

Python imports this module by itself at its start if the folder of this file is on ``PYTHONPATH``. Processes
inherit that: those of Spark's Python workers, of lanes, and of ``amqp10 spool``. ``Failures`` writes
the files that this module obeys.

Steps are wrapped when their module is imported. An import fails if its module has no such step any more.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from collections import defaultdict
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

FOLDER: Final = "TRIO_AMQP10_TEST_FAILURES"
"""The variable that names the folder with one file for each failure."""
PRODUCT: Final = "trio_amqp10.spark"
EXIT_CODE: Final = 86


class Step(NamedTuple):
    """A function or method of the product, and the moment at which a process fails.

    Attributes:
        module: of ``trio_amqp10.spark``.
        name: of the function, or ``Class.method``.
        before: whether the process fails before the step, not after it.
        applies: whether a call with these arguments counts.
    """

    module: str
    name: str
    before: bool = False
    applies: Callable[..., bool] = lambda *_, **__: True

    def owner(self, module: ModuleType) -> tuple[Any, str]:
        """Return the class or module that has the step, and its name there.

        Raises:
            AttributeError: the product has no such step.
        """
        *classes, name = self.name.split(".")
        owner = functools.reduce(getattr, classes, module)
        getattr(owner, name)
        return owner, name


def _is_segment(_: Any, name: str) -> bool:
    return name.startswith("segments/")


PLACES: Final[dict[str, tuple[Step, ...]]] = {
    "claimed": (Step("lane_spool", "LaneSpool._claim_epoch"),),
    "unwritten": (
        Step("spool", "Spool.write", before=True),
        Step("lane_spool", "LaneSpool.write", before=True),
    ),
    "written": (
        Step("spool", "Spool._publish", before=True),
        Step("lane_spool", "LaneSpool._publish", before=True),
    ),
    "published": (Step("spool", "Spool._publish"), Step("lane_spool", "LaneSpool._publish")),
    "synced": (Step("spool", "Spool.write"), Step("lane_spool", "LaneSpool.write")),
    "settled": (Step("spool_receiver", "SpoolReceiver._send_outcomes"),),
    "offset": (Step("backlog", "Backlog.cut"),),
    "planned": (Step("readers", "QueueStreamReader.partitions"),),
    "consumed": (Step("lanes_reader", "LaneRows._sweep", before=True),),
    "deleted": (
        Step("storage", "FolderStore.delete", applies=_is_segment),
        Step("storage", "ObjectStore.delete", applies=_is_segment),
    ),
    "sent": (Step("sink_delivery", "_send_rest"),),
    "discharged": (Step("sink_delivery", "_send_in_transaction"),),
    "committed": (Step("writers", "StreamWriter.commit", before=True),),
}
"""The places where a process may fail: their names, and the steps of the product."""


def _fail_at(place: str) -> None:
    folder = Path(os.environ[FOLDER])
    try:
        seconds = float((folder / f"delay-{place}").read_text())
    except FileNotFoundError:
        pass
    else:
        (folder / f"delayed-{place}").touch()
        time.sleep(seconds)
    try:
        (folder / f"crash-{place}").unlink()
    except FileNotFoundError:
        return
    os._exit(EXIT_CODE)


def wrapped(step: Step, call: Callable[..., Any], fail: Callable[[], object]) -> Callable[..., Any]:
    """Return ``call`` with ``fail`` called before or after it."""

    @functools.wraps(call)
    async def wait(*given: Any, **named: Any) -> Any:
        if step.before and step.applies(*given, **named):
            fail()
        result = await call(*given, **named)
        if not step.before and step.applies(*given, **named):
            fail()
        return result

    @functools.wraps(call)
    def run(*given: Any, **named: Any) -> Any:
        if step.before and step.applies(*given, **named):
            fail()
        result = call(*given, **named)
        if not step.before and step.applies(*given, **named):
            fail()
        return result

    return wait if inspect.iscoroutinefunction(call) else run


class _Loader(SourceFileLoader):
    """Imports a module, and wraps its steps."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for place, step in _STEPS[self.name]:
            owner, name = step.owner(module)
            setattr(owner, name, wrapped(step, getattr(owner, name), functools.partial(_fail_at, place)))


class _Finder:
    """Finds the modules that have steps, before any other finder does."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name not in _STEPS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


_STEPS: Final[defaultdict[str, list[tuple[str, Step]]]] = defaultdict(list)
for _place, _steps in PLACES.items():
    for _step in _steps:
        _STEPS[f"{PRODUCT}.{_step.module}"].append((_place, _step))

if __name__ == "sitecustomize":
    sys.meta_path.insert(0, _Finder)
