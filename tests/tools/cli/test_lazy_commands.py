"""Commands that are imported on first use say what to install when that fails."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.tools import cli

if TYPE_CHECKING:
    from pathlib import Path


def test_command_says_what_to_install_when_the_extra_is_missing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name in ('click', 'rich') else find(name, *rest)\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "trio_amqp10", "demo"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines() == [
        "amqp10 needs click and rich; install them with: pip install 'trio-amqp10[cli]'"
    ]


def test_interrupt_during_the_start_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "trio_amqp10.tools.cli.commands", Interrupted("commands"))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "amqp10: interrupted\n"
