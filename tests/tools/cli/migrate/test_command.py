"""``amqp10 migrate`` as a process: what it prints, and what is where afterwards."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.soak.migrate import ends_of, kill_and_count
from tests.tools.cli.conftest import SECONDS, amqp10, done, failed, interrupt, misused, serving, start
from tests.tools.cli.test_store import killed
from trio_amqp10.testing import rabbitmq
from trio_amqp10.tools.cli.command_runner import Interrupts
from trio_amqp10.tools.cli.migrate.command import MigrateOptions, migrate
from trio_amqp10.tools.cli.migrate.container_end import ContainerEnd

from .ends import bodies, managed, send

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from trio_amqp10.tools.cli.migrate.staging import Staging


def lines(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


@pytest.fixture
def here() -> Iterator[str]:
    with serving(
        "--management", "--queue", "orders,max-priority=0,dead-letter=dead", "--queue", "dead"
    ) as url:
        done("send", f"{url}/orders", stdin=lines(*range(700)))
        yield url


@pytest.fixture
def there() -> Iterator[str]:
    with serving("--management") as url:
        yield url


def test_container_goes_to_another_container(here: str, there: str) -> None:
    assert done("migrate", here, there, "--dry-run").splitlines() == [
        b"queue orders: 700 messages; max-priority=0, dead-letter=dead",
        b"queue dead: 0 messages",
    ]
    assert done("queue", "list", there, "--json") == b""
    assert done("migrate", here, there) == b"moved 700 of orders\nmoved 0 of dead\n"
    assert done("receive", f"{there}/orders", "--count", "700") == lines(*range(700))
    assert done("queue", "list", here, "--format", "{name} {depth}") == b"orders 0\ndead 0\n"
    assert b"dead-letter" in done("queue", "show", there, "orders")
    assert done("migrate", here, there, "--queue", "orders") == b"moved 0 of orders\n"


@pytest.mark.parametrize("redirect", [False, True])
async def test_queues_are_listed_as_often_however_many_there_are(
    redirect: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def listed(end: ContainerEnd) -> list[Staging]:
        lists.append(end.name)
        return await staged(end)

    lists: list[str] = []
    staged = ContainerEnd.staged
    monkeypatch.setattr(ContainerEnd, "staged", listed)
    source, target = managed("a", "b", "c"), managed()
    async with trio.open_nursery() as nursery:
        [here] = await nursery.start(source.serve, "amqp://127.0.0.1:0")
        [there] = await nursery.start(target.serve, "amqp://127.0.0.1:0")
        options = MigrateOptions(source=here.url, target=there.url, redirect=redirect)
        await migrate(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert capfd.readouterr().out == "moved 0 of a\nmoved 0 of b\nmoved 0 of c\n"
    assert len(lists) == 3


@pytest.mark.parametrize("more", [3, 500])
@pytest.mark.parametrize("redirect", [False, True])
async def test_copying_ends_if_messages_come_as_fast_as_they_are_copied(
    redirect: bool, more: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def busy(end: ContainerEnd, staging: Staging) -> None:
        queue = source.nodes["q"]
        assert isinstance(queue, amqp.Queue)
        if not queue.is_held:
            await send(source, "q", [amqp.Message("more")] * more)
        await make_staging(end, staging)

    make_staging = ContainerEnd.make_staging
    monkeypatch.setattr(ContainerEnd, "make_staging", busy)
    source, target = managed("q"), managed()
    await send(source, "q", [amqp.Message("first")] * 700)
    async with trio.open_nursery() as nursery:
        [here] = await nursery.start(source.serve, "amqp://127.0.0.1:0")
        [there] = await nursery.start(target.serve, "amqp://127.0.0.1:0")
        options = MigrateOptions(source=here.url, target=there.url, redirect=redirect)
        with trio.fail_after(SECONDS):
            await migrate(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    copied = {3: 706, 500: 2200 if redirect else 1500}[more]  # 700 are left when 1,500 are copied.
    assert capfd.readouterr().out == f"moved {copied} of q\n"


def test_differences_are_listed_and_nothing_is_done_unless_they_are_accepted(here: str) -> None:
    with rabbitmq() as there:
        refused = amqp10("migrate", here, there)
        assert (refused.returncode, refused.stdout) == (1, b"")
        assert refused.stderr.decode().splitlines() == [
            "amqp10: queue dead: max-priority=any: priorities are ignored, as with max-priority=0",
            "amqp10: nothing was done, because of 1 difference: --accept-differences migrates in spite of that",
        ]
        assert done("queue", "list", here, "--format", "{name} {depth}") == b"orders 700\ndead 0\n"
        assert done("migrate", here, there, "--queue", "orders") == b"moved 700 of orders\n"
        back = done("migrate", there, here, "--queue", "orders", "--dry-run").decode()
        assert back.startswith("queue orders: 700 messages; x-queue-type=classic, x-dead-letter-exchange=")
        again = amqp10("migrate", there, here, "--queue", "orders", "--accept-differences")
        assert (again.returncode, again.stdout) == (0, b"moved 700 of orders\n")
    assert done("receive", f"{here}/orders", "--count", "700") == lines(*range(700))


def test_broker_is_not_migrated_to_itself(here: str) -> None:
    also = here.replace("127.0.0.1", "localhost")
    for source, target in ((here, here), (also, here), (here, also.replace("amqp:", "amqp091:"))):
        assert "are the same broker: give the URLs of two brokers" in failed(
            "migrate", source, target, code=2
        )
    assert done("queue", "list", here, "--format", "{name} {depth}") == b"orders 700\ndead 0\n"


async def test_virtual_hosts_of_one_address_are_two_brokers(capfd: pytest.CaptureFixture[str]) -> None:
    source, target = managed("orders"), managed()
    await send(source, "orders", ["tea"])
    async with trio.open_nursery() as nursery:
        hosts = amqp.VirtualHosts({"localhost": source, "127.0.0.1": target})
        [listener] = await nursery.start(hosts.serve, "amqp://127.0.0.1:0")
        options = MigrateOptions(source=listener.url.replace("127.0.0.1", "localhost"), target=listener.url)
        await migrate(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert capfd.readouterr().out == "moved 1 of orders\n"
    assert await bodies(target, "orders") == ["tea"]


def test_accepted_differences_are_not_listed_again(here: str) -> None:
    with rabbitmq() as there:
        accepted = amqp10("migrate", here, there, "--accept-differences")
    assert (accepted.returncode, accepted.stderr) == (0, b"")


def test_dry_run_names_queues_that_exist_with_other_rules(here: str, there: str) -> None:
    done("queue", "create", there, "orders,max-length=5")
    assert done("migrate", here, there, "--dry-run").decode().splitlines()[2:] == [
        f"conflict: queue orders exists at {there.partition('://')[2]} with other rules: max-length=5"
    ]
    with rabbitmq() as rabbit:
        done("migrate", here, rabbit, "--queue", "orders")
        assert b"conflict" not in done("migrate", here, rabbit, "--queue", "orders", "--dry-run")
        done("queue", "set", here, "orders,max-length=7")
        place = rabbit.rpartition("@")[2]
        said = done("migrate", here, rabbit, "--queue", "orders", "--dry-run").decode().splitlines()[-1]
        assert said.startswith(
            f"conflict: queue orders exists at {place} with other rules: x-queue-type=classic"
        )
        back = done("migrate", rabbit, here, "--queue", "orders", "--dry-run").decode().splitlines()[-1]
        assert back.startswith("conflict: queue orders exists at ")


def test_refusal_while_messages_move_is_in_the_words_of_the_container(here: str, there: str) -> None:
    with rabbitmq() as rabbit:
        done("migrate", here, rabbit, "--queue", "orders")
        refused = amqp10("migrate", rabbit, there, "--queue", "orders")
    assert (refused.returncode, refused.stdout) == (1, b"moved 0 of orders\n")
    assert refused.stderr.startswith(b"amqp10: a durable queue 'migrate/in/orders/")
    assert refused.stderr.endswith(b" needs a container with a store: Container(store=SqliteStore(path))\n")


def test_queues_of_rabbitmq_are_named_or_in_a_file(here: str, there: str, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    with rabbitmq() as source:
        assert "give --queue NAME, or --definitions FILE" in failed("migrate", source, there, code=2)
        assert "no queue 'x'" in failed("migrate", source, there, "--queue", "x")
        with rabbitmq() as other:
            assert "expected a container as one of them" in failed("migrate", source, other, code=2)
        file.write_text("[]")
        assert "an object of JSON" in failed("migrate", source, there, "--definitions", str(file))
        file.write_text("{")
        assert "it is not JSON" in failed("migrate", source, there, "--definitions", str(file))
        for wrong in ('{"vhosts": [1]}', '{"queues": 1}'):
            file.write_text(wrong)
            assert f"{file}: " in failed("migrate", source, there, "--definitions", str(file))
        file.write_text(json.dumps({"vhosts": [{"name": "/"}], "queues": [{"name": "q", "vhost": "/"}]}))
        assert "no queue 'q'" in failed("migrate", source, there, "--definitions", str(file))
    assert "--definitions is for RabbitMQ" in failed(
        "migrate", here, there, "--definitions", str(file), code=2
    )


def test_messages_with_a_consumer_stay_and_are_reported(here: str, there: str) -> None:
    async def main() -> subprocess.CompletedProcess[bytes]:
        async with amqp.open_connection(here) as conn, conn.open_receiver("orders", credit=0) as receiver:
            receiver.grant(1)
            await receiver.receive()
            return await trio.to_thread.run_sync(amqp10, "migrate", here, there, "--queue", "orders")

    result = trio.run(main)
    assert (result.returncode, result.stdout) == (1, b"moved 699 of orders\n")
    assert b"1 messages stay at the source, because consumers have them" in result.stderr
    assert done("migrate", here, there, "--queue", "orders") == b"moved 1 of orders\n"


@pytest.mark.whole
def test_interrupt_ends_after_a_batch_and_loses_nothing(here: str, there: str) -> None:
    done("send", f"{here}/orders", "--count", "20000", "--body", "x")
    process = start("migrate", here, there, "--queue", "orders")
    while not done("queue", "list", there, "--format", "{depth}").strip(b"0\n"):
        pass
    stdout, stderr = interrupt(process, signal.SIGINT)
    assert process.returncode == 130
    assert b"interrupted; no message is lost" in stderr
    moved = int(stdout.split()[1])
    assert 0 < moved < 20700
    assert done("queue", "list", here, "--format", "{name} {depth}") == b"orders %d\ndead 0\n" % (
        20700 - moved
    )
    assert done("migrate", here, there, "--queue", "orders") == b"moved %d of orders\n" % (20700 - moved)


@pytest.mark.whole
def test_lost_target_is_one_line_and_the_next_run_completes(here: str, tmp_path: Path) -> None:
    done("send", f"{here}/orders", "--count", "20000", "--body", "x", "--durable")
    with killed(tmp_path / "store", "--management") as there:
        process = start("migrate", here, there, "--queue", "orders")
        while not done("queue", "list", there, "--format", "{depth}").strip(b"0\n"):
            pass
    stdout, stderr = process.communicate(timeout=SECONDS)
    assert (process.returncode, stderr.count(b"\n")) == (1, 1), stderr
    assert b"no message is lost or doubled; run the command again" in stderr
    assert stdout.startswith(b"moved ")
    with killed(tmp_path / "store", "--management") as there:
        done("migrate", here, there, "--queue", "orders")
        assert done("queue", "list", there, "--format", "{name} {depth}") == b"orders 20700\n"


def test_staging_queue_of_another_migration_is_reported(here: str, there: str) -> None:
    done("queue", "create", here, "migrate/out/other/0123456789abcdef")
    result = amqp10("migrate", here, there, "--queue", "orders")
    assert (result.returncode, result.stdout) == (0, b"moved 700 of orders\n")
    assert b"migrate/out/other/0123456789abcdef is left of an interrupted migration" in result.stderr


def test_url_must_be_one() -> None:
    assert "FROM" in misused("migrate", "h", "amqp://h")


@pytest.mark.whole
@pytest.mark.parametrize(("messages", "live"), [(20_000, False), (4000, True)])
@pytest.mark.parametrize("seed", [1, 2])
def test_kills_lose_and_double_nothing(seed: int, messages: int, live: bool) -> None:
    with ends_of("across", None) as ends:
        counts = kill_and_count(ends, 6, messages, seed, longest=1.5, live=live)
    assert (counts.moved, *counts[3:]) == (counts.sent, 0, 0, 0)
    assert counts.killed
