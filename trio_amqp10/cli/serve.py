"""``amqp10 serve``: a container of queues and topics, durable with a store."""

from __future__ import annotations

import gc
import signal
import ssl
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import trio

import trio_amqp10 as amqp

from .command_runner import CommandError, Interrupts, explain, say, write_out
from .passwd import load_users

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence

__all__ = ["ServeOptions", "owner_of", "serve"]

_PATIENCE: Final = 5.0
"""Seconds that deliveries in flight have to be settled once we are to stop."""

_COLLECTIONS: Final = (50_000, 1, 20)
"""Thresholds of the garbage collector's three generations: new objects, collections of these, and collections of the middle one.

Where connections come and go, as many objects are made as are freed, and all of them are in use: a collection after each 700, as
Python has it, takes 10 to 20 ms five times a second and frees nothing. A connection in its handshake has about 100 objects; a few
hundred clients that connect together and are disconnected together therefore cause no collection.
"""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What the command line said."""

    urls: Sequence[str]
    queues: Sequence[tuple[str, dict[str, Any]]] = ()
    topics: Sequence[str] = ()
    users: dict[str, str] = field(default_factory=dict[str, str])
    users_file: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None
    strict: bool = False
    management: bool = False
    dialects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])
    allow_plaintext_password: bool = False
    store: str | None = None
    quotas: amqp.Quotas | None = None
    max_failures: int | None = 10
    memory_limit: int | Literal["auto"] | None = "auto"
    max_partial: int | None = 256 * 1024 * 1024
    refuse_durable: bool = False


async def serve(options: ServeOptions, interrupts: Interrupts) -> None:
    """Serve until a signal comes, then finish what is in flight.

    Raises:
        CommandError: the file of users is none, or those for TLS are not.
        OSError: it is not possible to listen there, or to read a file.
        StoreError: the store cannot be used.
    """
    if options.store is None:
        await _serve(options, interrupts, None)
        return
    with amqp.SqliteStore(options.store) as store:
        await _serve(options, interrupts, store)


async def _serve(options: ServeOptions, interrupts: Interrupts, store: amqp.SqliteStore | None) -> None:
    container = amqp.Container(
        "amqp10",
        strict=options.strict,
        store=store,
        quotas=options.quotas,
        memory_limit=options.memory_limit,
        refuse_durable=options.refuse_durable,
        keeps_all=store is not None,
    )
    for queue, rules in options.queues:
        container.add_queue(queue, **rules)
    for topic in options.topics:
        container.add_topic(topic)
    if options.management:
        container.add_management()
        if not (options.users or options.users_file or options.tls_client_ca):
            say(
                "amqp10: --management without --user, --users or --tls-client-ca: "
                "whoever can connect may delete every queue"
            )
    sasl, context = _sasl(options), _tls(options)
    start = partial(
        container.serve,
        *options.urls,
        sasl=sasl,
        ssl_context=context,
        allow_plaintext_password=options.allow_plaintext_password,
        max_failures=options.max_failures,
        max_partial_octets=options.max_partial,
        dialects=options.dialects,
    )
    # Without a file, a hangup is what it is to every program.
    if (options.users_file is None and context is None) or not hasattr(signal, "SIGHUP"):
        await _until_interrupted(container, start, interrupts)
        return
    with trio.open_signal_receiver(signal.SIGHUP) as hangups:
        reload = partial(_reload, hangups, options, sasl, context)
        await _until_interrupted(container, start, interrupts, reload)


async def _until_interrupted(
    container: amqp.Container,
    start: Any,
    interrupts: Interrupts,
    reload: Callable[[], Awaitable[None]] = trio.sleep_forever,
) -> None:
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(start)
        _collect_rarely()
        nursery.start_soon(reload)
        with interrupts.here():  # a reader of the line may send a signal at once
            await write_out("".join(f"listening {listener.url}\n" for listener in listeners).encode())
            await trio.sleep_forever()
        say("amqp10: finishing the deliveries in flight; a second signal stops at once")
        if not await container.finish(_PATIENCE):
            say(f"amqp10: gave up on deliveries that were still in flight after {_PATIENCE:g} s")
        nursery.cancel_scope.cancel()


def _collect_rarely() -> None:
    """Have the garbage collector look at all objects seldom, and at those of the program itself never again.

    To look at all objects of a thousand connections takes a quarter of a second, in which nothing else runs, and peers that
    dial again and again would cause it every other second. A connection that ends before it has links leaves it nothing to find.
    The process is this command's alone, or this would not be its business.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)


async def _reload(
    hangups: AsyncIterable[int],
    options: ServeOptions,
    sasl: amqp.sasl.Server,
    context: amqp.tls.ServerContext | None,
) -> None:
    """Read the files of users, certificates and authorities again at each hangup; what cannot be read leaves all as it was."""
    async for _ in hangups:
        try:
            read = _sasl(options)
            if context is not None:
                context.reload()
        except (CommandError, OSError) as failure:
            say(f"amqp10: nothing was read again: {explain(failure) or failure}")
        else:
            sasl.replace_by(read)
            say("amqp10: users, certificates and authorities were read again")


def _sasl(options: ServeOptions) -> amqp.sasl.Server:
    """Whom to let in. Clients' certificates say who they are, where those are asked for."""
    external = [] if options.tls_client_ca is None else [amqp.sasl.ExternalServer(owner_of)]
    if options.users_file is not None:
        users = load_users(options.users_file)
        return amqp.sasl.Server(credentials=users, verify=users.verify, mechanisms=external)
    if options.users:
        return amqp.sasl.Server(users=options.users, mechanisms=external)
    return amqp.sasl.Server(mechanisms=external, anonymous=True)


def owner_of(certificate: amqp.tls.Certificate) -> str | None:
    """Whose certificate it is: the common name of its subject, or else its one alternative name."""
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
            f"no certificate, key and authorities that go together: {files} ({failure})"
        ) from None
