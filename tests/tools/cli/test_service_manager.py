"""What ``amqp10 serve`` reports to the service manager, read from a real socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.tools.cli.service_manager import ServiceManager

from .conftest import AMQP10, ENVIRONMENT, SECONDS, interrupt, next_listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trio.testing import MockClock


class Supervisor:
    """The socket of a service manager, and what it has received."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.settimeout(SECONDS)

    def read(self) -> dict[str, str]:
        """The next report, by variable."""
        return dict(line.split("=", 1) for line in self._socket.recv(4096).decode().split("\n"))

    def pending(self) -> list[str]:
        """The reports that are there already."""
        self._socket.setblocking(False)
        found: list[str] = []
        try:
            while True:
                found.append(self._socket.recv(4096).decode())
        except BlockingIOError:
            return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def supervisor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Supervisor]:
    path = str(tmp_path / "notify")
    made = Supervisor(path if request.param == "path" else f"@amqp10-test-{os.getpid()}-{id(path)}")
    yield made
    made.close()


def test_serve_reports_that_it_is_ready_reloads_and_stops(supervisor: Supervisor, tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text('listen = "amqp://127.0.0.1:0"\n')
    variables = {"NOTIFY_SOCKET": supervisor.address, "WATCHDOG_USEC": "60000000"}
    process = subprocess.Popen(  # A process of its own, as a service manager starts it.
        [*AMQP10, "serve", "--config", str(config)],
        env=ENVIRONMENT | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        url = next_listener(process)
        reports = [supervisor.read() for _ in range(2)]
        assert {"WATCHDOG": "1"} in reports
        assert {"READY": "1", "STATUS": f"serving {url}"} in reports
        process.send_signal(signal.SIGHUP)
        reloading = supervisor.read()
        assert reloading["RELOADING"] == "1"
        assert int(reloading["MONOTONIC_USEC"]) > 0
        assert supervisor.read() == {"READY": "1", "STATUS": f"serving {url}"}
        interrupt(process)
        assert process.returncode == 0
        assert supervisor.read()["STOPPING"] == "1"
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


async def test_watchdog_is_fed_twice_in_its_interval(
    supervisor: Supervisor, autojump_clock: MockClock
) -> None:
    manager = ServiceManager(supervisor.address, interval=3_000_000)
    with trio.move_on_after(10):
        await manager.keep_alive()
    assert supervisor.pending() == ["WATCHDOG=1"] * 7  # at 0, 1.5, ... 9 s
    assert autojump_clock.current_time() == 10


async def test_no_one_who_expects_signs_of_life_gets_none(supervisor: Supervisor) -> None:
    await ServiceManager(supervisor.address).keep_alive()
    await ServiceManager().keep_alive()
    ServiceManager().ready("serving")
    assert supervisor.pending() == []


def test_variables_are_read_once_and_not_handed_on() -> None:
    environment = {
        "NOTIFY_SOCKET": "/run/notify",
        "WATCHDOG_USEC": "1000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    assert vars(ServiceManager.of(environment)) == {"_address": "/run/notify", "_interval": 1_000_000}
    assert environment == {"HOME": "/"}


@pytest.mark.parametrize(
    "variables",
    [
        {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},  # of another process
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "0"},
        {},
    ],
)
def test_watchdog_of_another_process_is_not_fed(variables: dict[str, str]) -> None:
    assert vars(ServiceManager.of(variables)) == {"_address": None, "_interval": None}


def test_socket_of_a_kind_that_is_not_known_draws_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    manager = ServiceManager.of({"NOTIFY_SOCKET": "vsock:2:1234"})
    manager.ready("serving")
    assert "NOTIFY_SOCKET='vsock:2:1234': expected the path of a socket" in capsys.readouterr().err


def test_report_that_cannot_be_sent_is_dropped(tmp_path: Path) -> None:
    ServiceManager(str(tmp_path / "gone")).ready("serving")


def test_status_is_one_line(supervisor: Supervisor) -> None:
    ServiceManager(supervisor.address).ready("serving\nREADY=0")
    assert supervisor.read() == {"READY": "1", "STATUS": "serving READY=0"}
