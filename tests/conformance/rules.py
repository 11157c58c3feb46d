"""The page of the rules, from the table in ``core.peer_rules``."""

from __future__ import annotations

from trio_amqp10.core.peer_rules import RULES, Strict

from .rst import table, title

_HEAD = """
.. py:currentmodule:: trio_amqp10

.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

These rules of the standard bind a peer. A breach ends a link, a session or the connection (the scope), with an error of
the given ``Condition``. The description of the error ends with the name of the rule, on this side
(``RemoteProtocolError.rule``) and at the peer. ``Limits`` has the limits that the rules name.

"""

_SETTINGS = """
You can choose whether these rules are enforced (*strict*) or not (*tolerant*); the table has the defaults. ``strict=True``
enforces all of them, ``strict=False`` none. ``Strict(link_credit=False)`` changes one rule, and the others keep their defaults.

"""


def page() -> str:
    defaults = Strict()
    settings = [
        (f"``{rule.name}``", "strict" if getattr(defaults, rule.name.replace("-", "_")) else "tolerant")
        for rule in RULES.values()
        if rule.optional
    ]
    rows = [
        (f"``{rule.name}``", rule.section, rule.summary, f"``{rule.condition}``", rule.scope)
        for rule in RULES.values()
    ]
    return (
        title("Rules")
        + _HEAD
        + table(("rule", "section", "requirement", "condition", "scope"), rows, (22, 10, 40, 24, 10))
        + "\n"
        + title("Strict and tolerant", "-")
        + _SETTINGS
        + table(("rule", "setting"), settings, (70, 30))
        + "\n.. autoclass:: Strict\n   :members: all\n\n.. autoclass:: ProtocolRule\n   :members: optional\n\n"
        + ".. py:data:: RULES\n   :type: Mapping[str, ProtocolRule]\n\n   All rules, by name.\n"
    )
