"""The book of rules: which are optional, and what setting all of them means."""

from __future__ import annotations

from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.peer_rules import RULES, Strict


def test_rules_are_optional_where_strict_has_a_setting() -> None:
    settings = {name for name, rule in RULES.items() if rule.optional}
    assert settings == {name.replace("_", "-") for name in Strict.__slots__}


def test_strict_all_sets_every_rule() -> None:
    assert {getattr(Strict.all(True), name) for name in Strict.__slots__} == {True}
    assert {getattr(Strict.all(False), name) for name in Strict.__slots__} == {False}


def test_exception_without_a_rule_names_none() -> None:
    fault = RemoteProtocolError("x", "amqp:not-allowed")
    assert fault.rule is None
    assert str(fault) == "amqp:not-allowed: x"
