"""What an import loads: of the dialects only the one that everybody speaks, and of a form only what is read."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

DIALECTS = (
    "trio_amqp10.amqp091",
    "trio_amqp10.amqp_fast",
    "trio_amqp10.amqp_10_3",
    "trio_amqp10.amqp091.server",
    "trio_amqp10.amqp_fast.server",
    "trio_amqp10.amqp_10_3.server",
)
"""What knows a dialect other than AMQP 1.0."""


def loaded_by(code: str) -> list[str]:
    """The modules that a fresh interpreter has loaded when it has run this."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return [str(name) for name in json.loads(done.stdout)]


def test_import_loads_next_to_nothing() -> None:
    """At most a handful of modules over those of trio, and so no more than a few milliseconds."""
    more = set(loaded_by("import trio, trio_amqp10")) - set(loaded_by("import trio"))
    assert len(more) <= 5, sorted(more)


def test_asyncio_is_loaded_only_by_its_own_module() -> None:
    """Only for programs that use it."""
    names = "trio_amqp10.open_connection, trio_amqp10.Container, trio_amqp10.blocking.connect"
    assert "asyncio" not in loaded_by(f"import trio_amqp10, trio_amqp10.blocking\n{names}")


def test_client_loads_no_container_and_no_database() -> None:
    loaded = loaded_by("from trio_amqp10 import Message, open_connection, open_transaction")
    assert [name for name in loaded if name.startswith(("trio_amqp10.container", "sqlite3"))] == []


def test_client_of_management_loads_no_container_and_no_exchanges() -> None:
    loaded = loaded_by("from trio_amqp10.container.management import RemoteManagement, OperationRefusedError")
    unused = ("management.management", "container.container", "exchanges.exchanges", "nodes.queue", "server")
    assert [name for name in loaded if name.startswith("trio_amqp10.") and name.endswith(unused)] == []


def test_plugin_of_pytest_loads_nothing_of_the_package_until_a_fixture_is_asked_for() -> None:
    more = set(loaded_by("import pytest, trio_amqp10.testing.plugin")) - set(loaded_by("import pytest"))
    assert {name for name in more if not name.startswith("trio_amqp10")} <= {"inspect"}, sorted(more)
    assert len(more) <= 6, sorted(more)


def test_container_loads_no_module_of_a_dialect_that_it_does_not_serve_and_no_database() -> None:
    loaded = loaded_by("from trio_amqp10 import Container\nContainer('c').add_broker()")
    assert [name for name in loaded if name.startswith((*DIALECTS, "sqlite3"))] == []


def test_form_of_a_dialect_is_loaded_when_the_first_of_its_octets_are_read() -> None:
    code = """
import sys
from trio_amqp10 import Container
from trio_amqp10.broker.nodes.form_registry import content_of, selection_of
assert not any("amqp091" in name for name in sys.modules)
octets = bytes(5) + b"\\x01e\\x01k" + b"\\x00\\x00\\x00\\x02\\x00\\x00" + b"body"
content = content_of(-91, octets)
assert type(content).__name__ == "Published" and content.body == b"body", content
"""
    assert "trio_amqp10.amqp091.server.native_message" in loaded_by(code)


def run_command(*arguments: str) -> str:
    """Runs a command in the interpreter that is asked, to its end."""
    return f"""
import sys
from trio_amqp10.tools.cli import main
sys.argv = ["amqp10", *{arguments!r}]
sys.stdout = open("/dev/null", "w")
try:
    main()
except SystemExit:
    pass
sys.stdout = sys.__stdout__
"""


@pytest.mark.parametrize("arguments", [("--version",), ("send", "--help"), ("completion", "zsh")])
def test_command_that_says_what_there_is_loads_neither_trio_nor_a_protocol(
    arguments: tuple[str, ...],
) -> None:
    loaded = loaded_by(run_command(*arguments))
    parts = {name.split(".")[1] for name in loaded if name.startswith("trio_amqp10.")}
    assert parts <= {"core", "net", "tools"}
    assert "trio" not in loaded


def test_command_that_sends_loads_one_protocol_and_no_container() -> None:
    loaded = loaded_by(run_command("send", "amqp://127.0.0.1:1/q", "--body", "x"))
    strange = (
        *DIALECTS,
        "trio_amqp10.container",
        "trio_amqp10.tools.trace",
        "trio_amqp10.amqp10.draft_2010",
        "rich",
        "sqlite3",
    )
    assert "trio_amqp10.tools.cli.send" in loaded
    assert [name for name in loaded if name.startswith(strange)] == []
