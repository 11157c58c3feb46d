"""``amqp10 serve --http``: metrics and probes of a server that runs; and the files of the manual for it."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from textwrap import dedent

import httpx

from trio_amqp10.http.health import PATHS
from trio_amqp10.tools.cli.serve_options import SERVE_OPTIONS, read_config

from .conftest import done, failed, next_listener, server_of

HOW_TO = Path(__file__).resolve().parents[3] / "docs" / "how-to"


def test_metrics_and_probes_are_served_and_only_metrics_need_a_login() -> None:
    arguments = ("--http", "http://127.0.0.1:0", "--metrics-queues", "orders*", "--user", "ada:enigma")
    with server_of(*arguments) as (url, process):
        http = next_listener(process)
        ada = url.replace("//", "//ada:enigma@")
        done("send", f"{ada}/orders-1", "--body", "tea")
        done("send", f"{ada}/other", "--body", "tea")
        assert httpx.get(f"{http}/metrics").status_code == 401
        text = httpx.get(f"{http}/metrics", auth=("ada", "enigma")).text
        assert 'rabbitmq_queue_messages_ready{queue="orders-1",vhost="/"} 1.0' in text
        assert 'queue="other"' not in text
        for path in PATHS:
            answer = httpx.get(f"{http}{path}")
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_changes_are_written_to_stderr() -> None:
    with server_of("--http", "http://127.0.0.1:0", "--log-changes") as (_, process):
        http = next_listener(process)
        assert httpx.put(f"{http}/api/queues/%2F/orders", json={}).status_code == 201
        assert process.stderr is not None
        line = process.stderr.readline().decode()
    assert re.match(r'\d{4}-\d\d-\d\d \S+ INFO operation=declare-queue name="orders" ', line)
    assert line.endswith('user=null face="HTTP" host="127.0.0.1" outcome=done\n')


def test_warnings_are_written_to_stderr_with_their_time() -> None:
    with server_of("--user", "ada:enigma", "--log-changes") as (url, process):
        failed("send", url.replace("://", "://bob:wrong@") + "/q", "--body", "x")
        assert process.stderr is not None
        line = process.stderr.readline().decode()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \S+ WARNING a peer at 127.0.0.1 failed to authenticate as 'bob'\n", line
    )


def test_unit_of_systemd_runs_a_command_that_there_is() -> None:
    unit = configparser.RawConfigParser()
    unit.read_string((HOW_TO / "amqp10.service").read_text())
    service = unit["Service"]
    assert service["type"] == "notify-reload"
    assert int(service["watchdogsec"]) > 0
    words = service["execstart"].split()
    assert words[:2] == ["/opt/amqp10/bin/amqp10", "serve"]
    assert {word for word in words if word.startswith("--")} <= {"--config"}
    assert int(service["timeoutstopsec"]) > 5  # the time for deliveries in flight


def test_manifest_of_kubernetes_has_a_valid_configuration_and_the_paths_of_the_probes(tmp_path: Path) -> None:
    manifest = (HOW_TO / "kubernetes.yaml").read_text()
    found = re.search(r"  broker\.toml: \|\n((?:    .*\n)+)", manifest)
    assert found is not None
    for name in ("users", "tls.crt", "tls.key"):
        (tmp_path / name).write_text("")
    config = tmp_path / "broker.toml"
    config.write_text(
        dedent(found[1])
        .replace("/etc/amqp10/secret", str(tmp_path))
        .replace("/var/lib/amqp10", str(tmp_path))
    )
    read = read_config(str(config))
    assert read["metrics_queues"] == ("orders*",)
    assert read["http"] == ("https://0.0.0.0:15671",)
    assert set(re.findall(r"path: (/\S+z),", manifest)) == set(PATHS)
    ports = set(re.findall(r"containerPort: (\d+)", manifest))
    assert ports == {url.rpartition(":")[2] for url in (*read["urls"], *read["http"])}


def test_commands_of_the_pages_have_options_that_there_are() -> None:
    flags = {option.flag for option in SERVE_OPTIONS} | {"--config", "--check"}
    for page in ("prometheus", "systemd", "kubernetes", "backup", "upgrade"):
        text = (HOW_TO / f"{page}.rst").read_text()
        for command in re.findall(r"amqp10 serve .*", text):
            assert set(re.findall(r"--[a-z-]+", command)) <= flags, command
