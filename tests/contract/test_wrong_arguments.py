"""Each argument of each public call of each client refuses a value of another type by a named error, and writes nothing.

The public calls are those of the reference pages, on the classes of ``loss_scripts``. After its refusals, each call does its work.
"""

from __future__ import annotations

import inspect
import re
from contextlib import AsyncExitStack
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.places import ROOT
from trio_amqp10 import amqp091, amqp_fast

from .loss_scripts import LOSS_SCRIPTS
from .protocols import PROTOCOLS
from .test_client_calls_at_loss import made, staged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .loss_scripts import Stage

_PAGES: Final = {
    "1.0": ("connections", "links"),
    "0-9-1": ("amqp091",),
    "10.3": ("amqp_10_3",),
    "amqp-fast": ("amqp_fast",),
}
"""The reference pages of each client."""

_SAMPLES: Final[tuple[object, ...]] = (None, "text", b"octets", 7, 1.5, [1], {"a": object()}, object())

_LAST: Final = frozenset({"aclose", "detach", "resume"})
"""What ends the object that it is called on, or begins with its end."""

_SET_HERE: Final = frozenset(
    {("Requester", "reply_to"), ("Requester", "correlation_id"), ("Handle", "body_size")}
)
"""The keywords that the call replaces."""

_WIRE_TYPES: Final = {
    "octet": "int",
    "long": "int",
    "bit": "bool",
    "shortstr": "str",
    "table": "dict",
    "timestamp": "int",
}

_RIGHT: Final[dict[str, Any]] = {
    "active": True,
    "address": "q",
    "audience": "q",
    "body": b"body",
    "call": trio.lowlevel.checkpoint,
    "credit": 1,
    "destination": "y",
    "exchange": "x",
    "identifier": "kept",
    "message": b"body",
    "most": 1,
    "name": "q",
    "number": 1,
    "prefetch": 5,
    "request": b"body",
    "routing_key": "q",
    "secret": b"new",
    "source": "x",
}
"""A right value of each argument without a default."""


class _Argument(NamedTuple):
    name: str
    annotation: str

    def wrong(self) -> Iterator[object]:
        """The samples that its annotation excludes. A flag takes the truth of any value."""
        declared = self.annotation
        if declared.startswith("bool"):
            return
        for sample in _SAMPLES:
            kinds = {type(sample).__name__.replace("NoneType", "None")}
            if isinstance(sample, int):
                kinds |= {"float", "datetime"} & set(re.findall(r"\w+", declared))
            if isinstance(sample, list | dict | str | bytes):
                kinds |= {"Iterable", "Collection"}
            if isinstance(sample, dict):
                kinds.add("Mapping")
            if "Any" in declared.split("[")[0] and type(sample) is not object:
                continue
            if isinstance(sample, str) and "Literal" in declared:
                kinds.remove("str")
            if not kinds & set(re.findall(r"\w+", declared)):
                yield sample


def _documented(protocol: str) -> dict[str, set[str]]:
    """The methods that the reference pages name, by class."""
    found: dict[str, set[str]] = {}
    for page in _PAGES[protocol]:
        text = (ROOT / f"docs/reference/{page}.rst").read_text()
        for name, members in re.findall(r"autoclass:: (\w+)\n   :members: (.*)", text):
            found[name] = set(members.split(", "))
    return found


def _arguments(call: Any) -> tuple[list[_Argument], dict[str, Any]]:
    """The arguments of a method, and right values of those that it needs."""
    found: list[_Argument] = []
    needed: dict[str, Any] = {}
    for each in list(inspect.signature(call).parameters.values())[1:]:
        if each.kind is each.VAR_KEYWORD:
            if "PublishProperties" in str(each.annotation):
                properties = amqp091.PublishProperties.__annotations__.items()
                found += [_Argument(name, f"{kind.__forward_arg__} | None") for name, kind in properties]
            else:
                head = fields(amqp_fast.MessageHead)
                found += [_Argument(field.name, _WIRE_TYPES[str(field.type)]) for field in head]
        else:
            found.append(_Argument(each.name, str(each.annotation)))
            if each.default is each.empty:
                needed[each.name] = _RIGHT[each.name]
    return found, needed


def _calls(protocol: str) -> Iterator[tuple[type, str]]:
    documented = _documented(protocol)
    for cls in LOSS_SCRIPTS[protocol].classes:
        names = set().union(*(documented.get(base.__name__, ()) for base in cls.__mro__))
        for name in sorted(names):
            member = inspect.getattr_static(cls, name, None)
            if name in _LAST | LOSS_SCRIPTS[protocol].plumbing:
                continue
            if inspect.isfunction(member) and len(inspect.signature(member).parameters) > 1:
                yield cls, name


_CALLS: Final = [
    pytest.param(protocol, cls, name, id=f"{protocol} {cls.__name__}.{name}")
    for protocol in LOSS_SCRIPTS
    for cls, name in _calls(protocol)
]


def test_every_client_is_here() -> None:
    assert {name for name, entry in PROTOCOLS.items() if entry.calls_at_loss is not None} == set(_PAGES)
    assert {protocol for protocol, *_ in (each.values for each in _CALLS)} == set(_PAGES)


async def _instance(cls: type, stage: Stage, stack: AsyncExitStack) -> Any:
    if cls.__name__ == "Transaction":
        return await stack.enter_async_context(stage.connection.open_transaction())
    if cls is amqp.Delivery:
        return await stage.receiver.receive()
    return next(thing for thing in stage.things.values() if type(thing) is cls)


async def _call(thing: Any, name: str, arguments: dict[str, Any]) -> None:
    opened = getattr(thing, name)(**arguments)
    if hasattr(type(opened), "__aenter__"):
        async with opened:
            pass
    elif inspect.isawaitable(opened):
        await opened


@pytest.mark.parametrize(("protocol", "cls", "name"), _CALLS)
async def test_value_of_another_type_is_refused_by_name(
    protocol: str, cls: type, name: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    script = LOSS_SCRIPTS[protocol]
    async with staged(script, monkeypatch) as stage, AsyncExitStack() as stack:
        thing = await _instance(cls, stage, stack)
        await wait_all_tasks_blocked()
        arguments, needed = _arguments(getattr(cls, name))
        stream = stage.server.streams[-1]
        for argument in arguments:
            if (cls.__name__, argument.name) in _SET_HERE:
                continue
            for value in argument.wrong():
                written = stream.written
                with pytest.raises(amqp.LocalProtocolError) as refused, trio.fail_after(60):
                    await _call(thing, name, needed | {argument.name: value})
                clues = (argument.name, repr(value)[:15], "type for a builtins.object", "does not support")
                assert any(clue in str(refused.value) for clue in clues)
                await wait_all_tasks_blocked()
                # A requester opens its receiver first, and closes it when its sender cannot be opened.
                assert stream.written == written or name == "open_requester", (argument, value)
        if (usable := f"{cls.__name__}.{name}") in script.calls:
            await made(script, usable, stage)
