"""The package has the names of the client."""

from __future__ import annotations

import pytest

from trio_amqp10 import amqp_10_3


def test_package_has_the_names_of_the_client() -> None:
    assert set(amqp_10_3.__all__) <= set(dir(amqp_10_3))
    assert all(getattr(amqp_10_3, name) for name in amqp_10_3.__all__)
    with pytest.raises(AttributeError):
        amqp_10_3.nothing  # noqa: B018
