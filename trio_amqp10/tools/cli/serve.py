"""``amqp10 serve``: run a container of queues and topics, stored in a file or not."""

from __future__ import annotations

import gc
import logging
import os
import signal
import ssl
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
import trio

import trio_amqp10 as amqp
from trio_amqp10.broker.nodes.node import label

from .command_runner import CommandError, Interrupts, explain, log_to_stderr, say, taken_port, write_out
from .passwd import load_users
from .rights_file import ReplaceableRules, rights_of_file
from .serve_reload import apply
from .service_manager import ServiceManager

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from .rights_file import Rights

_PATIENCE: Final = 5.0
"""Seconds that peers have to settle the deliveries in flight after a signal."""

_COLLECTIONS: Final = (50_000, 1, 20)
"""Thresholds of the garbage collector's three generations.

They count new objects, collections of the young generation, and collections of the middle generation. While connections come
and go, as many objects are made as are freed, and all of them are in use: a collection after each 700 objects, Python's default,
takes 10 to 20 ms five times a second and frees nothing. A connection in its handshake has about 100 objects, so a few hundred
clients that connect and disconnect together cause no collection.
"""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of ``amqp10 serve``."""

    urls: Sequence[str]
    http: Sequence[str] = ()
    metrics_queues: Sequence[str] = ()
    queues: Sequence[tuple[str, dict[str, Any]]] = ()
    topics: Sequence[tuple[str, dict[str, Any]]] = ()
    users: dict[str, str] = field(default_factory=dict[str, str])
    users_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    strict: bool = False
    management: bool = False
    log_changes: bool = False
    dialects: Mapping[str, Mapping[str, Any]] | None = None
    allow_plaintext_password: bool = False
    store: str | None = None
    backup: str | None = None
    quotas: amqp.Quotas | None = None
    max_failures: int | None = 10
    memory_limit: int | Literal["auto"] | None = "auto"
    max_partial: int | None = 256 * 1024 * 1024
    refuse_durable: bool = False
    rights: Rights | None = None


async def serve(
    options: ServeOptions,
    interrupts: Interrupts,
    *,
    read_again: Callable[[], ServeOptions] | None = None,
    hangups: Sequence[int] = (),
) -> None:
    """Serve until a signal arrives, then finish the deliveries in flight.

    Args:
        options: what to serve.
        interrupts: the signals that end it.
        read_again: returns the options as their file has them now, at each SIGHUP; None without such a file.
        hangups: the SIGHUPs that have arrived already, while the options were read.

    Raises:
        CommandError: the file of users is not valid, or the files for TLS are not.
        OSError: a URL cannot be listened at, or a file cannot be read.
        StoreError: the store cannot be used.
    """
    # Without files to read again, SIGHUP keeps its usual effect, which ends the process.
    files = (options.users_file, options.tls_cert, options.rights and options.rights.file)
    manager = ServiceManager.of(os.environ)
    signals: AbstractContextManager[AsyncIterator[int] | None] = nullcontext(None)
    if hasattr(signal, "SIGHUP") and (read_again is not None or any(files)):
        signals = trio.open_signal_receiver(signal.SIGHUP)
    with (
        log_to_stderr(),
        signals as received,
        amqp.SqliteStore(options.store) if options.store else nullcontext() as store,
    ):
        reload = None if received is None else _Reload(options, read_again, received, bool(hangups), manager)
        await _serve(options, interrupts, store, reload, manager)


def check(options: ServeOptions) -> None:
    """Read the files that the options name, and warn as a start does.

    Raises:
        AmqpError: a queue or a topic cannot be added.
        CommandError: a file is not valid.
        OSError: a file cannot be read.
    """
    _sasl(options)
    _tls(options)
    container = amqp.Container(strict=options.strict, store=amqp.MemoryStore())
    _add_nodes(container, options)
    _warn_of_open_management(options)
    if options.store is None or not Path(options.store).exists():  # otherwise it may have the missing queues
        _warn_of_lost_dead_letters(container)


async def _serve(
    options: ServeOptions,
    interrupts: Interrupts,
    store: amqp.SqliteStore | None,
    reload: _Reload | None,
    manager: ServiceManager,
) -> None:
    container = amqp.Container(
        "amqp10",
        strict=options.strict,
        store=store,
        quotas=options.quotas,
        memory_limit=options.memory_limit,
        refuse_durable=options.refuse_durable,
        keeps_all=store is not None,
        authorise=None if options.rights is None else ReplaceableRules(options.rights.rules()),
    )
    _add_nodes(container, options)
    if options.management:
        container.add_management()
    _warn_of_open_management(options)
    if options.log_changes:
        logging.getLogger("trio_amqp10.management").setLevel(logging.INFO)
    sasl, context = _sasl(options), _tls(options)
    dialects: dict[str, Any] = {} if options.dialects is None else {"dialects": options.dialects}
    start = partial(
        container.serve,
        *options.urls,
        sasl=sasl,
        ssl_context=context,
        allow_plaintext_password=options.allow_plaintext_password,
        max_failures=options.max_failures,
        max_partial_octets=options.max_partial,
        **dialects,
    )
    starts = [start]
    if options.http:
        starts.append(
            partial(
                container.serve_http,
                *options.http,
                sasl=sasl,
                ssl_context=context,
                allow_plaintext_password=options.allow_plaintext_password,
                max_failures=options.max_failures,
                metrics_queues=options.metrics_queues,
            )
        )
    tasks: list[Callable[[], Awaitable[None]]] = [manager.keep_alive]
    if reload is not None:
        tasks.append(partial(reload.run, container, sasl, context))
    with taken_port("--listen URL", "--http URL"):
        if store is not None and options.backup is not None and hasattr(signal, "SIGUSR1"):
            with trio.open_signal_receiver(signal.SIGUSR1) as wishes:
                tasks.append(partial(_back_up, store, options.backup, wishes))
                await _until_interrupted(container, starts, interrupts, manager, tasks)
        else:
            await _until_interrupted(container, starts, interrupts, manager, tasks)


def _add_nodes(container: amqp.Container, options: ServeOptions) -> None:
    for queue, rules in options.queues:
        container.add_queue(queue, **rules)
    for topic, limits in options.topics:
        container.add_topic(topic, **limits)


def _warn_of_open_management(options: ServeOptions) -> None:
    if options.management and not (options.users or options.users_file or options.tls_client_ca):
        say(
            "amqp10: warning: --management without --user, --users or --tls-client-ca lets every client delete every queue"
        )


async def _until_interrupted(
    container: amqp.Container,
    starts: Sequence[Any],
    interrupts: Interrupts,
    manager: ServiceManager,
    tasks: Sequence[Callable[[], Awaitable[None]]],
) -> None:
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = []
        for start in starts:
            listeners += await nursery.start(start)
        _collect_rarely()
        _warn_of_lost_dead_letters(container)
        for task in tasks:
            nursery.start_soon(task)
        with interrupts.here():  # the reader of this line may send a signal at once
            await write_out("".join(f"listening {listener.url}\n" for listener in listeners).encode())
            manager.ready(_serving(listeners))
            await trio.sleep_forever()
        manager.stopping()
        say("amqp10: finishing the deliveries in flight; a second signal stops at once")
        if not await container.finish(_PATIENCE):
            say(f"amqp10: some deliveries were still in flight after {_PATIENCE:g} s, and were abandoned")
        nursery.cancel_scope.cancel()


def _warn_of_lost_dead_letters(container: amqp.Container) -> None:
    """Report dead-letter addresses that do not exist and are not created."""
    if not container.strict:
        return
    for node in container.nodes.values():
        rules = getattr(node, "policy", None)
        address = None if rules is None else rules.dead_letter
        if address is not None and not address.startswith("/") and address not in container.nodes:
            say(
                f"amqp10: warning: the dead letters of {label(node)} are lost, because {address!r} does not exist and --strict creates "
                f"no queue: add --queue {address}"
            )


async def _back_up(store: amqp.SqliteStore, path: str, wishes: AsyncIterable[int]) -> None:
    """Write a backup of the store at each signal."""
    async for _ in wishes:
        try:
            await store.backup(path)
        except amqp.StoreError as failure:
            say(f"amqp10: {failure}")
        else:
            say(f"amqp10: backup written to {path}")


def _serving(listeners: Sequence[amqp.Listener]) -> str:
    return f"serving {', '.join(listener.url for listener in listeners)}"


def _collect_rarely() -> None:
    """Run full garbage collections rarely, and exempt the program's own objects.

    A full collection with a thousand connections takes a quarter of a second, in which no task runs, and peers that dial again and
    again would cause one every other second. A connection that ends before it has links leaves no cycles to collect. This function
    changes the collector of the whole process, which this command owns.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


class _Reload:
    """Reads the options and their files again at each SIGHUP.

    If a file cannot be read or is not valid, everything stays as it is.
    """

    def __init__(
        self,
        options: ServeOptions,
        read_again: Callable[[], ServeOptions] | None,
        hangups: AsyncIterable[int],
        at_once: bool,
        manager: ServiceManager,
    ) -> None:
        self._options = options
        self._read_again = read_again
        self._hangups = hangups
        self._at_once = at_once
        self._manager = manager

    async def run(
        self, container: amqp.Container, sasl: amqp.sasl.Server, context: amqp.tls.ServerContext | None
    ) -> None:
        """Reload at each SIGHUP, and now if one has arrived while the options were read."""
        if self._at_once:
            await self._once(container, sasl, context)
        async for _ in self._hangups:
            with self._manager.reloading(_serving(container.listeners)):
                await self._once(container, sasl, context)

    async def _once(
        self, container: amqp.Container, sasl: amqp.sasl.Server, context: amqp.tls.ServerContext | None
    ) -> None:
        old = self._options
        try:
            new = await trio.to_thread.run_sync(self._read)
            logins = _sasl(replace(new, tls_client_ca=old.tls_client_ca))
            use_files = None if context is None else context.read_again()
            lines = apply(container, old, new)
        except (CommandError, OSError, amqp.AmqpError, click.UsageError) as failure:
            why = failure.message if isinstance(failure, click.UsageError) else explain(failure) or failure
            say(f"amqp10: the old users, certificates and authorities stay in use: {why}")
            return
        if use_files is not None:
            use_files()
        sasl.replace_by(logins)
        self._options = new
        say("amqp10: users, certificates and authorities were read again")
        for line in lines if self._read_again is not None or old != new else ():
            say(f"amqp10: {line}")

    def _read(self) -> ServeOptions:
        if self._read_again is not None:
            return self._read_again()
        rights = self._options.rights
        if rights is None or rights.file is None:
            return self._options
        return replace(self._options, rights=rights_of_file(rights.file))


def _sasl(options: ServeOptions) -> amqp.sasl.Server:
    """Return the accepted log-ins; with ``--tls-client-ca``, EXTERNAL too."""
    external = [] if options.tls_client_ca is None else [amqp.sasl.ExternalServer(owner_of)]
    if options.users_file is not None:
        users = load_users(options.users_file)
        return amqp.sasl.Server(credentials=users, verify=users.verify, mechanisms=external)
    if options.users:
        return amqp.sasl.Server(users=options.users, mechanisms=external)
    return amqp.sasl.Server(mechanisms=external, anonymous=True)


def owner_of(certificate: amqp.tls.Certificate) -> str | None:
    """Return the user of a certificate: its common name, or its only alternative name."""
    if certificate.common_name is not None:
        return certificate.common_name
    names = [name for kind in ("email", "URI", "DNS") for name in certificate.alternative_names(kind)]
    return names[0] if len(names) == 1 else None


def _tls(options: ServeOptions) -> amqp.tls.ServerContext | None:
    if options.tls_cert is None:
        return None
    try:
        return amqp.tls.server_context(options.tls_cert, options.tls_key, client_cafile=options.tls_client_ca)
    except ssl.SSLError as failure:
        files = ", ".join(filter(None, (options.tls_cert, options.tls_key, options.tls_client_ca)))
        raise CommandError(
            f"these files are not a matching certificate, key and authorities: {files} ({failure})"
        ) from None
