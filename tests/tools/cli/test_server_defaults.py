"""Where clients find the server, the user and the password that nobody types."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import click
import pytest

from tests.ports import free_port
from trio_amqp10.tools.cli.commands import amqp10
from trio_amqp10.tools.cli.server_defaults import ServerDefaults, server_defaults, with_login

from .conftest import done, failed, interrupt, misused, next_listener, server_of, serving, start
from .without_a_process import files

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "enig/ma@?:"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AMQP10_URL", "AMQP10_USER", "AMQP10_PASSWORD", "AMQP10_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def contexts(folder: Path, text: str) -> str:
    file = folder / "contexts.toml"
    file.write_text(text)
    file.chmod(0o600)
    return str(file)


def test_variables_name_the_server_and_log_in() -> None:
    with serving("--queue", "orders", "--user", f"ada:{PASSWORD}", "--dialect", "0-9-1") as url:
        known: dict[str, Any] = {"AMQP10_USER": "ada", "AMQP10_PASSWORD": PASSWORD}
        assert done("send", "orders", "--body", "tea", AMQP10_URL=url, **known) == b"sent 1\n"
        assert done("send", f"{url}/orders", "--body", "tea", **known) == b"sent 1\n"
        assert (
            done("receive", "orders", "--count", "1", AMQP10_URL=url.replace("amqp:", "amqp091:"), **known)
            == b"tea\n"
        )
        login = url.replace("://", "://ada@")
        assert done("receive", f"{login}/orders", "--count", "1", AMQP10_PASSWORD=PASSWORD) == b"tea\n"


def test_context_names_the_server_and_logs_in(tmp_path: Path) -> None:
    with serving("--queue", "orders", "--user", f"ada:{PASSWORD}", "--management") as url:
        (tmp_path / "secret").write_text(f"{PASSWORD}\n")
        text = f'default = "here"\n[contexts.here]\nurl = "{url}"\nuser = "ada"\npassword-file = "secret"\n'
        file = contexts(tmp_path, text)
        assert done("send", "orders", "--body", "tea", AMQP10_CONFIG=file) == b"sent 1\n"
        assert (
            done("--context", "here", "browse", "orders", AMQP10_CONFIG=file, AMQP10_URL="amqp://x")
            == b"tea\n"
        )
        assert b"orders" in done("top", "--once", AMQP10_CONFIG=file)
        assert b"orders" in done("queue", "list", url, AMQP10_CONFIG=file)
        assert "connection 99 was not closed" in failed("disconnect", "99", AMQP10_CONFIG=file)


def test_options_of_a_context_are_for_every_command_without_a_url(tls: Path, tmp_path: Path) -> None:
    server = (
        "--management",
        "--queue",
        "orders",
        *files(tls, tls_cert="server.pem", tls_key="server-key.pem"),
    )
    with serving(*server, listen="amqps://127.0.0.1:0") as url:
        text = f'default = "here"\n[contexts.here]\nurl = "{url}"\ntls-ca = "{tls / "ca.pem"}"\n'
        file = contexts(tmp_path, text)
        assert b"orders" in done("top", "--once", AMQP10_CONFIG=file)
        assert "connection 99 was not closed" in failed("disconnect", "99", AMQP10_CONFIG=file)
        assert done("send", "orders", "--body", "tea", AMQP10_CONFIG=file) == b"sent 1\n"


def test_messages_are_moved_while_a_server_is_known(tmp_path: Path) -> None:
    with serving("--queue", "orders", "--queue", "dead", "--management") as url:
        done("send", f"{url}/dead", "--body", "x", "--count", "3")
        moved = done("move", url, "dead", "orders", "--count", "1", AMQP10_URL=url)
        file = contexts(tmp_path, f'[contexts.here]\nurl = "{url}"\n')
        moved += done("--context", "here", "move", url, "dead", "orders", AMQP10_CONFIG=file)
        assert moved == b"moved 1\nmoved 2\n"


def test_login_is_sent_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMQP10_URL", "amqp://here:5673")
    monkeypatch.setenv("AMQP10_USER", "ada")
    monkeypatch.setenv("AMQP10_PASSWORD", "p/w")
    assert with_login("amqp://here:5673") == "amqp://ada:p%2Fw@here:5673"
    assert with_login("amqp://HERE:5673") == "amqp://ada:p%2Fw@HERE:5673"
    for other in ("amqp://here", "amqps://here:5673", "amqp://there:5673", "amqp+unix:///here"):
        assert with_login(other) == other
    for own in ("amqp://bob@here:5673", "amqp://ada:mine@here:5673", "amqp://ada:@here:5673"):
        assert with_login(own) == own
    assert with_login("amqp://ada@here:5673") == "amqp://ada:p%2Fw@here:5673"


def test_password_alone_completes_a_url_with_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMQP10_PASSWORD", "pw")
    assert with_login("amqp091://ada@here/shop?heartbeat=3") == "amqp091://ada:pw@here/shop?heartbeat=3"
    assert with_login("amqp091://here?heartbeat=3") == "amqp091://here?heartbeat=3"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[contexts.prod]\nurll = "amqp://h"\n', "contexts.prod.urll: unknown key; did you mean url?"),
        ("[contexts.prod]\nurl = 5\n", "contexts.prod.url: expected a string, not a whole number (5)"),
        ('[contexts.prod]\nurl = "http://h"\n', "contexts.prod.url: 'http://h' is not a URL"),
        ("[contexts]\nprod = 1\n", "contexts.prod: expected a table"),
        ("contexts = 1\n", "contexts: expected a table, not a whole number (1)"),
        ("[context.prod]\n", "context: unknown key; did you mean contexts?"),
        ("[contexts.prd]\n", "there is no context 'prod'; did you mean prd?"),
        ("[contexts.prod\n", "is not TOML"),
        ('[contexts.prod]\npassword = "a"\npassword-file = "b"\n', "exclude each other"),
        ('[contexts.prod]\npassword-file = "none"\n', "none: No such file or directory"),
    ],
)
def test_fault_of_a_context_is_named(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMQP10_CONFIG", contexts(tmp_path, text))
    with pytest.raises(click.UsageError, match=r".*") as wrong, used("prod"):
        server_defaults()
    assert said in wrong.value.message


def used(name: str | None) -> click.Context:
    context = click.Context(amqp10)
    context.params = {"context_name": name}
    return context


def test_only_the_context_in_use_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[contexts.wrong]\nurl = 5\n[contexts.good]\nallow-plaintext-password = true\ntls-ca = 'ca.pem'\n"
    monkeypatch.setenv("AMQP10_CONFIG", contexts(tmp_path, text))
    with used("good"):
        found = server_defaults()
    assert found == ServerDefaults(
        source=found.source, allow_plaintext_password=True, tls_ca=str(tmp_path / "ca.pem")
    )
    with used(None):
        assert server_defaults().url is None


@pytest.mark.parametrize("content", ["[contexts.a]\nurl='amqp://h'\n".encode("utf-16"), b"\xff", b"\0" * 9])
def test_file_that_is_no_text_is_named(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "contexts.toml"
    file.write_bytes(content)
    monkeypatch.setenv("AMQP10_CONFIG", str(file))
    with pytest.raises(click.UsageError) as wrong, used("a"):
        server_defaults()
    assert "contexts.toml" in wrong.value.message


def test_context_needs_a_file_and_commands_an_argument(tmp_path: Path) -> None:
    assert "set AMQP10_CONFIG" in misused("--context", "prod", "send", "orders")
    assert "Is a directory" in misused("--context", "a", "send", "orders", AMQP10_CONFIG=str(tmp_path))
    assert misused("send", "--body", "tea") == "Missing argument 'URL/ADDRESS'."
    assert "AMQP10_URL" in misused("send", "orders", AMQP10_URL="http://h")
    assert "Missing argument 'IDENTITY...'" in misused("disconnect", "amqp://localhost")


def test_warns_of_a_password_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = contexts(tmp_path, "[contexts.a]\npassword = 'x'\n")
    (tmp_path / "contexts.toml").chmod(0o644)
    monkeypatch.setenv("AMQP10_CONFIG", file)
    with used("a"):
        server_defaults()
    assert "other users of this machine can read the password" in capsys.readouterr().err


def test_wait_dials_until_the_server_is_there() -> None:
    url = f"amqp://127.0.0.1:{free_port()}"
    client = start("send", f"{url}/orders", "--body", "tea", "--wait", "20", stdin=subprocess.DEVNULL)
    time.sleep(0.5)
    assert client.poll() is None
    with server_of(listen=url):
        out, err = client.communicate(timeout=20)
    assert (out, err, client.returncode) == (b"sent 1\n", b"", 0)


def test_wait_ends_at_its_time_and_at_a_failure_that_stays() -> None:
    url = f"amqp://127.0.0.1:{free_port()}"
    assert "no program listens there" in failed("receive", f"{url}/orders", "--wait", "0.3")
    with serving("--user", "ada:enigma") as served:
        began = time.monotonic()
        wrong = served.replace("://", "://ada:wrong@")
        assert "not authenticated" in failed("receive", f"{wrong}/orders", "--wait", "20")
        assert time.monotonic() - began < 10


def test_wait_can_be_interrupted() -> None:
    client = start("receive", f"amqp://127.0.0.1:{free_port()}/orders", "--wait", "60")
    time.sleep(0.5)
    interrupt(client, signal.SIGINT)
    assert client.returncode == 130


def test_bench_shows_no_password_to_other_processes() -> None:
    server = start("serve", "--listen", "amqp://127.0.0.1:0", "--user", "ada:enigma")
    try:
        url = next_listener(server)
        known: dict[str, Any] = {"AMQP10_USER": "ada", "AMQP10_PASSWORD": "enigma"}
        assert b"messages of" in done("bench", f"{url}/b", "--count", "50", "--wait", "1", **known)
    finally:
        interrupt(server)
