"""Starts ``amqp10`` as a process without importing anew all that it is made of: that is half a second of a processor.

``python -I -S quick_start.py SOCKET ARGUMENTS`` is the process that a test starts. It imports next to nothing, and hands its
directory, its variables of the command, its arguments and its three standard streams to a server (``python -m tests.tools.cli.quick_start --serve SOCKET [MODULE...]``),
which has imported the command, and those modules, and forks. Arguments that begin with ``-m MODULE`` run that module instead. The fork is the command: it reads and writes the streams itself. The process of
the test passes signals on, and ends as the command does; if it is killed, so is the command.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Either end, by the command line."""
    if sys.argv[1] == "--serve":
        _serve(sys.argv[2], sys.argv[3:])
    else:
        _start(sys.argv[1], sys.argv[2:])


def _start(path: str, arguments: list[str]) -> None:
    """Have a command with these arguments and our streams forked, and end as it ends."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    for passed_on in _PASSED_ON:
        signal.signal(passed_on, lambda number, _: server.sendall(bytes((number,))))
    variables = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("AMQP10_")]
    order = "\0".join((os.getcwd(), str(len(variables)), *variables, *arguments)).encode()
    socket.send_fds(server, [len(order).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(order)
    for stream in (0, 1, 2):
        os.close(stream)  # or who reads them would not see the command close them
    code = int(server.recv(8) or b"70")  # an internal error (sysexits.h): the server is gone
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _serve(path: str, modules: list[str]) -> None:
    """Listen, say so on stdout, and be a command in each fork; ends when stdin does."""
    import gc
    import importlib
    import runpy

    # Before the forks, not in each.
    from trio_amqp10.net.frame_logging import follow_environment
    from trio_amqp10.tools.cli import (  # noqa: F401
        amqp091_commands,
        bench,
        commands,
        demo,
        demo_round,
        disconnect,
        passwd_and_certs,
        request,
        serve,
        top,
        trace,
    )
    from trio_amqp10.tools.cli import main as amqp10

    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # or the first collection of each fork would copy all pages
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    streams, (directory, count, *rest) = _forks(path)
    variables, arguments = rest[: int(count)], rest[int(count) :]
    os.chdir(directory)
    for each in variables:
        name, _, value = each.partition("=")
        os.environ[name] = value
    follow_environment(os.environ.get("AMQP10_TRACE"))  # was read when it was imported, before the fork
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ours, theirs in enumerate(streams):
        os.dup2(theirs, ours)
        os.close(theirs)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    if arguments[:1] == ["-m"]:
        sys.argv = arguments[1:]
        sys.modules.pop(arguments[1], None)  # what it imports stays
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = ["amqp10", *arguments]
    amqp10()


def _forks(path: str) -> tuple[list[int], list[str]]:
    """Fork for each order; returns its streams, directory and arguments, and only in a fork."""
    import contextlib
    import selectors

    reaped, dies = socket.socketpair()
    dies.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(dies.fileno())
    commands: dict[int, socket.socket] = {}
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    selector = selectors.DefaultSelector()
    for readable in (0, reaped, listener):
        selector.register(readable, selectors.EVENT_READ)
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj == 0:
                for pid in commands:
                    os.kill(pid, signal.SIGKILL)
                os._exit(0)
            elif key.fileobj is reaped:
                reaped.recv(4096)
                for pid, code in _ended(commands):
                    starter = commands.pop(pid)
                    selector.unregister(starter)
                    with starter, contextlib.suppress(OSError):  # it may have been killed
                        starter.sendall(b"%d" % code)
            elif key.fileobj is listener:
                starter, _ = listener.accept()
                streams, arguments = _order(starter)
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    selector.close()
                    for each in (reaped, dies, listener, starter, *commands.values()):
                        each.close()
                    return streams, arguments
                commands[pid] = starter
                selector.register(starter, selectors.EVENT_READ, pid)
                for stream in streams:
                    os.close(stream)
            elif key.data in commands:
                number = commands[key.data].recv(1)
                os.kill(key.data, number[0] if number else signal.SIGKILL)


def _order(starter: socket.socket) -> tuple[list[int], list[str]]:
    """The streams, and the directory with the arguments, that a process of a test hands over."""
    length, streams, _, _ = socket.recv_fds(starter, 4, 3)
    octets = b""
    while len(octets) < int.from_bytes(length, "big"):
        octets += starter.recv(65536)
    return streams, octets.decode().split("\0")


def _ended(commands: dict[int, socket.socket]) -> list[tuple[int, int]]:
    """The commands that have ended, each with its exit code, or minus the signal that ended it."""
    waited = [(pid, os.waitpid(pid, os.WNOHANG)) for pid in commands]
    return [(pid, os.waitstatus_to_exitcode(status)) for pid, (found, status) in waited if found]


if __name__ == "__main__":
    main()
