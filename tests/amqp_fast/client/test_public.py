"""The package has the names of the client."""

from __future__ import annotations

import pytest

from trio_amqp10 import amqp_fast


def test_package_has_the_names_of_the_client() -> None:
    assert set(amqp_fast.__all__) <= set(dir(amqp_fast))
    with pytest.raises(AttributeError):
        amqp_fast.nothing  # noqa: B018
