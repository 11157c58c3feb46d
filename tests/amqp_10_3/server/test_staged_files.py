"""Files that are staged are bounded in age, number and octets."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp_10_3.server.staged_files import StagedFiles


def test_staged_files_are_forgotten_when_they_are_old_or_too_many() -> None:
    files = StagedFiles(kept=10, max_files=2, max_octets=10)
    first = files.open(("o", "1"), 5, "c", 0.0)
    files.release(first, 0.0)
    assert files.open(("o", "1"), 5, "c", 5.0) is first
    assert files.open(("o", "1"), 6, "c", 5.0) is not first
    files.finish(first)
    assert len(files) == 1
    files.release(files.open(("o", "1"), 6, "c", 5.0), 5.0)
    for name in "23":
        file = files.open(("o", name), 20, "c", 6.0)
        file.body += b"x" * 6
        files.release(file, 6.0)
    assert len(files) < 3
    files.open(("o", "4"), 1, "c", 20.0)
    assert len(files) == 1


def test_files_that_one_client_stages_are_bounded_in_number() -> None:
    files = StagedFiles(max_active=2)
    first = files.open(("o", "1"), 5, "c", 0.0)
    files.open(("o", "2"), 5, "c", 0.0)
    assert files.open(("o", "1"), 5, "c", 0.0) is first
    first = files.open(("o", "1"), 6, "c", 0.0)
    with pytest.raises(ReplyError, match="2 files") as caught:
        files.open(("o", "3"), 5, "c", 0.0)
    assert (caught.value.code, caught.value.scope) == (506, "connection")
    files.open(("other", "3"), 5, "d", 0.0)
    files.finish(first)
    third = files.open(("o", "3"), 5, "c", 0.0)
    files.release(third, 0.0)
    files.finish(third)
    files.open(("o", "4"), 5, "c", 0.0)
    with pytest.raises(ReplyError):
        files.open(("o", "3"), 5, "c", 0.0)
    assert len(files) == 4


def test_files_that_one_client_stages_are_bounded_in_octets_unless_it_is_one() -> None:
    files = StagedFiles(max_active_octets=10)
    large = files.open(("o", "1"), 11, "c", 0.0)
    with pytest.raises(ReplyError, match="10 octets") as caught:
        files.open(("o", "2"), 0, "c", 0.0)
    assert caught.value.code == 506
    files.finish(large)
    files.open(("o", "1"), 4, "c", 0.0)
    files.open(("o", "2"), 6, "c", 0.0)
    files.open(("o", "2"), 5, "c", 0.0)
    with pytest.raises(ReplyError):
        files.open(("o", "3"), 2, "c", 0.0)
    files.open(("o", "3"), 1, "c", 0.0)
