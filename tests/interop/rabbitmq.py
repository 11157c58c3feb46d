"""RabbitMQ as a peer: a node of its own, in the file tree that ``install.sh`` put into ``.peers``.

Both majors run from a Debian tree under ``chroot``, with their own data, node name and ports, and their own
epmd, all on 127.0.0.1: nothing of the host's services is touched, and several runs can go side by side.
``python -m tests.interop.rabbitmq 4`` runs one until interrupted, for people.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.amqp10.peer.authority import authority

if TYPE_CHECKING:
    from io import RawIOBase

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / ".peers"
QUEUES = 32
"""Queues that exist when a node is up: a test takes a fresh one and never cleans up."""

STREAMS = 4
"""Streams that a 4.x has besides."""

BOOT_SECONDS = 90.0

SHELL = """
    Asker = self(),
    spawn(fun() ->
        {ok, Listening} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, binary, {packet, 4}, {active, false}]),
        Asker ! inet:port(Listening),
        {ok, Socket} = gen_tcp:accept(Listening),
        Loop = fun Loop() ->
            {ok, Asked} = gen_tcp:recv(Socket, 0),
            Answer = try
                {ok, Tokens, _} = erl_scan:string(binary_to_list(Asked)),
                {ok, Expressions} = erl_parse:parse_exprs(Tokens),
                {value, Value, _} = erl_eval:exprs(Expressions, []),
                io_lib:format("ok ~0p", [Value])
            catch _:Why -> io_lib:format("error ~0p", [Why]) end,
            gen_tcp:send(Socket, Answer),
            Loop()
        end,
        Loop()
    end),
    receive {ok, Port} -> Port end
"""
"""Erlang for a process in the node that evaluates what comes over one connection, in frames with their size in front."""


@dataclass
class Broker:
    """A running node; guest and guest may do everything, from the loopback only, and so may ann by a certificate.

    4.x listens with TLS too, at ``tls_port``: as ``localhost``, by ``authority()``; it asks clients for a certificate by
    ``authority("clients")``, and lets those without one be.
    """

    major: int
    port: int
    tls_port: int
    processes: list[subprocess.Popen[bytes]]
    run: Path
    log: Path
    tree: Path
    environment: dict[str, str]
    management_port: int | None = None
    taken: int = field(default=0)
    streams: int = field(default=0)
    _shell: socket.socket | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    @property
    def management_url(self) -> str:
        """The root of the HTTP API, of a broker that was started with it."""
        assert self.management_port is not None, "start(..., management=True)"
        return f"http://127.0.0.1:{self.management_port}"

    @property
    def tls_url(self) -> str:
        return f"amqps://localhost:{self.tls_port}"

    def new_queue(self) -> str:
        """The address of an empty queue that no other test uses."""
        self.taken += 1
        assert self.taken <= QUEUES, f"more than {QUEUES} queues: raise QUEUES"
        # 4.x has its address format v2; the plugin of 3.x that of version 1.
        prefix = "/queues/" if self.major >= 4 else "/amq/queue/"
        return f"{prefix}interop-{self.taken}"

    def new_stream(self) -> str:
        """The address of an empty stream that no other test uses; 4.x only."""
        self.streams += 1
        assert self.streams <= STREAMS, f"more than {STREAMS} streams: raise STREAMS"
        return f"/queues/stream-{self.streams}"

    def evaluate(self, expression: str) -> str:
        """What an Erlang expression is inside the node; some milliseconds.

        Raises:
            RuntimeError: it has no value; with what is said of it.
        """
        if self._shell is None:
            self._shell = socket.create_connection(("127.0.0.1", self._open_shell()), 30)
        octets = f"{expression}.".encode()
        self._shell.sendall(len(octets).to_bytes(4) + octets)
        with self._shell.makefile("rb", buffering=0) as answers:
            size = int.from_bytes(_exactly(answers, 4))
            how, _, value = _exactly(answers, size).decode().partition(" ")
        if how != "ok":
            raise RuntimeError(f"{expression}: {value}")
        return value

    def _open_shell(self) -> int:
        """The port of one who evaluates. ``erl_call`` could do that each time, but hangs for 5 s now and then."""
        done = subprocess.run(
            _inside(self.tree, ["erl_call", "-sname", self.environment["RABBITMQ_NODENAME"], "-e"]),
            env=self.environment,  # with HOME, where the cookie is
            input=f"{SHELL}.\r\n",
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return int(done.stdout.strip().removeprefix("{ok, ").removesuffix("}"))

    def kill(self) -> None:
        """End the node at once, as a fault of its machine would, and leave its data."""
        self._close_shell()
        node = self.processes.pop()
        os.killpg(node.pid, signal.SIGKILL)
        node.wait(5)

    def start(self) -> None:
        """Start the node on the data that it has, and wait until it takes connections.

        Raises:
            RuntimeError: it did not come up; with the end of its log.
        """
        self.spawn("/usr/lib/rabbitmq/bin/rabbitmq-server")
        _wait_until_open(self)

    def spawn(self, *command: str) -> None:
        """Start a program of the node, in its tree and its folder; what it says goes to the log."""
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                _inside(self.tree, ["env", "-C", self.environment["HOME"], *command]),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own: ending it ends the VM's helpers too
            )
        self.processes.append(process)

    def _close_shell(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def stop(self) -> None:
        """End the node, then its epmd, by their ids, and remove its data."""
        self._close_shell()
        for process in reversed(self.processes):
            _end(process)
        shutil.rmtree(self.run, ignore_errors=True)


def start(major: int, *, peers: Path = PEERS, schedulers: int | None = 1, management: bool = False) -> Broker:
    """Start a node and wait until it takes connections.

    Args:
        major: 3 or 4.
        peers: where it is installed.
        schedulers: threads that run Erlang; None for one for each processor, as it comes.
        management: whether its HTTP API is there, with figures that are a second old at most.

    Raises:
        RuntimeError: it is not installed, or did not come up; with the end of its log.
    """
    tree = peers / f"rabbitmq{major}"
    if not (tree / "usr/lib/rabbitmq/bin/rabbitmq-server").exists():
        raise RuntimeError(f"RabbitMQ {major} is not in {tree}: run tests/interop/install.sh rabbitmq{major}")
    port, tls_port, dist_port, epmd_port, management_port = _free_ports(5)
    inside = Path("/var/lib/rabbitmq") / f"interop-{os.getpid()}-{port}"
    run = tree / inside.relative_to("/")
    run.mkdir(parents=True)
    _write_config(run, inside, port, major)
    if major >= 4:
        _write_tls_config(run, inside, tls_port)
    if management:
        _add_management(run, management_port)
    owner = (tree / "var/lib/rabbitmq").stat()
    for path in [run, *run.rglob("*")]:
        os.chown(path, owner.st_uid, owner.st_gid)

    environment = {
        "PATH": "/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(inside),
        "LANG": "C.UTF-8",
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"interop{port}@localhost",
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_MNESIA_BASE": str(inside / "data"),
        "RABBITMQ_LOG_BASE": str(inside / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(inside / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(inside / "none"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(inside / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(inside / "enabled_plugins"),
        "RABBITMQ_PID_FILE": str(inside / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none"
        + (f" +S {schedulers}:{schedulers}" if schedulers else ""),
    }
    log = run / "output"
    broker = Broker(major, port, tls_port, [], run, log, tree, environment)
    if management:
        broker.management_port = management_port
    try:
        broker.spawn("epmd", "-address", "127.0.0.1", "-port", str(epmd_port))
        broker.start()
    except BaseException:
        broker.stop()
        raise
    return broker


def _inside(tree: Path, command: list[str]) -> list[str]:
    return ["chroot", "--userspec=rabbitmq:rabbitmq", str(tree), *command]


def _exactly(stream: RawIOBase, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = stream.read(count - len(found))
        if not more:
            raise RuntimeError("the node has closed the connection")
        found += more
    return found


def _wait_until_open(broker: Broker) -> None:
    """Listeners open last, so a connection means that queues and users are there."""
    ports = [broker.port, *([broker.tls_port] if broker.major >= 4 else ())]
    if broker.management_port is not None:
        ports.append(broker.management_port)
    deadline = time.monotonic() + BOOT_SECONDS
    while True:
        ended = broker.processes[-1].poll()
        if ended is None:
            try:
                for port in ports:
                    socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                pass
            else:
                return
        if ended is not None or time.monotonic() > deadline:
            tail = broker.log.read_text(errors="replace")[-4000:]
            raise RuntimeError(f"RabbitMQ {broker.major} did not start (exit {ended}):\n{tail}")
        time.sleep(0.1)


def _write_config(run: Path, inside: Path, port: int, major: int) -> None:
    definitions: dict[str, Any] = {
        "rabbit_version": "4.0.0" if major >= 4 else "3.10.0",
        "vhosts": [{"name": "/"}],
        "users": [
            {
                "name": "guest",
                "password_hash": _password_hash("guest"),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"],
            },
            {"name": "ann", "password_hash": "", "hashing_algorithm": None, "tags": []},
        ],
        "permissions": [
            {"user": user, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
            for user in ("guest", "ann")
        ],
        "queues": [
            {"name": f"interop-{n}", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
            for n in range(1, QUEUES + 1)
        ],
    }
    if major >= 4:
        definitions["queues"] += [
            {
                "name": f"stream-{n}",
                "vhost": "/",
                "durable": True,
                "auto_delete": False,
                "arguments": {"x-queue-type": "stream"},
            }
            for n in range(1, STREAMS + 1)
        ]
    (run / "definitions.json").write_text(json.dumps(definitions))
    plugins = "[rabbitmq_auth_mechanism_ssl].\n" if major >= 4 else "[rabbitmq_amqp1_0].\n"
    (run / "enabled_plugins").write_text(plugins)
    (run / ".erlang.cookie").write_text(base64.b32encode(os.urandom(15)).decode())
    (run / ".erlang.cookie").chmod(0o400)
    (run / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{port}\n"
        f"load_definitions = {inside}/definitions.json\n"
        "loopback_users.guest = true\n"
        "log.console.level = info\n"
        "disk_free_limit.absolute = 50MB\n"
        "vm_memory_calculation_strategy = allocated\n"  # there is no /proc in the tree
    )


def _write_tls_config(run: Path, inside: Path, port: int) -> None:
    """Its own authority for servers, and another for clients, whose common name is who they are."""
    shutil.copy(authority().issue().file, run / "server.pem")
    shutil.copy(authority("clients").cafile, run / "clients.pem")
    with (run / "rabbitmq.conf").open("a") as file:
        file.write(
            f"listeners.ssl.1 = 127.0.0.1:{port}\n"
            f"ssl_options.certfile = {inside}/server.pem\n"
            f"ssl_options.keyfile = {inside}/server.pem\n"
            f"ssl_options.cacertfile = {inside}/clients.pem\n"
            "ssl_options.verify = verify_peer\n"
            "ssl_options.fail_if_no_peer_cert = false\n"
            "ssl_cert_login_from = common_name\n"
            "auth_mechanisms.1 = PLAIN\n"
            "auth_mechanisms.2 = EXTERNAL\n"
            "auth_mechanisms.3 = ANONYMOUS\n"
            "anonymous_login_user = guest\n"
            "anonymous_login_pass = guest\n"
        )


def _add_management(run: Path, port: int) -> None:
    """The plugin of the HTTP API; the shortest interval of its figures that it takes is a second."""
    plugins = (run / "enabled_plugins").read_text()
    (run / "enabled_plugins").write_text(plugins.replace("[", "[rabbitmq_management,", 1))
    with (run / "rabbitmq.conf").open("a") as file:
        file.write(
            "management.tcp.ip = 127.0.0.1\n"
            f"management.tcp.port = {port}\n"
            "collect_statistics_interval = 1000\n"
        )


def _password_hash(password: str) -> str:
    """RabbitMQ's own form: four octets of salt, then SHA-256 of salt and password, in base64."""
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def _free_ports(count: int) -> list[int]:
    """Below those that Linux gives to connections: until the node listens, seconds go by, and one could be taken."""
    sockets: list[socket.socket] = []
    while len(sockets) < count:
        with contextlib.suppress(OSError):
            sockets.append(socket.create_server(("127.0.0.1", random.randrange(15_000, 32_000))))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _end(process: subprocess.Popen[bytes]) -> None:
    for sig, seconds in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, sig)
        except ProcessLookupError:
            break
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    process.wait(5)


def main() -> None:
    broker = start(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
    try:
        print(f"{broker.url}{broker.new_queue()}", flush=True)
        broker.processes[-1].wait()
    except KeyboardInterrupt:
        pass
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
