"""A package that is covered less than its floor is named; each floor is of a package that there is."""

from __future__ import annotations

from typing import Any

from .package_coverage import FLOORS, SPARK_FLOORS, below, by_package
from .places import ROOT


def report(covered: int, branches: int = 0) -> dict[str, Any]:
    """The report of a file with ten statements and two branches."""
    return {
        "summary": {
            "covered_lines": covered,
            "covered_branches": branches,
            "num_statements": 10,
            "num_branches": 2,
        }
    }


def test_percentage_is_of_all_lines_and_branches_of_a_package() -> None:
    files = {
        "trio_amqp10/net/a.py": report(10, 2),
        "trio_amqp10/net/tls/b.py": report(5, 1),
        "trio_amqp10/network.py": report(0),
        "trio_amqp10/aio.py": report(9),
    }
    assert by_package(files, ["net", "aio.py"]) == {"net": 75.0, "aio.py": 75.0}


def test_package_below_its_floor_is_named() -> None:
    assert below({"net": 89.9, "aio.py": 90.0}, {"net": 90, "aio.py": 90}) == ["net"]


def test_floor_is_of_a_package_that_there_is() -> None:
    assert [name for name in FLOORS | SPARK_FLOORS if not (ROOT / "trio_amqp10" / name).exists()] == []
