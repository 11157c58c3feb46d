"""Every error message of the package has the form of the others; each fault of the form is found."""

from __future__ import annotations

import pytest

from .collect import messages, messages_in
from .form import faults_in


def test_every_message_has_the_form() -> None:
    assert [f"{each.path}:{each.line}: {rule}" for each in messages() for rule in faults_in(each)] == []


def faults(source: str) -> str:
    """The broken rules of the messages of a module, in one text."""
    return "; ".join(rule for each in messages_in({"package/one.py": source}) for rule in faults_in(each))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ('ValueError("size must be at least 1")', "a refused value is not shown"),
        ('ValueError(f"size has a wrong type: expected {names}")', "not shown before what is right"),
        ('ValueError(f"size must be at least 1: {n}")', "the value comes before what is right"),
        ('ValueError(f"size must be an int, not {n!r}")', "an argument and its value"),
        ('ValueError(f"{n!r}: one of {names} is possible")', "one word for what is right"),
        ('ValueError("it is not there")', "begins without its subject"),
        ('ValueError("the node is lost, whoever had it")', "name the person or the program: 'whoever'"),
        ('ValueError("the peer says no")', "a program does not speak: 'says'"),
        ('ValueError("the node sent what it had")', "name the thing: 'what'"),
        ('ValueError("the node is lost.")', "ends with a full stop"),
        ('click.UsageError("--to needs --listen")', "ends with a full stop, or does not where Click does"),
        ("ValueError(f\"no node '{n}' here\")", "a value in quotes is written with !r"),
        ('ValueError("the node  is lost")', "spaces or marks at the wrong place"),
        (f'ValueError("the node {"x" * 240}")', "characters, not 240"),
        ('ValueError("The node is lost")', "begins with a capital"),
        (
            'OptionError("set linkName, or leave out dedup")',
            "the name of an option stands in quotes: linkName",
        ),
        ('click.BadParameter(f"{n!r}: expected a tls_key")', "an option as it is typed: tls_key"),
        ('OptionError("the option failed here")', "does not give what to do"),
    ],
)
def test_fault_is_found(call: str, rule: str) -> None:
    assert rule in faults(f"class OptionError(ValueError): ...\nraise {call}")


@pytest.mark.parametrize(
    "call",
    [
        'ValueError(f"size={n!r}: expected at least 1")',
        "ValueError(\"address='': expected an address that is not empty\")",
        'click.UsageError("--listen and --to need each other: give both.")',
        "ReplyError(f\"inequivalent arg '{n}' for queue '{q}' in vhost '/'\")",
        "OptionError(\"option 'durable' needs 'linkName'\")",
    ],
)
def test_message_with_the_form_has_no_fault(call: str) -> None:
    assert faults(f"class OptionError(ValueError): ...\nraise {call}") == ""
