"""How much memory a process may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.container import Container
from trio_amqp10.core.available_memory import available_memory, default_limit

if TYPE_CHECKING:
    from pathlib import Path


def test_limit_is_a_share_of_what_the_process_may_use() -> None:
    memory = available_memory()
    assert memory is not None
    assert default_limit() == int(memory * 0.4)
    assert Container().watermark.limit == default_limit()
    assert Container(memory_limit=None).watermark.limit is None
    with pytest.raises(amqp.LocalProtocolError, match=r"memory_limit=0: .* None for no limit"):
        Container(memory_limit=0)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "2000000\n", "a/memory.max": "1000000\n"}, 1_000_000),
        ("0::/a/b\n", {"a/b/memory.max": "max\n"}, None),
        ("0::/elsewhere\n", {"memory.max": "3000000\n"}, 3_000_000),  # its own is the root, in a container
        ("4:cpu,memory:/a\n", {"memory/a/memory.limit_in_bytes": "5000000\n"}, 5_000_000),
        ("4:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "5000000\n"}, None),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ("nonsense\n", {"memory.max": "4000000\n"}, 4_000_000),
    ],
)
def test_memory_of_a_process_is_what_its_control_groups_permit(
    tmp_path: Path, own: str, files: dict[str, str], expected: int | None
) -> None:
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        file = tmp_path / "groups" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    unlimited = available_memory(tmp_path / "none", tmp_path / "none")
    found = available_memory(tmp_path / "own", tmp_path / "groups")
    assert found == (unlimited if expected is None else expected)
