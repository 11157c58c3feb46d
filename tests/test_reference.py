"""The reference of the manual: every public name, each once, and no other."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import trio_amqp10 as amqp

PAGES = Path(__file__).resolve().parents[1] / "docs/reference"
DIRECTIVE = re.compile(r"\.\. (?:auto|py:)(?:class|data|exception|function):: (\S+)")
MODULE = re.compile(r"\.\. (?:py:)?currentmodule:: (\S+)")

WHOLE = [
    "trio_amqp10",
    "trio_amqp10.amqp091",
    "trio_amqp10.aio",
    "trio_amqp10.amqp_fast",
    "trio_amqp10.blocking",
    "trio_amqp10.kombu",
    "trio_amqp10.rabbitmq",
    "trio_amqp10.spark",
]
"""Packages of which the reference has every name."""
ON_PAGES = {"trio_amqp10.sasl", "trio_amqp10.tls"}
"""Public names that are modules, with a section each."""


@cache
def shown() -> Counter[str]:
    """How often each name stands in the reference, by its module."""
    found: Counter[str] = Counter()
    for page in sorted(PAGES.glob("*.rst")):
        module = "trio_amqp10"
        for line in page.read_text().splitlines():
            if switched := MODULE.match(line):
                module = switched[1]
            elif named := DIRECTIVE.match(line):
                name = named[1]
                found[name if name.startswith("trio_amqp10.") else f"{module}.{name}"] += 1
    return found


@pytest.mark.parametrize("package", WHOLE)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    module = import_module(package)
    names = {f"{package}.{name}" for name in module.__all__} - ON_PAGES - set(shown())
    # A name that a package shares with the main one stands there.
    assert sorted(name for name in names if not is_shared(module, name.rpartition(".")[2])) == []


def is_shared(module: object, name: str) -> bool:
    return module is not amqp and getattr(module, name) is getattr(amqp, name, None)


def test_name_is_in_the_reference_once() -> None:
    assert [name for name, times in shown().items() if times > 1] == []


def test_every_name_of_the_reference_is_public() -> None:
    packages = {name.rpartition(".")[0] for name in shown()}
    public = {name for package in packages for name in public_names_or_all(package)}
    assert sorted(set(shown()) - public) == []


def public_names_or_all(package: str) -> set[str]:
    """The public names; of ``amqp.tls``, which is shown by the name that programs know it by, those of the module."""
    module = amqp.tls if package == "trio_amqp10.tls" else import_module(package)
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    return {f"{package}.{name}" for name in names}
