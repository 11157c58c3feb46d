"""Every limit has a default that is documented, and ``None`` is the only way to have none."""

from __future__ import annotations

import dataclasses

import pytest

from trio_amqp10.amqp10.engine.limits import Limits


def test_limits_document_every_field() -> None:
    assert Limits.__doc__ is not None
    for field in dataclasses.fields(Limits):
        assert f"{field.name}:" in Limits.__doc__ or field.name in ("heartbeat_rate", "churn_rate")


def test_limits_bound_everything_by_default() -> None:
    assert all(value not in (None, 0) for value in dataclasses.asdict(Limits()).values())


def test_limits_cannot_be_changed_when_they_are_in_use() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().max_links = 1  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
