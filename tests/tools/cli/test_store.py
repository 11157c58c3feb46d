"""``amqp10 serve --store``: what it keeps, and files that are no store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from trio_amqp10 import Container, LocalProtocolError

from .conftest import (
    AMQP10,
    ENVIRONMENT,
    SECONDS,
    amqp10,
    done,
    failed,
    misused,
    next_listener,
    serving,
    start,
)

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def killed(store: Path, *arguments: str) -> Generator[str]:
    """A server with this store, which gets SIGKILL in the end; its URL."""
    command = [*AMQP10, "serve", "--listen", "amqp://127.0.0.1:0", "--store", str(store), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        try:
            yield next_listener(process)
        finally:
            process.kill()


@pytest.mark.whole
@pytest.mark.parametrize("dialect", [(), ("--dialect", "0-9-1")])
def test_server_with_a_store_has_all_that_it_accepted_after_a_kill(
    dialect: tuple[str, ...], tmp_path: Path
) -> None:
    queues = ("--queue", "given", "--queue", "choosy,durable=false")
    lines = b"".join(b"%d\n" % number for number in range(1000))
    with killed(tmp_path / "store", *queues, *dialect) as url:
        target = url.replace("amqp:", "amqp091:") if dialect else url
        if not dialect:
            assert done("send", f"{url}/made-on-first-use", stdin=lines) == b"sent 1000\n"
        for queue in ("given", "choosy"):
            where = (target, queue) if dialect else (f"{target}/{queue}",)
            assert done("send", *where, stdin=lines) == b"sent 1000\n"
        where = (target, "choosy") if dialect else (f"{target}/choosy",)
        done("send", *where, "--body", "asked for it", "--durable")
    with killed(tmp_path / "store", *queues) as url:
        if not dialect:
            assert done("browse", f"{url}/made-on-first-use") == lines
        assert done("browse", f"{url}/given") == lines
        assert done("browse", f"{url}/choosy") == b"asked for it\n"


def test_rule_that_needs_a_store_is_refused_without_one() -> None:
    result = amqp10("serve", "--queue", "q,durable=true")
    assert result.returncode == 2
    assert b"--queue q,durable=true needs --store" in result.stderr


def test_container_keeps_all_only_with_a_store() -> None:
    with pytest.raises(LocalProtocolError, match="store"):
        Container(keeps_all=True)


def test_store_in_the_home_directory_and_as_a_uri_is_that_file(tmp_path: Path) -> None:
    home = {**ENVIRONMENT, "HOME": str(tmp_path)}
    for store in ("~/one", f"file:{tmp_path}/two", f"file://{tmp_path}/three"):
        command = [*AMQP10, "serve", "--listen", "amqp://127.0.0.1:0", "--store", store]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=home, cwd=tmp_path) as process:
            next_listener(process)
            process.terminate()
    assert {name for name in os.listdir(tmp_path) if "-" not in name} == {"one", "two", "three"}


def test_file_that_never_was_a_store_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no store\n" * 1000)
    said = failed("serve", "--store", str(tmp_path / "notes.txt"))
    assert f"{str(tmp_path / 'notes.txt')!r} is not a store of this library" in said


def test_backup_that_is_made_under_load_is_restored_with_all_that_was_accepted_before(tmp_path: Path) -> None:
    store, backup = tmp_path / "orders.db", tmp_path / "orders.backup"
    command = [*AMQP10, "serve", "--listen", "amqp://127.0.0.1:0", "--store", str(store)]
    process = subprocess.Popen(
        [*command, "--backup", str(backup)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stderr is not None
    try:
        url = next_listener(process)
        before = b"".join(b"before %d\n" % number for number in range(5000))
        assert done("send", f"{url}/orders", stdin=before) == b"sent 5000\n"
        meanwhile = start("send", f"{url}/orders", "--body", "meanwhile", "--count", "2000")
        process.send_signal(signal.SIGUSR1)
        assert process.stderr.readline() == f"amqp10: backup written to {backup}\n".encode()
        assert meanwhile.communicate(timeout=SECONDS)[0] == b"sent 2000\n"
    finally:
        process.kill()
        process.communicate()
    for path in tmp_path.glob("orders.db*"):  # The disk is lost.
        path.unlink()
    shutil.copy(backup, store)
    with serving("--store", str(store)) as url:
        found = done("receive", f"{url}/orders", "--until-empty").splitlines(keepends=True)
    assert b"".join(found[:5000]) == before
    assert set(found[5000:]) <= {b"meanwhile\n"}


def test_backup_that_fails_is_reported_and_the_server_goes_on(tmp_path: Path) -> None:
    backup = tmp_path / "gone" / "backup"
    command = [*AMQP10, "serve", "--listen", "amqp://127.0.0.1:0", "--store", str(tmp_path / "store")]
    process = subprocess.Popen(
        [*command, "--backup", str(backup)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stderr is not None
    try:
        url = next_listener(process)
        process.send_signal(signal.SIGUSR1)
        assert b"the backup" in (line := process.stderr.readline())
        assert b"cannot be written (No such file or directory)" in line
        assert done("send", f"{url}/q", "--body", "x") == b"sent 1\n"
    finally:
        process.kill()
        process.communicate()


def test_backup_needs_a_store() -> None:
    assert misused("serve", "--backup", "copy") == "--backup needs --store."
