"""Pages, order, names and columns of lists."""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from trio_amqp10.http.api.paging import Columns, Query, json_response, list_response
from trio_amqp10.http.errors import RequestError

ENTRIES = [{"name": f"q{number}", "n": number, "deep": {"x": -number}} for number in range(7)]


async def ask(query: str, entries: list[dict[str, Any]] = ENTRIES) -> Any:
    answer = await list_response(Query.of(QueryParams(query)), entries, lambda entry: entry)
    return json.loads(bytes(answer.body))


async def test_list_without_wishes_is_whole() -> None:
    assert await ask("") == ENTRIES


async def test_page_has_its_entries_and_the_counts() -> None:
    found = await ask("page=2&page_size=3")
    assert [each["n"] for each in found.pop("items")] == [3, 4, 5]
    assert found == {
        "filtered_count": 7,
        "item_count": 3,
        "page": 2,
        "page_count": 3,
        "page_size": 3,
        "total_count": 7,
    }


async def test_page_of_an_empty_list_is_empty() -> None:
    assert (await ask("page=1", []))["items"] == []


@pytest.mark.parametrize(
    "query",
    [
        "page=0",
        "page=-1",
        "page=x",
        "page=",
        "page=1&page_size=0",
        "page=1&page_size=501",
        "page=4&page_size=3",
        "page=99999999999999999999",
    ],
)
async def test_page_that_cannot_be_is_refused(query: str) -> None:
    with pytest.raises(RequestError) as caught:
        await ask(query)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("sort=n", [0, 1, 2, 3, 4, 5, 6]),
        ("sort=n&sort_reverse=true", [6, 5, 4, 3, 2, 1, 0]),
        ("sort=deep.x", [6, 5, 4, 3, 2, 1, 0]),
        ("sort=nothing", [0, 1, 2, 3, 4, 5, 6]),
        ("sort_reverse=true", [6, 5, 4, 3, 2, 1, 0]),
        ("page=1&page_size=2&sort=n&sort_reverse=true", [6, 5]),
        ("page=1&page_size=2&sort_reverse=true", [6, 5]),
        ("page=1&name=Q3", [3]),
        ("page=1&name=^q[25]$&use_regex=true", [2, 5]),
        ("page=1&name=^q[25]$", []),
    ],
)
async def test_order_and_names(query: str, numbers: list[int]) -> None:
    found = await ask(query)
    assert [each["n"] for each in (found["items"] if isinstance(found, dict) else found)] == numbers


async def test_values_of_many_types_have_an_order() -> None:
    mixed = [{"x": value} for value in ("b", 2, None, "a", 1.5, [], {}, True)]
    assert [each["x"] for each in await ask("sort=x", mixed)][:5] == [True, 1.5, 2, "a", "b"]


@pytest.mark.parametrize(
    "pattern", ["(", "(a+)+$", "a*a*a*b", "(?=x)", r"(a)\1", "[", "a{99999999999}", "x" * 300, "(a|a)*"]
)
async def test_pattern_that_is_wrong_or_could_take_long_is_refused(pattern: str) -> None:
    params = QueryParams({"page": "1", "name": pattern, "use_regex": "true"})
    with pytest.raises(RequestError) as caught:
        Query.of(params)
    assert caught.value.status == 400


async def test_worst_pattern_that_is_taken_ends_soon() -> None:
    matches = Query.of(QueryParams({"page": "1", "name": ".*a.*b", "use_regex": "true"})).matches
    assert matches is not None
    began = perf_counter()
    assert not matches("a" * 255)
    assert perf_counter() - began < 0.5


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("name", {"name": "q1"}),
        ("name,n", {"name": "q1", "n": 1}),
        ("deep.x,name", {"deep": {"x": -1}, "name": "q1"}),
        ("nothing", {}),
        ("name.x", {}),
        ("", ENTRIES[1]),
        ("name,name.x", {"name": "q1"}),
    ],
)
async def test_columns(columns: str, found: dict[str, Any]) -> None:
    assert Columns(columns)(ENTRIES[1]) == found


@given(st.text(max_size=30))
def test_any_text_can_name_columns(text: str) -> None:
    Columns(text)(ENTRIES[0])


async def test_answer_of_a_list_is_that_of_one_piece() -> None:
    value = [{"a": "ü"}, 1, None]
    assert json.loads(bytes((await json_response(value)).body)) == value
