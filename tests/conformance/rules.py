"""The page of the rules, from the table that the engine has them in."""

from __future__ import annotations

from trio_amqp10.protocol_rules import RULES, Strict

from .rst import table, title

__all__ = ["page"]

_HEAD = """
.. py:currentmodule:: trio_amqp10

.. This page is made by ``python -m tests.conformance``: change the tables, not the page.

What a peer may not do, and what comes of it when it does. The name of the rule stands at the end of the error's
description, on our side (``RemoteProtocolError.rule``) and on the peer's. A breach ends a link, a session or the
connection: the scope. The condition is one of ``Condition``. Limits that are named are those of ``Limits``.

"""

_SETTINGS = """
These rules can be held strictly or not; the setting is the one that holds without a word. ``strict=True`` holds all
of them strictly, ``strict=False`` none; one by one, ``Strict(link_credit=False)`` changes one and leaves the others.

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
        + table(("rule", "section", "what is due", "condition", "scope"), rows, (22, 10, 40, 24, 10))
        + "\n"
        + title("Strict and tolerant", "-")
        + _SETTINGS
        + table(("rule", "setting"), settings, (70, 30))
        + "\n.. autoclass:: Strict\n   :members: all\n\n.. autoclass:: ProtocolRule\n   :members: optional\n\n"
        + ".. py:data:: RULES\n   :type: Mapping[str, ProtocolRule]\n\n   Every rule, by its name.\n"
    )
