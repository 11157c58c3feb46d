"""For pytest: the fixture ``amqp_container``.

It works with every way to run async tests, because it is not async itself.
"""

from __future__ import annotations

import pytest

from trio_amqp10.container.service import Container

__all__ = ["amqp_container"]


@pytest.fixture
def amqp_container() -> Container:
    """A container without nodes, to connect to: ``async with amqp_container.connect() as conn``."""
    return Container()
