"""Pages, order and columns of a list, by the query of a request.

Only the entries of the page are made. A name or an order that is asked for is read from each thing alone, if there is a reader of that
column; otherwise all entries are made. Long lists are made in pieces.

A pattern of a client could keep the processor busy for hours, so it has at most two repetitions, and none of a group.

Knows lists and objects of JSON; does not know what they are about.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from starlette.responses import Response

from trio_amqp10.container.management.pace import Pace
from trio_amqp10.http.errors import RequestError

from .bodies import bad

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.datastructures import QueryParams

T = TypeVar("T")

_MOST: Final = 500
"""The largest size of a page, as at RabbitMQ."""
_SIZE: Final = 100
_AT_ONCE: Final = 128
"""Entries that are put in order in one piece."""
_NAME: Final = "name"
_LONGEST_PATTERN: Final = 256
_REPEATS: Final = re.compile(r"(?<!\\)(?:\\\\)*[*+?{]")
_NOT_SAFE: Final = re.compile(r"\)[*+?{]|\(\?|\\[1-9]")
_MOST_REPEATS: Final = 2


class Columns:
    """The columns that a client asks for.

    Args:
        text: names with commas between them, each with dots for an object within an object; None for all columns.
    """

    def __init__(self, text: str | None) -> None:
        self._paths = None if not text else [name.split(".") for name in text.split(",")[:256]]

    def __call__(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an entry with these columns alone; columns that it lacks are left out."""
        if self._paths is None:
            return entry
        chosen: dict[str, Any] = {}
        for path in self._paths:
            value = _value_at(path, entry)
            if value is not None:
                place = chosen
                for name in path[:-1]:
                    inner = place.setdefault(name, {})
                    if not isinstance(inner, dict):
                        break
                    place = cast("dict[str, Any]", inner)
                else:
                    place[path[-1]] = value
        return chosen


@dataclass(frozen=True, slots=True)
class Query:
    """The wishes of a client about a list.

    Args:
        page: the number of the page, from 1; None for the whole list.
        size: the entries of a page.
        matches: whether an entry of this name is asked for; None for all entries.
        order: the column to sort by, as a path; None for the order of the list.
        reverse: whether the order is reversed.
        columns: the columns.
    """

    page: int | None
    size: int
    matches: Callable[[str], bool] | None
    order: list[str] | None
    reverse: bool
    columns: Columns

    @classmethod
    def of(cls, params: QueryParams) -> Query:
        """Return the wishes in the query of a request.

        Raises:
            RequestError: 400, they are not valid.
        """
        page = size = None
        if "page" in params:
            try:
                page = int(params["page"][:18])
                size = int(params["page_size"][:18]) if "page_size" in params else None
            except ValueError:
                raise bad(
                    f"page={params['page'][:18]!r}, page_size={params.get('page_size', '')[:18]!r}: expected whole numbers"
                ) from None
            if page < 1 or (size is not None and not 1 <= size <= _MOST):
                raise RequestError(
                    400,
                    "invalid_pagination_parameters",
                    f"page={page}, page_size={_SIZE if size is None else size}: expected a page of at least 1, of 1 to {_MOST} entries",
                )
        name = params.get("name")
        sort = params.get("sort")
        return cls(
            page=page,
            size=size or _SIZE,
            matches=None if not name or page is None else _matcher(name, params.get("use_regex") == "true"),
            order=sort.split(".")[:8] if sort else None,
            reverse=params.get("sort_reverse") == "true",
            columns=Columns(params.get("columns")),
        )


def _matcher(name: str, is_pattern: bool) -> Callable[[str], bool]:
    if not is_pattern:
        wanted = name.lower()
        return lambda text: wanted in text.lower()
    if len(name) > _LONGEST_PATTERN or _NOT_SAFE.search(name) or len(_REPEATS.findall(name)) > _MOST_REPEATS:
        raise bad(
            f"name={name[:64]!r}: expected a pattern of at most {_LONGEST_PATTERN} characters with at most {_MOST_REPEATS} repetitions, and none of a group"
        )
    try:
        pattern = re.compile(name)
    except (re.error, OverflowError, RecursionError):
        raise bad(f"name={name[:64]!r}: expected a regular expression") from None
    return lambda text: pattern.search(text) is not None


def no_reader(_column: str) -> None:
    """Return None: no column is read from a thing alone."""


async def list_response(
    query: Query,
    things: Sequence[Any],
    to_json: Callable[[Any], Mapping[str, Any]],
    reader: Callable[[str], Callable[[Any], Any] | None] = no_reader,
) -> Response:
    """Return a list, or a page of it, as its answer.

    Args:
        query: the wishes of the client.
        things: what the entries are made of.
        to_json: returns the object of JSON for a thing.
        reader: returns, for the name of a column, a function that reads this column of a thing's object without making the
            object; None if there is no such function.

    Raises:
        RequestError: 400, there is no such page.

    Cancelled: nothing has changed.
    """
    total = len(things)
    name = None if query.matches is None else reader(_NAME)
    value = None if query.order is None or len(query.order) > 1 else reader(query.order[0])
    if (
        query.page is None
        or (query.matches is not None and name is None)
        or (query.order is not None and value is None)
    ):
        things, to_json = await _made(things, to_json), _itself
        name, value = partial(_value_at, [_NAME]), partial(_value_at, query.order or ())
    if query.matches is not None and name is not None:
        things = await _matching(things, name, query.matches)
    count = len(things)
    first, last, pages = 0, count, max(1, -(-count // query.size))
    if query.page is not None:
        if query.page > pages:
            raise RequestError(
                400,
                "page_out_of_range",
                f"page={query.page}: expected at most {pages}, for {count} entries",
            )
        first, last = (query.page - 1) * query.size, query.page * query.size
    if query.order is not None and value is not None:
        things = await _in_order(things, value, query.reverse, last)
    elif query.reverse:
        things = things[::-1]
    chosen = await _made(things[first:last], to_json)
    if query.page is None:
        return await json_response(chosen, query.columns)
    counts = {
        "filtered_count": count,
        "item_count": len(chosen),
        "page": query.page,
        "page_count": pages,
        "page_size": query.size,
        "total_count": total,
    }
    items = await _encoded_list(chosen, query.columns)
    return _response(_encoded(counts)[:-1] + b',"items":' + items + b"}")


async def _made(things: Sequence[Any], to_json: Callable[[Any], T]) -> list[T]:
    pace, found = Pace(), list[T]()
    for thing in things:
        await pace.pause()
        found.append(to_json(thing))
    return found


def _itself(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return entry


async def _matching(
    things: Sequence[Any], name: Callable[[Any], Any], matches: Callable[[str], bool]
) -> list[Any]:
    pace, found = Pace(), list[Any]()
    for thing in things:
        if pace.is_over():
            await pace.pause()
        text = name(thing)
        if matches("" if text is None else str(text)):
            found.append(thing)
    return found


async def _in_order(
    things: Sequence[Any], value: Callable[[Any], Any], reverse: bool, most: int
) -> list[Any]:
    """Return the first things by their value; equal ones stay in their order."""
    pace, runs = Pace(), list[list[tuple[tuple[int, Any], Any]]]()
    by_rank = itemgetter(0)
    for start in range(0, len(things), _AT_ONCE):
        run = [(_rank(value(thing)), thing) for thing in things[start : start + _AT_ONCE]]
        run.sort(key=by_rank, reverse=reverse)
        runs.append(run[:most])
        await pace.pause()
    found = list[Any]()
    for _, thing in islice(merge(*runs, key=by_rank, reverse=reverse), most):
        if pace.is_over():
            await pace.pause()
        found.append(thing)
    while runs:  # To free the ranks of a long list at once would take as long as several pieces.
        runs.pop()
        await pace.pause()
    return found


async def json_response(found: Any, columns: Columns | None = None, status: int = 200) -> Response:
    """Return an answer of JSON; a long list is encoded in pieces.

    Cancelled: nothing has changed.
    """
    if isinstance(found, list):
        entries: list[Any] = found  # pyright: ignore[reportUnknownVariableType]
        return _response(await _encoded_list(entries, columns), status)
    return _response(_encoded(found if columns is None else columns(found)), status)


def _response(octets: bytes, status: int = 200) -> Response:
    return Response(octets, status, media_type="application/json")


async def _encoded_list(entries: list[Any], columns: Columns | None) -> bytes:
    pace, parts = Pace(), list[bytes]()
    for entry in entries:
        await pace.pause()
        parts.append(_encoded(entry if columns is None else columns(entry)))
    return b"[" + b",".join(parts) + b"]"


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def _value_at(path: Sequence[str], entry: Mapping[str, Any]) -> Any:
    value: Any = entry
    for name in path:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(name)
    return value


def _rank(value: Any) -> tuple[int, Any]:
    """Return a key that orders values: numbers, then text, then all others."""
    if isinstance(value, (bool, int, float)):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 2, ""
