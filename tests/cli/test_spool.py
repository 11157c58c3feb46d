"""``amqp10 spool`` as far as it goes without Arrow; the rest is in tests/spark."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from trio_amqp10.cli import spool_command
from trio_amqp10.cli.commands import amqp10

NEEDED = ("spool", "amqp://127.0.0.1:1/q", "--to", "/nowhere", "--lane", "a")


def test_spool_says_what_to_install_where_arrow_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_command, "find_spec", lambda _: None)
    result = CliRunner().invoke(amqp10, NEEDED)
    assert result.exit_code == 2
    assert "pip install 'trio-amqp10[spool]'" in click.unstyle(result.output)


def test_spool_trusts_nobody_in_the_peers_name() -> None:
    result = CliRunner().invoke(amqp10, [*NEEDED, "--insecure"])
    assert result.exit_code == 2
    assert "give --tls-ca" in click.unstyle(result.output)


@pytest.mark.parametrize("missing", ["--to", "--lane"])
def test_spool_needs_a_place_and_a_lane(missing: str) -> None:
    place = NEEDED.index(missing)
    result = CliRunner().invoke(amqp10, [*NEEDED[:place], *NEEDED[place + 2 :]])
    assert result.exit_code == 2
    assert f"Missing option '{missing}'" in click.unstyle(result.output)
