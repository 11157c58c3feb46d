"""The table of the page's requests."""

from __future__ import annotations

from tests.http.served import served
from trio_amqp10.container import Container
from trio_amqp10.http.page.files import FILES
from trio_amqp10.http.page.history import History
from trio_amqp10.http.page.routes import OPERATIONS, routes


def test_each_operation_is_once_in_the_table() -> None:
    paths = [path for _, path, _ in OPERATIONS]
    assert len(paths) == len(set(paths))
    made = {each.path for each in routes(1, History(Container("box").management))}
    assert made == {*FILES, *(f"/api/amqp10/{path}" for path in paths)}


async def test_each_operation_needs_a_login() -> None:
    async with served(users={"ada": "x"}) as client:
        client.http.auth = None
        for method, path, _ in OPERATIONS:
            answer = await client.ask(method, f"amqp10/{path}", {} if method == "POST" else None)
            assert answer.status_code == 401, path


async def test_each_change_without_an_argument_is_a_bad_request() -> None:
    async with served() as client:
        for method, path, _ in OPERATIONS:
            if method == "POST":
                assert (await client.fault(method, f"amqp10/{path}", {}))[:2] == (400, "bad_request"), path
            assert (await client.ask("DELETE", f"amqp10/{path}")).status_code == 405
