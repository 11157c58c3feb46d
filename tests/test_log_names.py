"""The names of loggers: each is in the manual, and the manual names no other."""

from __future__ import annotations

import re
from pathlib import Path

import trio_amqp10

PACKAGE = Path(trio_amqp10.__file__).parent
PAGE = PACKAGE.parent / "docs/how-to/observe.rst"


def test_every_logger_is_in_the_manual_and_no_other() -> None:
    used = {
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r'getLogger\("([\w.]+)"\)', path.read_text())
    }
    listed = set(re.findall(r"^   \* - ``(trio_amqp10\.\w+)``$", PAGE.read_text(), re.MULTILINE))
    assert used == listed
