"""``amqp10 spool`` as far as it goes without Arrow; the rest is in tests/spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.testing import CliRunner

from trio_amqp10.tools.cli import spool_command
from trio_amqp10.tools.cli.commands import amqp10

if TYPE_CHECKING:
    import pytest

NEEDED = ("spool", "amqp://127.0.0.1:1/q", "--to", "/nowhere", "--lane", "a")


def test_spool_says_what_to_install_where_arrow_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_command, "find_spec", lambda _: None)
    result = CliRunner().invoke(amqp10, NEEDED)
    assert result.exit_code == 2
    assert "pip install 'trio-amqp10[spool]'" in click.unstyle(result.output)
