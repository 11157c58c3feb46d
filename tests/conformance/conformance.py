"""The page of conformance: what the standard asks for, and the tests that show it."""

from __future__ import annotations

from .requirement import KINDS, RULE, Requirement
from .rows import (
    attach,
    closing,
    connection_states,
    connections,
    credit,
    definitions,
    deliveries,
    disposition,
    flow,
    frames,
    headers,
    idle_timeouts,
    links,
    messages,
    network,
    opening,
    outcomes,
    overview,
    resumption,
    sections,
    security,
    sessions,
    termini,
    transactions,
    transfer,
    types,
)
from .rst import find_test, table, title

__all__ = ["PARTS", "page"]

PARTS: dict[str, list[Requirement]] = {
    "Part 0: overview": overview.REQUIREMENTS,
    "Part 1: types": types.REQUIREMENTS,
    "Part 2: transport": [
        *network.REQUIREMENTS,
        *headers.REQUIREMENTS,
        *frames.REQUIREMENTS,
        *connections.REQUIREMENTS,
        *idle_timeouts.REQUIREMENTS,
        *connection_states.REQUIREMENTS,
        *sessions.REQUIREMENTS,
        *links.REQUIREMENTS,
        *credit.REQUIREMENTS,
        *deliveries.REQUIREMENTS,
        *opening.REQUIREMENTS,
        *attach.REQUIREMENTS,
        *flow.REQUIREMENTS,
        *transfer.REQUIREMENTS,
        *disposition.REQUIREMENTS,
        *closing.REQUIREMENTS,
        *definitions.REQUIREMENTS,
    ],
    "Part 3: messaging": [
        *messages.REQUIREMENTS,
        *sections.REQUIREMENTS,
        *outcomes.REQUIREMENTS,
        *resumption.REQUIREMENTS,
        *termini.REQUIREMENTS,
    ],
    "Part 4: transactions": transactions.REQUIREMENTS,
    "Part 5: security": security.REQUIREMENTS,
}

_HEAD = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

What AMQP 1.0 (OASIS Standard, 29 October 2012; ISO/IEC 19464:2014) asks of an implementation, in our words, and the
tests that show it. The middle column has the standard's word; where it has none, and only says how things are,
there is a dash. What is missing is said: "not yet", and in brackets what limits the rest.
What a peer may not do, and what comes of it, is in :doc:`rules`.

"""


def _shown(need: Requirement) -> str:
    tests = "; ".join(f"``{name}`` ({file})" for file, name in map(find_test, need.tests))
    if not need.gap:
        return tests
    if tests:
        return f"{tests} ({need.gap})"
    kind, _, why = need.gap.partition(": ")
    assert kind in KINDS, need.gap
    return f"**{kind}**: {why}"


def _count() -> str:
    every = [need for needs in PARTS.values() for need in needs]
    limited = sum(bool(need.tests and need.gap) for need in every)
    untested = [need.gap.partition(":")[0] for need in every if not need.tests]
    shown = len(every) - limited - len(untested)
    rest = ", ".join(f"{untested.count(kind)} {kind}" for kind in KINDS)
    return f"{len(every)} requirements: {shown} shown, {limited} with a limit, {rest}.\n"


def page() -> str:
    text = title("Conformance") + _HEAD + _count()
    for name, needs in PARTS.items():
        rows = [
            (need.number, "–" if need.level == RULE else need.level, need.text, _shown(need))
            for need in needs
        ]
        text += f"\n{title(name, '-')}\n" + table(
            ("number", "", "what is required", "shown by"), rows, (8, 8, 38, 46)
        )
    return text
