"""What tests of a container with a store begin with."""

from __future__ import annotations

import pytest

from tests.container.mortal import Disk


@pytest.fixture
def disk() -> Disk:
    return Disk()
