"""Each cell of the table of clients, with a container and with RabbitMQ 4 as the oracle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.conftest import need

from . import running
from .table import CLIENTS, EXCEPTIONS, SCENARIOS, Client

if TYPE_CHECKING:
    from collections.abc import Generator

Results = dict[str, dict[str, dict[str, str]]]


@pytest.fixture(scope="module", params=["container", "rabbitmq4"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    """The name of a server, and what all clients found there."""
    folder = tmp_path_factory.mktemp("clients")
    if request.param == "container":
        with running.container(folder) as made:
            yield made.name, running.run(made, folder)
    else:
        made = running.rabbitmq(request.getfixturevalue("rabbitmq4"))
        yield made.name, running.run(made, folder)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_client_does_what_the_table_has(client: Client, scenario: str, server: tuple[str, Results]) -> None:
    need(client.peer)
    name, results = server
    found = results[client.name][scenario]
    known = EXCEPTIONS.get((client.name, scenario))
    if known is None or name not in known.servers:
        assert found["found"] == "yes", found
    else:
        assert (found["found"], known.says in found.get("why", "")) == (known.found, True), found
