"""The package shows the names of the client, and no others."""

from __future__ import annotations

import pytest

import trio_amqp10.amqp091 as package
from trio_amqp10 import amqp091


def test_package_shows_the_names_of_the_client() -> None:
    assert set(amqp091.__all__) <= set(dir(package))
    assert all(getattr(amqp091, name) is not None for name in amqp091.__all__)
    with pytest.raises(AttributeError):
        _ = amqp091.nothing
