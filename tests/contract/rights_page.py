"""The tables of method and permission in ``docs/how-to/authorise.rst``, made from the rows that the tests run.

``python -m tests.contract.rights_page`` writes them into the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from .rights_scripts import SCRIPTS
from .test_rights_of_management import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "authorise.rst"
_BEGIN: Final = ".. The tables are written by tests/contract/rights_page.py.\n"
_TITLES: Final = {
    "1.0": "AMQP 1.0 and its draft of 2010",
    "0-9-1": "AMQP 0-9-1",
    "10.3": "AMQ Protocol 10.3",
    "amqp-fast": "AMQP/Fast",
}


def tables() -> str:
    """All tables, one for each protocol and one for management."""
    parts = [_BEGIN]
    for name, title in _TITLES.items():
        scripts = SCRIPTS[name]
        rows = ((row.method, row.case, row.rights, row.one) for row in scripts.rows)
        free = ", ".join(f"``{each}``" for each in sorted(scripts.free))
        parts += [*_table(title, rows), f"\nThese need no permission but ``open``: {free}.\n"]
    asked = (
        (each.operation, _case(each.asked, each.body), each.rights, each.one)
        for each in REQUESTS
        if each.asked.get("entityType") in (None, "connection")
        and (each.one or not any(right.startswith("manage") for right in each.rights))
    )
    parts += _table("Requests to ``$management``", asked)
    return "\n".join(parts)


def _case(asked: dict[str, str], body: object) -> str:
    kind = asked.get("type") or asked.get("entityType")
    words = ([f"of type {kind}"] if kind else []) + (
        ["with dead letters"] if "dead-letter" in str(body) else []
    )
    return ", ".join(words)


def _table(title: str, rows: Iterable[tuple[str, str, tuple[str, ...], bool]]) -> Iterator[str]:
    yield f"\n{title}\n{'~' * len(title)}\n"
    yield ".. list-table::\n   :header-rows: 1\n\n   * - method\n     - permissions"
    for method, case, rights, one in rows:
        needed = ", ".join(f"``{each}``" for each in rights)
        yield f"   * - ``{method}``{f' {case}' if case else ''}\n     - {'one of ' * one}{needed}"


def main() -> None:
    """Write the tables into the page."""
    before = PAGE.read_text(encoding="utf-8").partition(_BEGIN)[0]
    PAGE.write_text(before + tables() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
