"""``amqp10 serve --store``: what it keeps, and the rules of queues, which are those of ``Container.add_queue``."""

from __future__ import annotations

import inspect
import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10 import Container, LocalProtocolError, QueuePolicy
from trio_amqp10.cli.node_rules import parse_queue
from trio_amqp10.container.management import (
    _operations_of as operations_of,  # pyright: ignore[reportPrivateUsage]
)
from trio_amqp10.container.nodes.policy import QUEUE_RULES

from .conftest import AMQP10, ENVIRONMENT, amqp10, done, failed, next_listener

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


TYPES = {"count": "int", "octets": "int", "milliseconds": "int", "address": "str", "flag": "bool"}


def test_rules_of_the_command_line_and_of_management_are_the_arguments_of_add_queue() -> None:
    arguments = inspect.signature(Container.add_queue).parameters
    rules = {rule.name: rule for rule in QUEUE_RULES}
    assert list(rules) == [name for name in arguments if name not in ("self", "name")]
    for name, rule in rules.items():
        assert arguments[name].default == rule.default, name
        if rule.kind != "choice":
            assert arguments[name].annotation.removesuffix(" | None") == TYPES.get(rule.kind, "float"), name
    described = " ".join(amqp10("serve", "--help").stdout.decode().split())
    for rule in QUEUE_RULES:
        assert f"{rule.option}=" in described
        assert f"{rule.help[1:]}." in described
    assert operations_of("queue")["CREATE"] == [rule.option for rule in QUEUE_RULES]


SAMPLES = {
    "count": ("7", 7),
    "octets": ("64KiB", 65_536),
    "milliseconds": ("1500", 1500),
    "seconds": ("0.5", 0.5),
    "factor": ("1.5", 1.5),
    "address": ("dead", "dead"),
    "flag": ("true", True),
}


@pytest.mark.parametrize("rule", QUEUE_RULES, ids=[rule.option for rule in QUEUE_RULES])
def test_value_of_a_rule_is_read_or_named_with_what_is_expected(rule: Any) -> None:
    text, value = SAMPLES.get(rule.kind) or (rule.choices[1], rule.choices[1])
    assert parse_queue(f"q,{rule.option}={text}") == ("q", {rule.name: value})
    if rule.kind == "address":
        return
    with pytest.raises(Exception, match=rf"^{rule.option}='\$': expected .") as refused:
        parse_queue(f"q,{rule.option}=$")
    for choice in rule.choices:
        assert choice in str(refused.value)


def test_rule_that_needs_a_store_is_refused_without_one() -> None:
    result = amqp10("serve", "--queue", "q,durable=true")
    assert result.returncode == 2
    assert b"--queue q,durable=true needs --store" in result.stderr


def test_container_keeps_all_only_with_a_store() -> None:
    with pytest.raises(LocalProtocolError, match="store"):
        Container(keeps_all=True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("send", "amqp://h/q", "--ttl", "5s"), "'--ttl': '5s': expected a number of seconds"),
        (("send", "amqp://h/q", "--ttl", "0"), "'--ttl': '0': expected a number of seconds, more than 0"),
        (("send", "amqp://h/q", "--priority", "256"), "'256': expected a whole number, from 0 to 255"),
        (("receive", "amqp://h/q", "--count", "all"), "'all': expected a whole number, at least 1"),
        (("serve", "--store", "s3://bucket/x"), "'--store': 's3://bucket/x' is a URI of the scheme 's3'"),
        (("serve", "--users", "dbfs:/x"), "'--users': 'dbfs:/x' is a URI of the scheme 'dbfs'"),
        (("top", "--spool", "gs:/x"), "'--spool': 'gs:/x' is a URI of the scheme 'gs'"),
        (("send", "amqp://h/q", "--tls-ca", "abfss://x"), "'--tls-ca': 'abfss://x' is a URI of the scheme"),
        (("trace", "-", "--html", "s3:/x"), "'--html': 's3:/x' is a URI of the scheme 's3'"),
        (("passwd", "hdfs:/x", "ada"), "'hdfs:/x' is a URI of the scheme 'hdfs'"),
        (("certs", "wasb:/x"), "'wasb:/x' is a URI of the scheme 'wasb'"),
    ],
)
def test_value_that_an_option_cannot_have_is_named_with_what_is_expected(
    arguments: tuple[str, ...], why: str
) -> None:
    result = amqp10(*arguments, stdin=b"x\nx\n")
    assert result.returncode == 2, result.stderr
    assert why in result.stderr.decode()


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


def test_policy_is_made_of_the_rules() -> None:
    assert QueuePolicy(**{rule.name: rule.default for rule in QUEUE_RULES if rule.name != "durable"})
