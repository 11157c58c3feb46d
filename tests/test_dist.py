"""The metadata of the package, as far as it can be seen without building it; ``make dist-check`` builds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import trio_amqp10 as amqp

from .dist.__main__ import WORKS

ROOT = Path(amqp.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

FOR_WORK = {"lint", "dist", "compile", "bench", "mutants", "docs", "test-spark"}
ELSEWHERE = {"spark"}
"""What ``make test-spark`` tries."""


def test_extra_is_tried_by_the_check_of_the_distribution() -> None:
    assert set(PROJECT["optional-dependencies"]) - FOR_WORK - ELSEWHERE == set(WORKS)


def test_library_depends_on_trio_alone() -> None:
    assert [re.split(r"[<>=]", one)[0] for one in PROJECT["dependencies"]] == ["trio"]


def test_version_is_read_by_what_builds_the_package() -> None:
    """By the pattern of hatchling: an annotation, or ``Final``, would hide it."""
    found = re.findall(
        r'^__version__ = "(.+)"$', (ROOT / "trio_amqp10/core/version.py").read_text(), re.MULTILINE
    )
    assert found == [amqp.__version__]
