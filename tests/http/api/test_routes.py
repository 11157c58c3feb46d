"""The table of routes."""

from __future__ import annotations

import re

import pytest

from tests.http.served import served
from trio_amqp10.http.api.routes import OPERATIONS, routes


def test_each_operation_is_once_in_the_table() -> None:
    places = [(method, re.sub(r"{\w+}", "{}", path)) for method, path, _ in OPERATIONS]
    assert len(places) == len(set(places))
    assert {each.path for each in routes(1)} == {f"/api/{path}" for _, path, _ in OPERATIONS}


async def test_each_operation_needs_a_login() -> None:
    async with served(users={"ada": "x"}) as client:
        client.http.auth = None
        for method, path, _ in OPERATIONS:
            answer = await client.ask(
                method, re.sub(r"{\w+}", "x", path), {} if method in ("PUT", "POST") else None
            )
            assert answer.status_code == 401, (method, path)


async def test_other_methods_are_refused_and_the_good_ones_named() -> None:
    async with served() as client:
        answer = await client.ask("PATCH", "queues/%2F/q")
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == {"DELETE", "GET", "HEAD", "PUT"}
        assert (await client.fault("PUT", "vhosts/more", {}))[:2] == (405, "method_not_allowed")


@pytest.mark.parametrize("path", ["overview", "queues"])
async def test_head_is_a_get_without_a_body(path: str) -> None:
    async with served() as client:
        answer = await client.ask("HEAD", path)
        assert (answer.status_code, answer.content) == (200, b"")


async def test_path_with_a_slash_at_its_end_is_another() -> None:
    async with served() as client:
        assert (await client.fault("GET", "queues/"))[0] == 404
