"""The list of public names is current, so that none changes without being seen."""

from __future__ import annotations

import pytest

from . import public_names


def test_list_of_public_names_is_current() -> None:
    listed = set(public_names.LIST.read_text().splitlines())
    there = set(public_names.public_names())
    gone, new = sorted(listed - there), sorted(there - listed)
    if gone or new:
        pytest.fail(
            f"these public names are gone: {gone}; these are new: {new}. Programs rely on them: name what is gone "
            "in the changelog, under Migration, and run python -m tests.public_names"
        )


def test_parameter_is_part_of_the_list() -> None:
    listed = public_names.public_names()
    assert any(name.startswith("trio_amqp10.Container.add_queue(name, *, max_length=") for name in listed)
    assert any(name.startswith("trio_amqp10.blocking.connect(") for name in listed)
