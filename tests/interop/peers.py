"""The peers' programs as processes of ours: started, read, and ended by their ids.

Knows which peers there are and why one is missing; knows nothing of AMQP.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

HERE = Path(__file__).resolve().parent
PEERS = Path(os.environ.get("PEERS", HERE.parents[1] / ".peers"))
DEADLINE = 60.0
CLIENTS = ("proton", "rhea")
JARS = ("amqp-client.jar", "slf4j-api.jar", "slf4j-nop.jar")
"""Of RabbitMQ's client for Java, and what it needs."""


class MissingPeerError(Exception):
    """This peer is not installed."""


class PeerError(AssertionError):
    """A peer's program failed, or said nothing in time."""


def is_missing(name: str) -> str | None:
    """Why a peer cannot be used and what to run, or None."""
    broker = name in ("rabbitmq3", "rabbitmq4")
    if broker:
        there = (PEERS / name / "etc/hosts").exists() and os.geteuid() == 0
    elif name == "cyrus":
        there = (PEERS / name / "usr/sbin/saslpasswd2").exists()
    elif name == "tshark":
        there = bool(shutil.which("tshark") and shutil.which("dumpcap"))
    elif name == "rhea":
        modules = PEERS / "rhea/node_modules"
        there = all((modules / one).exists() for one in ("rhea", "ws")) and bool(shutil.which("node"))
    elif name == "amqplib":
        there = (PEERS / "amqplib/node_modules/amqplib").exists() and bool(shutil.which("node"))
    elif name == "clients-js":
        there = (PEERS / name / "node_modules/amqp10").exists() and bool(shutil.which("node"))
    elif name == "bunny":
        there = Path("/usr/share/doc/ruby-bunny").exists() and bool(shutil.which("ruby"))
    elif name == "php-amqplib":
        there = Path("/usr/share/php/PhpAmqpLib/autoload.php").exists() and bool(shutil.which("php"))
    elif name == "amqp-tools":
        there = (PEERS / name / "usr/bin/amqp-publish").exists()
    elif name == "proton-cpp":
        there = (PEERS / name / "client").exists()
    elif name == "java":
        jars = PEERS / "java/usr/share/java"
        there = all((jars / one).exists() for one in JARS) and bool(shutil.which("java"))
    elif name == "azure-js":
        there = (PEERS / name / "node_modules/@azure/event-hubs").exists() and bool(shutil.which("node"))
    elif name == "azure":
        there = any((PEERS / name / "lib").glob("python3*/site-packages/azure/eventhub"))
    elif name == "celery":
        there = any((PEERS / "pika/lib").glob("python3*/site-packages/celery"))
        name = "pika"
    elif name == "chromium":
        there = (PEERS / "rhea/node_modules/rhea").exists() and bool(shutil.which("chromium"))
    else:  # in a Python environment of its own
        there = (PEERS / name / "bin/python").exists()
    if there:
        return None
    root = " (as root: it runs under chroot)" if broker else ""
    return f"{name} is not installed; run: tests/interop/install.sh {name}{root}"


@dataclass
class Client:
    """One of the two peers that are programs of ours: what to run, and how to run it in each of its modes.

    Attributes:
        name, command, environment: what to run.
        scheme: of the URL, by whichever side dials.
        host: by which it dials us; Proton holds a certificate only against names.
        run_flags, listen_flags: for the program, so that it speaks as the scheme says.
        dial, serve: options of ours for the same.
    """

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    scheme: str = "amqp"
    host: str = "127.0.0.1"
    run_flags: tuple[str, ...] = ()
    listen_flags: tuple[str, ...] = ()
    dial: dict[str, Any] = field(default_factory=dict)
    serve: dict[str, Any] = field(default_factory=dict)

    def run(
        self, mode: str, url: str, address: str, count: int, *flags: str, seed: int = 1
    ) -> dict[str, Any]:
        """Send or receive the corpus, to the end; blocks. Returns what the program found.

        Raises:
            PeerError: it failed; with its output.
        """
        url = url.replace("127.0.0.1", self.host)
        where = ["--url", url, "--address", address, "--count", str(count), "--seed", str(seed)]
        done = subprocess.run(
            [*self.command, mode, *where, "--deadline", str(DEADLINE), *self.run_flags, *flags],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=DEADLINE + 10,
            check=False,
        )
        if done.returncode or not done.stdout.strip():
            raise PeerError(
                f"{self.name} {mode} ended with {done.returncode}:\n{done.stdout}{done.stderr[-4000:]}"
            )
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    def listen(self, *flags: str) -> Listener:
        """Start it as a container of queues; use as a context manager."""
        return Listener(
            self, [*self.command, "listen", "--deadline", str(DEADLINE), *self.listen_flags, *flags]
        )


class Process:
    """A child that says something when it is ready, and is ended by its own process group."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        self.command = command
        self.child = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def read_until(self, what: bytes, *, of_stderr: bool = False, seconds: float = 20.0) -> bytes:
        """Everything that it said up to a line that holds ``what``."""
        pipe = self.child.stderr if of_stderr else self.child.stdout
        assert pipe is not None
        deadline = time.monotonic() + seconds
        said = b""
        while what not in said or not said.endswith(b"\n"):
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(pipe.fileno(), 65_536) if ready else b""
            if not data:
                _, stderr = self.end(signal.SIGKILL)
                raise PeerError(f"{self.command[:3]} did not say {what!r}: {(said + stderr)[-4000:]!r}")
            said += data
        return said

    def end(self, sig: signal.Signals = signal.SIGTERM, seconds: float = 15.0) -> tuple[bytes, bytes]:
        """Ask it to end, insist after a while; what it had still to say."""
        if self.child.poll() is None:
            os.killpg(self.child.pid, sig)
        try:
            return self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            return self.child.communicate()


class Listener:
    """A peer that listens; ``result`` holds what it found once the block is left."""

    def __init__(self, peer: Client, command: list[str]) -> None:
        self.peer = peer
        self.process = Process(command, peer.environment)
        try:
            self.port: int = json.loads(self.process.read_until(b'"port"').splitlines()[-1])["port"]
        except BaseException:
            self.process.end(signal.SIGKILL)
            raise
        self.result: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"{self.peer.scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stdout, stderr = self.process.end()
        if error is not None:
            return
        try:
            self.result = json.loads(stdout.splitlines()[-1])
        except (ValueError, IndexError):
            raise PeerError(f"{self.peer.name} left no result: {stdout!r} {stderr[-4000:]!r}") from None
        if "error" in self.result:
            raise PeerError(f"{self.peer.name}: {self.result['error']}")


def client(name: str) -> Client:
    """A peer by name.

    Raises:
        MissingPeerError: it is not installed.
    """
    if reason := is_missing(name):
        raise MissingPeerError(reason)
    if name == "proton":
        return Client(name, [str(PEERS / "proton/bin/python"), str(HERE / "proton_peer.py")])
    modules = str(PEERS / "rhea/node_modules")
    return Client(name, ["node", str(HERE / "rhea_peer.js")], {"NODE_PATH": modules})


class Capture:
    """What crosses one port of the loopback, and tshark's opinion on it.

    Use as a context manager around a run; afterwards ``read`` asks tshark. The kernel hands packets over in
    blocks, and a capture that ends drops the last: so a datagram of ours marks the beginning and the end,
    and we wait until it is in the file.
    """

    def __init__(self, port: int, file: Path) -> None:
        self.port = port
        self.file = file
        self.marker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.marker.bind(("127.0.0.1", 0))
        wanted = f"tcp port {port} or udp port {self.marker.getsockname()[1]}"
        self.process = Process(
            ["dumpcap", "-q", "-i", "lo", "-f", wanted, "-s", "0", "-B", "64", "-w", str(file)]
        )
        try:
            self.process.read_until(b"File:", of_stderr=True)
            self._wait_for_marker()
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait_for_marker()
        finally:
            said = self._end(signal.SIGINT)
        assert b"/0 (" in said, f"the capture has holes: {said!r}"

    def _wait_for_marker(self) -> None:
        mark = os.urandom(16)
        deadline = time.monotonic() + 15
        while mark not in self.file.read_bytes()[-1_000_000:]:
            if time.monotonic() > deadline:
                raise PeerError(f"dumpcap sees nothing on the loopback: {self.file} has no marker")
            self.marker.sendto(mark, self.marker.getsockname())
            time.sleep(0.05)

    def _end(self, sig: signal.Signals) -> bytes:
        self.marker.close()
        return self.process.end(sig)[1]

    def read(self, display_filter: str, *fields: str) -> list[str]:
        """The packets that pass a filter, one line each: tshark's summary, or these fields of them.

        Our own markers are left out: tshark guesses at their random octets, and takes some for a broken protocol.
        """
        shown = ["-T", "fields", *(word for name in fields for word in ("-e", name))] if fields else []
        done = subprocess.run(
            [
                "tshark",
                "-r",
                str(self.file),
                "-d",
                f"tcp.port=={self.port},amqp",
                "-Y",
                f"tcp and ({display_filter})",
                *shown,
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise PeerError(f"tshark ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout.splitlines()
