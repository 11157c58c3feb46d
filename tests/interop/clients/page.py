"""The manual's page of clients, from the table.

``python -m tests.interop.clients.page`` writes ``docs/reference/clients.rst``. Runs no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.places import ROOT

from .table import CLIENTS, EXCEPTIONS, REMARKS, SCENARIOS, TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE: Final = ROOT / "docs/reference/clients.rst"
_SERVERS: Final = {"container": "a container", "rabbitmq4": "RabbitMQ 4"}
_HEAD: Final = """.. This page is made by ``python -m tests.interop.clients.page``: change ``tests/interop/clients/table.py``, not this.

Other AMQP clients
==================

``make interop`` runs these clients through the same scenarios, with a container (``amqp10 serve``) and with RabbitMQ 4, and compares each
cell with this page. A cell holds for both servers unless its note names one. pika, aio-pika, kombu, amqplib, Proton and rhea have many more tests
of their own; so have clients that are not in this table: RabbitMQ's for Java and for AMQP 1.0, Celery, Dramatiq, FastStream, Taskiq, nameko, and Microsoft's for Azure.

"""
_PROTOCOLS: Final = {"0-9-1": "Clients of AMQP 0-9-1", "1.0": "Clients of AMQP 1.0"}


def _rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in rows:
        for place, cell in enumerate(row):
            yield f"   {'* -' if place == 0 else '  -'} {cell}".rstrip()


def _table(protocol: str, notes: list[str]) -> Iterator[str]:
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    rows = [["client", *TITLES.values()]]
    for client in (each for each in CLIENTS if each.protocol == protocol):
        cells: list[str] = []
        for scenario in SCENARIOS:
            known = EXCEPTIONS.get((client.name, scenario))
            own = [REMARKS.get((client.name, scenario))]
            cell = "yes"
            if known is not None:
                cell = {"no": "no", "absent": "\u2013"}[known.found]
                where = " and ".join(_SERVERS[each] for each in known.servers)
                own.append(
                    known.what if len(known.servers) == len(_SERVERS) else f"with {where}: {known.what}"
                )
            for note in filter(None, own):
                if note not in notes:
                    notes.append(note)
                cell += f" ({notes.index(note) + 1})"
            cells.append(cell)
        rows.append([f"{client.name}, for {client.language}", *cells])
    yield from _rows(rows)
    yield ""


def page() -> str:
    """Return the text of the page."""
    lines = ["The scenarios", "-------------", ""]
    lines += [".. list-table::", "   :header-rows: 1", "   :widths: 20 80", ""]
    lines += _rows([["scenario", "the client"], *([TITLES[name], text] for name, text in SCENARIOS.items())])
    lines.append("")
    notes: list[str] = []
    for protocol, title in _PROTOCOLS.items():
        lines += [title, "-" * len(title), "", *_table(protocol, notes)]
    lines += ["Notes", "-----", "", "A dash stands for what a client does not have.", ""]
    lines += [f"{number}. {note}." for number, note in enumerate(notes, 1)]
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
