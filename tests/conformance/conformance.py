"""The page of conformance: what the standard asks for, and the tests that show it."""

from __future__ import annotations

from .figures import figures_of
from .requirement import KINDS, RULE, Requirement
from .rows import (
    anonymous_terminus,
    attach,
    claims,
    closing,
    connection_states,
    connections,
    credit,
    definitions,
    deliveries,
    disposition,
    expressions,
    filters,
    flow,
    frames,
    headers,
    idle_timeouts,
    link_pairing,
    links,
    management,
    messages,
    network,
    opening,
    outcomes,
    overview,
    resumption,
    sections,
    security,
    sessions,
    sole_connection,
    termini,
    transactions,
    transfer,
    types,
    websockets,
)
from .rst import find_test, table, title

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
    "Extension A: anonymous terminus": anonymous_terminus.REQUIREMENTS,
    "Extension B: link pairing": link_pairing.REQUIREMENTS,
    "Extension C: connection uniqueness": sole_connection.REQUIREMENTS,
    "Extension D: WebSocket binding": websockets.REQUIREMENTS,
    "Extension E: filter expressions": [*filters.REQUIREMENTS, *expressions.REQUIREMENTS],
    "Extension F: claims-based security": claims.REQUIREMENTS,
    "Extension G: management": management.REQUIREMENTS,
}

_HEAD = """
.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

This page lists each statement of AMQP 1.0 (OASIS Standard, 29 October 2012; ISO/IEC 19464:2014) and of seven
extensions, in the words of this project, with the tests that show that the product obeys the statement.
The number of a statement is its section, and its place in the section. The second column has the standard's word, such as MUST;
a dash stands for a binding definition without such a word. :doc:`rules` lists the rules for a peer, and the error of each breach.
Extensions A to D are committee specifications of OASIS, whose statements are taken from the tests and sources of other
implementations; E to G are working drafts.

A *mutant* is a small change of the product's source that removes the behaviour of one statement. ``make conformance ALL=1``
makes each of these changes in turn and runs the tests of the statement: at least one test must fail for each mutant, and
each test must fail for at least one. So a statement with a mutant cannot be lost unnoticed. ``make conformance`` does so for
statements whose tests or sources have changed since the last such run, and for a tenth of the others. A statement
that is a MUST, a MUST NOT, a SHOULD, a SHOULD NOT or RECOMMENDED has a mutant if it has tests. There are {mutants} mutants in all; one that
stands for several statements counts once. ``make conformance-several`` also makes plain mutants of the lines that these mutants
change: of each comparison, branch, call and assignment in turn.

The table counts the statements of each part. Each statement is counted once in the columns after "with a mutant":

- *shown*: tests show all of it;
- *with a limit*: tests show a part of it; the brackets after the tests name the rest;
- *not yet*: the product should obey it, and does not;
- *not offered*: the standard allows products without it, or it belongs to an extension that the product supports only in part;
- *shown elsewhere*: other statements cover it piece by piece, and have the tests;
- *nothing to show*: no test of this product can see it, because it binds a user, another program, or a text,
  or because its wording was not at hand.

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


def _tally(needs: list[Requirement]) -> list[int]:
    """How many statements there are, how many of them have a mutant, and then each under one word."""
    limited = sum(bool(need.tests and need.gap) for need in needs)
    untested = [need.gap.partition(":")[0] for need in needs if not need.tests]
    return [
        len(needs),
        sum(bool(need.mutants) for need in needs),
        len(needs) - limited - len(untested),
        limited,
        *(untested.count(kind) for kind in KINDS),
    ]


def _count() -> str:
    every = [need for needs in PARTS.values() for need in needs]
    rows = [(name, *map(str, _tally(needs))) for name, needs in (*PARTS.items(), ("all", every))]
    head = ("part", "statements", "with a mutant", "shown", "with a limit", *KINDS)
    return table(head, rows, (30, *(10 for _ in head[1:])))


def page() -> str:
    every = [need for needs in PARTS.values() for need in needs]
    head = _HEAD.replace("{mutants}", str(figures_of(every).mutants))
    text = title("Conformance") + head + _count()
    for name, needs in PARTS.items():
        rows = [
            (need.number, "–" if need.level == RULE else need.level, need.text, _shown(need))
            for need in needs
        ]
        text += f"\n{title(name, '-')}\n" + table(
            ("number", "", "what is required", "shown by"), rows, (8, 8, 38, 46)
        )
    return text
