"""For pytest: the fixtures ``amqp_container`` and ``amqp_url``.

They work with every way to run async tests, and with tests that are not async, because they are not async themselves.
A run that asks for neither imports nothing of the package for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.container.container import Container

__all__ = ["amqp_container", "amqp_url"]


@pytest.fixture
def amqp_container() -> Container:
    """A container without nodes, to connect to: ``async with amqp_container.connect() as conn``."""
    from trio_amqp10.container.container import Container

    return Container()


@pytest.fixture
def amqp_url() -> Iterator[str]:
    """The URL of a container in a thread of its own, at a real port: for code that is not trio.

    Queues are made when they are first used. Each test has a container of its own.
    """
    from .containers import running_container

    with running_container() as url:
        yield url
