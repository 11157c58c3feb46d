"""The log of changes: one line for each, with who, by which face, what and its outcome."""

from __future__ import annotations

import inspect
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.http.served import served
from trio_amqp10.broker.stores import StoreError
from trio_amqp10.container import Container
from trio_amqp10.container.management import Management, ManagementError
from trio_amqp10.container.management.change_log import CHANGES, Asker, logged
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGER = "trio_amqp10.management"
ADA = Identity("ada", "PLAIN")
READERS = {
    *("browse", "check_store", "connection", "depths", "describe", "exchange", "export_definitions", "link"),
    *("may_watch", "node", "queue", "route", "survey"),
    "publish",  # by ``publish_content``
}
"""The async calls of ``Management`` that change nothing."""


def parsed(line: str) -> dict[str, Any]:
    """The keys and values of a line, which must have no other text."""
    assert line.isascii()
    assert line.isprintable()
    decoder, found, at = json.JSONDecoder(), dict[str, Any](), 0
    while at < len(line):
        key, _, _ = line[at:].partition("=")
        at += len(key) + 1
        assert key.isidentifier(), line
        assert key not in found
        if key in ("operation", "outcome"):  # words of this library
            found[key], _, _ = line[at:].partition(" ")
            at += len(found[key])
        else:
            found[key], at = decoder.raw_decode(line, at)
        assert line[at : at + 1] in ("", " ")
        at += 1
    return found


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The level and the contents of each line since the last call."""
    found = [(each.levelname, parsed(each.getMessage())) for each in caplog.records if each.name == LOGGER]
    caplog.clear()
    return found


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


# -- every call -----------------------------------------------------------------------------


def test_every_call_changes_something_or_is_a_reader() -> None:
    calls = {
        name
        for name, each in vars(Management).items()
        if inspect.iscoroutinefunction(each) and not name.startswith("_")
    }
    assert calls == CHANGES.keys() | READERS
    assert not CHANGES.keys() & READERS


ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {
    "create_queue": (("new",), {"max_length": 3}, {"arguments": {"rules": {"max_length": 3}}}),
    "create_topic": (("new",), {}, {}),
    "set_queue": (("a",), {"ttl": 5, "kind": "queue"}, {"arguments": {"kind": "queue", "rules": {"ttl": 5}}}),
    "set_topic": (("t",), {"max_backlog": 5}, {"arguments": {"limits": {"max_backlog": 5}}}),
    "delete": (("a",), {"if_unused": True}, {"arguments": {"if_unused": True}, "count": 2}),
    "purge": (("a",), {}, {"count": 2}),
    "hold": (("a", 1.5), {}, {"arguments": {"seconds": 1.5}}),
    "redirect": (("a", "amqp://u:pw@h/a"), {}, {"arguments": {"url": "amqp://***@h/a"}}),
    "publish_content": (("a", amqp.Message("secret text")), {}, {"count": 1}),
    "get": (("a", 1), {"outcome": "reject"}, {"arguments": {"count": 1, "outcome": "reject"}, "count": 1}),
    "move": (("a", "b"), {"count": 1}, {"arguments": {"target": "b", "count": 1}, "count": 1}),
    "redrive": (("a",), {}, {"count": 0}),
    "declare_queue": (("new", {"x-max-length": 4}), {}, {"arguments": {"arguments": {"x-max-length": 4}}}),
    "declare_exchange": (("new", "fanout"), {}, {"arguments": {"type": "fanout"}}),
    "delete_exchange": (("x",), {}, {}),
    "bind": (("x", "bound", "key"), {}, {"arguments": {"destination": "bound", "key": "key"}}),
    "unbind": (("x", "bound"), {}, {"arguments": {"destination": "bound"}}),
    "import_definitions": (({"trio-amqp10": 1, "bindings": []},), {}, {"count": 0, "left_out": 0}),
    "close_connection": ((1, "enough"), {}, {"arguments": {"reason": "enough"}}),
    "close_link": (("LINK",), {}, {}),
    "watch_frames": ((1,), {"payload": 9}, {"arguments": {"payload": 9}}),
}
"""For each call its arguments, and what the line has beside the name."""


async def test_each_change_is_one_line_with_who_and_what(caplog: pytest.LogCaptureFixture) -> None:
    assert ARGUMENTS.keys() == CHANGES.keys()
    for name, (args, kwargs, more) in ARGUMENTS.items():
        container = Container()
        broker = container.add_broker()
        broker.declare_exchange("x", "topic")
        broker.declare_queue("bound")
        for queue in "ab":
            container.add_queue(queue)
        container.add_topic("t")
        for text in ("tea", "milk"):
            await container.send("a", text)
        async with container.connect() as conn, conn.open_sender("a"):
            model = container.management.on_behalf_of(ADA, face="HTTP", host="10.0.0.7")
            links = await model.links().page()
            given = [links.items[0].identity if each == "LINK" else each for each in args]
            caplog.clear()
            call: Callable[..., Any] = getattr(model, "publish" if name == "publish_content" else name)
            await call(*given, **kwargs)
        expected = {
            "operation": CHANGES[name],
            "user": "ada",
            "face": "HTTP",
            "host": "10.0.0.7",
            "outcome": "done",
            **more,
        }
        if name != "import_definitions":
            expected["name"] = given[0]
        assert lines(caplog) == [("INFO", expected)], name
        assert "secret" not in caplog.text


async def test_definitions_are_a_line_for_each_and_one_for_all(caplog: pytest.LogCaptureFixture) -> None:
    model = Container().management.on_behalf_of(ADA)
    queues = [{"name": "new", "rules": {}}, {"name": "$no", "rules": {}}]
    await model.import_definitions({"trio-amqp10": 1, "queues": queues})
    first, second, last = lines(caplog)
    assert (first[0], first[1]["operation"], first[1]["name"]) == ("INFO", "create-queue", "new")
    assert (second[0], second[1]["outcome"], second[1]["error"]) == ("WARNING", "refused", "forbidden")
    assert (last[1]["operation"], last[1]["count"], last[1]["left_out"]) == ("import-definitions", 1, 1)


# -- refusals -------------------------------------------------------------------------------


async def test_missing_permission_is_a_warning_and_another_refusal_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container(authorise=lambda access: access.address == "mine")
    model = container.management.on_behalf_of(ADA)
    for address, level, error in (("orders", "WARNING", "forbidden"), ("mine", "INFO", "not-found")):
        with pytest.raises(ManagementError) as refusal:
            await model.purge(address)
        ((found, line),) = lines(caplog)
        assert (found, line["outcome"], line["error"]) == (level, "refused", error)
        assert line["description"] == refusal.value.description
    with pytest.raises(ManagementError):
        await model.queue("orders")  # a reader
    assert lines(caplog) == []


async def test_cancelled_or_broken_call_has_an_unknown_outcome(caplog: pytest.LogCaptureFixture) -> None:
    class Model:
        asker = Asker(None, None, None, None)

    async def broken(_self: Any, _address: str) -> None:
        raise StoreError("no disk")

    async def endless(_self: Any, _address: str) -> None:
        await trio.sleep_forever()

    with pytest.raises(StoreError):
        await logged("purge", broken)(Model(), "a")
    with trio.move_on_after(0):
        await logged("purge", endless)(Model(), "a")
    assert [line["outcome"] for _, line in lines(caplog)] == ["unknown", "unknown"]


async def test_redirect_without_an_address_does_not_show_a_password() -> None:
    container = Container()
    container.add_queue("a")
    with pytest.raises(ManagementError, match="has no address") as refusal:
        await container.management.redirect("a", "amqp://ada:secret@host")
    assert "secret" not in str(refusal.value)


async def test_program_itself_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    container = Container()
    await container.management.create_queue("a")
    assert lines(caplog) == []


async def test_nothing_is_made_for_a_log_without_readers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR, LOGGER)
    monkeypatch.setattr(json, "dumps", None)
    container = Container()
    container.add_queue("a")
    assert await container.management.on_behalf_of(ADA).purge("a") == 0


# -- names of peers -------------------------------------------------------------------------


@example('\x7f\n" outcome=done', "\u2028", {"\x7f=": "\x00"})
@given(st.text(), st.text(), st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_no_name_can_forge_a_line_or_a_value(name: str, user: str, rules: dict[str, Any]) -> None:
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    class Model:
        asker = Asker(user, "HTTP", None, None)

    async def create(_self: Any, _address: str, **_rules: Any) -> None: ...

    async def run() -> None:
        await logged("create_queue", create)(Model(), name, **{f"_{key}": rules[key] for key in rules})

    keep = Keep()
    logging.getLogger(LOGGER).addHandler(keep)
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    try:
        trio.run(run)
    finally:
        logging.getLogger(LOGGER).removeHandler(keep)
        logging.getLogger(LOGGER).setLevel(logging.NOTSET)
    (record,) = records
    found = parsed(record.getMessage())
    assert found["operation"] == "create-queue"
    assert found["outcome"] == "done"
    assert found["name"] == name if len(name) <= 256 else found["name"].startswith(name[:256])
    assert found["user"] == user if len(user) <= 256 else found["user"].startswith(user[:256])


async def test_long_names_and_values_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    model = Container().management.on_behalf_of(Identity("u" * 10_000, "PLAIN"))
    deep: dict[str, Any] = {f"{n}": ["x" * 10_000] * 1000 for n in range(1000)}
    with pytest.raises(ManagementError):
        await model.create_queue("n" * 10_000, wrong=deep, big=10**5000, more="y" * 10_000)
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    line = parsed(record.getMessage())
    assert line["name"] == "n" * 256 + "... and 9744 characters more"
    assert line["user"] == "u" * 256 + "... and 9744 characters more"
    assert line["arguments"]["rules"]["big"] == "<int>"
    assert line["arguments"]["rules"]["wrong"]["..."] == 984
    assert line["arguments"]["rules"]["wrong"]["3"] == "<list>"
    assert len(record.getMessage()) < 12_000
    container = Container()
    container.add_queue("a")
    many = dict.fromkeys((f"x-{n}" for n in range(20)), 1)
    with pytest.raises(ManagementError):
        await container.management.on_behalf_of(ADA).declare_queue("a", many)
    ((_, second),) = [each for each in lines(caplog) if each[1]["name"] == "a"]
    assert second["arguments"]["arguments"]["..."] == 4


# -- faces ----------------------------------------------------------------------------------


async def test_a_peer_has_its_user_and_connection(caplog: pytest.LogCaptureFixture) -> None:
    container = Container(authorise=lambda access: access.address != "secret")
    container.add_management("$manage")
    container.add_queue("orders")
    async with container.connect() as conn, conn.open_management("$manage") as model:
        await model.purge("orders")
        with pytest.raises(ManagementError):
            await model.delete("secret")
    done, refused = lines(caplog)
    who = {"user": None, "face": "$manage", "host": None, "connection": 1}
    assert done == ("INFO", {"operation": "purge", "name": "orders", **who, "outcome": "done", "count": 0})
    assert refused[0] == "WARNING"
    assert refused[1].items() >= {"operation": "delete", "name": "secret", **who}.items()


async def test_both_apis_of_http_name_the_user_and_the_host(caplog: pytest.LogCaptureFixture) -> None:
    who = {"user": "ada", "face": "HTTP", "host": "127.0.0.1"}
    async with served(users={"ada": "pw"}) as client:
        assert await client.put("queues/%2F/orders") == 201
        await client.post("amqp10/purge", {"address": "orders"})
        await client.post("amqp10/publish", {"address": "orders", "body": "secret"})
        body = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
        await client.post("queues/%2F/orders/get", body)
        assert await client.delete("queues/%2F/orders") == 204
    found = lines(caplog)
    operations = ["declare-queue", "purge", "publish", "get", "delete"]
    assert [line["operation"] for _, line in found] == operations
    assert all(line.items() >= {**who, "name": "orders", "outcome": "done"}.items() for _, line in found)
