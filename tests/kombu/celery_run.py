"""Run ``tests/interop/celery_peer.py``: a worker of Celery, and the scenarios that it does not pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROGRAM = Path(__file__).resolve().parents[1] / "interop/celery_peer.py"
SECONDS = 120


def failures(
    url: str, pool: str, backend: str, excluded: Iterable[str] = (), options: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The scenarios that failed, and how.

    Args:
        url: the broker URL.
        pool: ``solo`` or ``prefork``.
        backend: ``rpc`` or ``files``.
        excluded: scenarios to leave out.
        options: ``broker_transport_options``.
    """
    try:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), url, pool, backend, *excluded],
            env={**os.environ, "OPTIONS": json.dumps(options or {})},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        wrong = (late.stderr or b"").decode()
        raise AssertionError(f"not done in {SECONDS} s; what failed until then: {wrong[-4000:]}") from None
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found
