"""The pytest fixtures ``amqp_container`` and ``amqp_url``.

They are not async themselves, so they work with each runner of async tests, and with tests that are not async. A run that
uses neither fixture does not import the container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.container.container import Container


@pytest.fixture
def amqp_container() -> Container:
    """A container for the test: ``async with amqp_container.connect() as conn``."""
    from trio_amqp10.container.container import Container

    return Container()


@pytest.fixture
def amqp_url() -> Iterator[str]:
    """The URL of a container in its own thread, for code that does not use trio.

    A queue is created on first use. Each test has its own container.
    """
    from .containers import running_container

    with running_container() as url:
        yield url
