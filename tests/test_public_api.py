"""What ``trio_amqp10`` exports: each name once, typed, documented, and honest about cancellation."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import time
import types
import typing
from collections import defaultdict
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
import trio_amqp10.broker.stores
import trio_amqp10.container.management
import trio_amqp10.testing

from .structure import tree_of

SOURCE = Path(amqp.__file__).read_text()


def imports_of(package: types.ModuleType) -> list[ast.ImportFrom]:
    """What a package imports for type checkers, and when one of the names is used."""
    found: list[ast.ImportFrom] = []
    for node in ast.parse(Path(str(package.__file__)).read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "_typing.TYPE_CHECKING":
            assert all(isinstance(each, ast.ImportFrom) for each in node.body)
            found += typing.cast("list[ast.ImportFrom]", node.body)
    return found


def public_names() -> list[str]:
    """In the order of the file, as often as they stand there."""
    return [alias.asname or alias.name for node in imports_of(amqp) for alias in node.names]


NAMES = public_names()
OBJECTS = {name: getattr(amqp, name) for name in NAMES}
CLASSES = {name: cls for name, cls in OBJECTS.items() if inspect.isclass(cls)}


def methods(cls: type) -> dict[str, Any]:
    """What a class of ours defines for its users."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("trio_amqp10"):
            found |= {name: item for name, item in vars(base).items() if not name.startswith("_")}
    return found


ASYNC = {
    f"{name}.{method}": item
    for name, cls in CLASSES.items()
    for method, item in methods(cls).items()
    if inspect.iscoroutinefunction(item)
} | {name: item for name, item in OBJECTS.items() if inspect.iscoroutinefunction(item)}


def test_public_name_is_exported_once() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert [name for name in NAMES if name.startswith("_")] == ["__version__"]


def test_public_name_is_exported_for_type_checkers() -> None:
    for node in imports_of(amqp):
        assert all(alias.asname == alias.name for alias in node.names), ast.unparse(node)


LAZY = [
    amqp,
    amqp.container,
    trio_amqp10.container.management,
    trio_amqp10.broker.stores,
    trio_amqp10.testing,
]


@pytest.mark.parametrize("package", LAZY, ids=lambda package: str(package.__name__))
def test_name_is_what_type_checkers_see(package: types.ModuleType) -> None:
    seen: dict[str, Any] = {}
    for node in imports_of(package):
        module = import_module("." * node.level + (node.module or ""), package.__name__)
        for alias in node.names:
            if hasattr(module, alias.name):
                seen[alias.name] = getattr(module, alias.name)
            else:
                seen[alias.name] = import_module(f"{module.__name__}.{alias.name}")
    assert {name: getattr(package, name) for name in package.__all__} == seen
    assert set(seen) <= set(dir(package))
    assert not set(seen) & {each.name for each in pkgutil.iter_modules(package.__path__)} - {"sasl"}


@pytest.mark.parametrize("package", LAZY, ids=lambda package: str(package.__name__))
def test_name_that_there_is_not_is_an_attribute_error(package: types.ModuleType) -> None:
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        package.nothing_of_this_name  # noqa: B018


def test_init_has_no_logic() -> None:
    docstring, typed, choice = ast.parse(SOURCE).body
    assert isinstance(docstring, ast.Expr)
    assert ast.unparse(typed) == "import typing as _typing"
    assert isinstance(choice, ast.If)
    imported, table = choice.orelse
    assert isinstance(imported, ast.ImportFrom)
    assert isinstance(table, ast.Assign)


def test_name_that_never_was_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        getattr(amqp, "Nonsense")  # noqa: B009


def test_version_is_that_of_the_changelog() -> None:
    changelog = (Path(amqp.__file__).parents[1] / "CHANGELOG.md").read_text()
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.MULTILINE)
    assert amqp.__version__ == released[0]


def test_package_says_that_it_is_typed() -> None:
    assert files("trio_amqp10").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_a_docstring(name: str) -> None:
    item = OBJECTS[name]
    if isinstance(item, types.UnionType) or typing.get_origin(item) is not None:
        return  # an alias of classes that have one each
    assert inspect.getdoc(item), name


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_public_method_has_a_docstring(name: str) -> None:
    for method, item in methods(CLASSES[name]).items():
        if inspect.isfunction(item) or isinstance(item, (property, classmethod, staticmethod)):
            assert inspect.getdoc(getattr(CLASSES[name], method)), f"{name}.{method}"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_public_method_is_typed(name: str) -> None:
    for method, item in methods(CLASSES[name]).items():
        if inspect.isfunction(item):
            signature = inspect.signature(item)
            assert signature.return_annotation is not inspect.Signature.empty, f"{name}.{method}"
            untyped = [
                parameter.name
                for parameter in list(signature.parameters.values())[1:]
                if parameter.annotation is inspect.Parameter.empty
            ]
            assert not untyped, f"{name}.{method}: {untyped}"


@pytest.mark.parametrize("name", sorted(ASYNC))
def test_async_callable_says_what_holds_when_it_is_cancelled(name: str) -> None:
    docstring = inspect.getdoc(ASYNC[name]) or ""
    *_, last = [line for line in docstring.split("\n\n") if line.strip()] or [""]
    assert "ancelled" in last, f"{name} ends with: {last!r}"


# -- options ----------------------------------------------------------------------------------

OPEN_KEYWORD = {"Registry.message": "properties"}
"""What passes keywords on to a class of its own, which its docstring names."""


def functions() -> dict[str, Any]:
    """Public functions and methods, by name."""
    found = {name: item for name, item in OBJECTS.items() if inspect.isfunction(item)}
    for name, cls in CLASSES.items():
        found |= {f"{name}.{key}": item for key, item in methods(cls).items() if inspect.isfunction(item)}
    return found


@pytest.mark.parametrize("name", sorted(functions()))
def test_public_function_hides_no_parameter(name: str) -> None:
    hidden = [
        parameter.name
        for parameter in inspect.signature(functions()[name]).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
    ]
    assert hidden == ([OPEN_KEYWORD[name]] if name in OPEN_KEYWORD else []), name


OPEN = {
    "idle_timeout": 60.0,
    "max_frame_size": None,
    "channel_max": None,
    "properties": None,
    "desired_capabilities": (),
    "offered_capabilities": (),
    "outgoing_locales": (),
    "incoming_locales": (),
    "limits": None,
    "strict": None,
}
TLS = {
    "layers": None,
    "ssl_context": None,
    "cafile": None,
    "certfile": None,
    "keyfile": None,
    "server_hostname": None,
    "insecure": False,
}
DIAL = (
    OPEN
    | TLS
    | {
        "container_id": None,
        "hostname": None,
        "sasl": None,
        "allow_plaintext_password": False,
        "pipelined": True,
        "close_timeout": 5.0,
        "reconnect": False,
        "sole_connection": None,
        "dialect": "1.0",
        "follow_redirects": False,
        "trusted_hosts": (),
    }
)
SERVE = OPEN | {
    "container_id": None,
    "sasl": None,
    "allow_plaintext_password": False,
    "ssl_context": None,
    "layers": None,
    "detect": False,
    "origins": (),
    "admit": None,
    "vet": None,
    "max_connections": 10_000,
    "max_handshakes": 1_024,
    "max_failures": 10,
    "max_partial_octets": 256 * 1024 * 1024,
    "close_timeout": 5.0,
    "dialects": (),
    "dialect_schemes": None,
    "wall_clock": time.time,
    "task_status": trio.TASK_STATUS_IGNORED,
}
LINK = {
    "name": None,
    "guarantee": "at-least-once",
    "snd_settle_mode": None,
    "rcv_settle_mode": None,
    "source": None,
    "target": None,
    "properties": None,
    "capabilities": (),
    "store": None,
    "durable": None,
    "expiry_policy": None,
    "expiry_timeout": 0,
}
SENDER = LINK | {"own_session": None}
RECEIVER = LINK | {
    "own_session": None,
    "streaming": False,
    "credit": None,
    "credit_octets": None,
    "prefetch": None,
    "filters": "required",
    "max_message_size": None,
}
ON_CONNECTION = {"session": None}
ASKING = {"reply_to": None, "direct": False}
SIGNATURES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "open_connection": (["where"], DIAL),
    "serve": (["handler", "*urls"], SERVE),
    "open_requester": (["connection", "address"], SENDER | ON_CONNECTION | ASKING),
    "Container.connect": (["self"], DIAL | {"users": None}),
    "Container.serve": (["self", "*urls"], SERVE),
    "VirtualHosts.serve": (["self", "*urls"], SERVE),
    "Connection.open_sender": (["self", "address"], SENDER | ON_CONNECTION),
    "Connection.open_receiver": (["self", "address"], RECEIVER | ON_CONNECTION),
    "Connection.open_requester": (["self", "address"], SENDER | ON_CONNECTION | ASKING),
    "Session.open_sender": (["self", "address"], SENDER),
    "Session.open_receiver": (["self", "address"], RECEIVER),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature_shows_each_option_with_its_type_and_default(name: str) -> None:
    positional, options = SIGNATURES[name]
    signature = inspect.signature(functions()[name])
    shown = signature.parameters.values()
    stars = {inspect.Parameter.VAR_POSITIONAL: "*"}
    by_keyword = {one.name: one.default for one in shown if one.kind is inspect.Parameter.KEYWORD_ONLY}
    others = [
        stars.get(one.kind, "") + one.name for one in shown if one.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    assert others == positional
    assert by_keyword == options
    assert all(isinstance(by_keyword[option], type(default)) for option, default in options.items())
    assert all(one.annotation is not inspect.Parameter.empty for one in shown if one.name != "self")
    assert signature.return_annotation is not inspect.Signature.empty


OUTSIDE = {"address", "connection", "handler", "self", "task_status", "urls"}


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("open_connection", ()),
        ("serve", ("open_connection",)),
        ("Container.connect", ("open_connection",)),
        ("Connection.open_sender", ()),
        ("Connection.open_receiver", ("Connection.open_sender",)),
        ("open_requester", ("Connection.open_sender",)),
    ],
)
def test_option_is_described(name: str, elsewhere: tuple[str, ...]) -> None:
    texts = [inspect.getdoc(functions()[one]) or "" for one in (name, *elsewhere)]
    described = {
        option.strip()
        for text in texts
        for line in text.splitlines()
        if (found := re.match(r"    ((?:\w+, )*\w+): ", line))
        for option in found[1].split(",")
    }
    assert set(inspect.signature(functions()[name]).parameters) - OUTSIDE <= described


@pytest.mark.parametrize(
    "call",
    [
        lambda: amqp.open_connection("amqp://127.0.0.1", misspelt=1),  # type: ignore[call-arg]
        lambda: amqp.Container("c").connect(misspelt=1),  # type: ignore[call-arg]
        lambda: amqp.open_requester(None, "q", misspelt=1),  # type: ignore[arg-type, call-arg]
        lambda: amqp.Connection.open_sender(None, "q", misspelt=1),  # type: ignore[arg-type, call-arg]
        lambda: amqp.Connection.open_receiver(None, "q", misspelt=1),  # type: ignore[arg-type, call-arg]
        lambda: amqp.Session.open_sender(None, "q", misspelt=1),  # type: ignore[arg-type, call-arg]
        lambda: amqp.Session.open_receiver(None, "q", misspelt=1),  # type: ignore[arg-type, call-arg]
    ],
)
def test_misspelt_option_is_named_when_the_call_is_made(call: Any) -> None:
    with pytest.raises(
        TypeError, match=r"(open_\w+|connect)\(\) got an unexpected keyword argument 'misspelt'"
    ):
        call()


@pytest.mark.parametrize(
    "serve",
    [
        partial(amqp.serve, print),
        amqp.Container("c").serve,
        amqp.VirtualHosts({"a": amqp.Container("a")}).serve,
    ],
    ids=["serve", "container", "hosts"],
)
async def test_misspelt_option_is_named_when_serving(serve: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'misspelt'"):
        await serve("amqp://127.0.0.1:0", misspelt=1)


DECLARED = {
    "incoming_locales": 2,  # of the open: for both ends, and as keywords beside others
    "idle_timeout": 2,
    "trusted_hosts": 1,
    "sole_connection": 1,
    "cafile": 1,
    "max_handshakes": 1,
    "credit_octets": 1,
    "expiry_timeout": 1,
}


@pytest.mark.parametrize("option", DECLARED)
def test_option_is_declared_in_one_place(option: str) -> None:
    """As a field or a parameter, where the functions of connections and links are."""
    places = declarations()[option]
    assert len(places) == DECLARED[option], places


@cache
def declarations() -> dict[str, list[str]]:
    """The places of each field and parameter."""
    root = Path(amqp.__file__).parent
    places: dict[str, list[str]] = defaultdict(list)
    parts = [
        path
        for part in ("amqp10/engine", "amqp10/peer", "amqp10/server", "broker", "container")
        for path in (root / part).rglob("*.py")
    ]
    for path in (root / "net/tls_options.py", *parts):
        if path.name == "remote_open.py":  # what the peer said
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                places[node.target.id].append(f"{path.relative_to(root)}:{node.lineno}")
            elif isinstance(node, ast.arg):
                places[node.arg].append(f"{path.relative_to(root)}:{node.lineno}")
    return places
