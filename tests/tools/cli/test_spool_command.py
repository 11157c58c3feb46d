"""The command amqp10 spool needs a place and a lane."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from trio_amqp10.tools.cli.commands import amqp10

from .test_spool import NEEDED


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
