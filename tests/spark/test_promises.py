"""``kill -9`` at random moments under load: nothing missing, and of what comes twice only what may.

Slow: these run where AMQP10_SPARK_WHOLE is set (``make test-spark WHOLE=1``); more of it is ``make soak-spark``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .kills import CREDIT, WAYS, Ordeal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.whole

KILLS = 3


@pytest.mark.parametrize(("dedup", "sink"), WAYS)
def test_kills_lose_nothing_and_repeat_only_what_may_be(
    java: None, tmp_path: Path, dedup: str, sink: str
) -> None:
    found = Ordeal(tmp_path, dedup=dedup, sink=sink).run(KILLS)
    assert (found.missing, found.left) == (0, 0)
    assert found.repeated <= (KILLS * CREDIT if dedup == "none" else 0)
