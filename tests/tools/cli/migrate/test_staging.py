"""Names of staging queues: read back as they were written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.tools.cli.migrate.staging import LOCK, PREFIX, Way, find_staging, new_staging


@given(st.sampled_from(["out", "in"]), st.text(min_size=1))
def test_name_is_read_back(way: Way, queue: str) -> None:
    if not queue.isprintable() or any("\ud800" <= each <= "\udfff" for each in queue):
        return
    staging = new_staging(way, queue)
    assert find_staging(staging.address) == staging
    assert staging.address.startswith(PREFIX)


def test_each_batch_has_a_name_of_its_own() -> None:
    assert new_staging("out", "q") != new_staging("out", "q")


@pytest.mark.parametrize("address", [LOCK, "orders", "migrate/out/q", "migrate/up/q/1", "x/out/q/1"])
def test_other_queues_are_no_staging_queues(address: str) -> None:
    assert find_staging(address) is None
