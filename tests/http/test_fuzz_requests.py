"""The fuzzer of the HTTP API: a short run, and that it finds what is wrong."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.http import FuzzFaultError, fuzz, make
from trio_amqp10.http.api import checks
from trio_amqp10.http.api.bodies import bad
from trio_amqp10.http.api.routes import OPERATIONS

if TYPE_CHECKING:
    from starlette.responses import Response

    from trio_amqp10.http.api.call import Call


async def test_requests_of_all_kinds_are_answered_as_they_should_be() -> None:
    seen = await fuzz(400, 1)
    assert {200, 204, 400, 404} <= set(seen)


async def test_refusal_that_has_changed_something_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(call: Call) -> Response:
        await call.management.declare_queue("left behind")
        raise bad("refused")

    table = tuple((method, path, wrong if path == "auth" else run) for method, path, run in OPERATIONS)
    monkeypatch.setattr("trio_amqp10.http.api.routes.OPERATIONS", table)
    with pytest.RaisesGroup(
        pytest.RaisesExc(FuzzFaultError, match="has changed something"), flatten_subgroups=True
    ):
        await fuzz(2000, 1)


async def test_answer_that_is_no_json_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.responses import Response

    async def wrong(_call: Call) -> Response:
        return Response("<html>")

    assert checks.auth in [run for _, _, run in OPERATIONS]
    table = tuple((method, path, wrong if path == "auth" else run) for method, path, run in OPERATIONS)
    monkeypatch.setattr("trio_amqp10.http.api.routes.OPERATIONS", table)
    with pytest.RaisesGroup(pytest.RaisesExc(FuzzFaultError, match="no JSON"), flatten_subgroups=True):
        await fuzz(2000, 1)


def test_same_seed_makes_the_same_requests() -> None:
    one, other = Random(5), Random(5)
    assert [make(one) for _ in range(50)] == [make(other) for _ in range(50)]
