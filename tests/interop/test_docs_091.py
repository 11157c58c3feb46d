"""The page about tests of pika, aio-pika and Celery: its files are written as they stand, and pytest is run on each."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.test_docs import ROOT, blocks

from .conftest import need
from .peers import PEERS

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs/how-to" / "pika.rst"
FILES = {
    block.text.splitlines()[0].removeprefix("# "): block.text
    for block in blocks(PAGE)
    if block.kind == "python"
}
TESTS = [name for name in FILES if name.startswith("test_")]


@pytest.mark.parametrize("name", TESTS)
def test_file_of_the_page_passes(name: str, tmp_path: Path) -> None:
    need("pika")
    if name == "test_tasks.py":
        need("celery")
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    (packages,) = (PEERS / "pika").glob("lib/python3*/site-packages")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_page_has_a_file_for_each_client() -> None:
    assert {"test_pika.py", "test_aio_pika.py", "tasks.py", "test_tasks.py"} <= set(FILES)
