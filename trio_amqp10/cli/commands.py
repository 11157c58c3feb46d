"""The commands of ``amqp10`` and their options.

Knows click, and how a URL with an address is read. Each command imports what does its work when it is run: what is
imported here is imported at each start, for each completion too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.urls import Url, parse_url, schemes_of, split_url
from trio_amqp10.version import __version__

from .amqp091_target import amqp091_options, is_091
from .dial_options import DialOptions, dialling, tls_dialling
from .lazy_commands import LazyGroup, RulesCommand, parsed_by, run
from .option_types import COUNT, FILE, FOLDER, PRIORITY, SECONDS, LocalPath, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.peer.link_options import Guarantee

    from .amqp091_target import Route
    from .receive import Undecodable

__all__ = ["amqp10", "as_pair", "as_target"]

_GUARANTEES: Final = ("at-most-once", "at-least-once", "exactly-once")


def as_target(value: str) -> tuple[str, str]:
    """``URL/ADDRESS`` as (URL, address).

    Raises:
        click.BadParameter: it names no node, or is of another protocol.
    """
    if is_091(value):
        raise click.BadParameter("that is a URL of AMQP 0-9-1, which has no browsers; use amqp:// here")
    url = _parsed(value)
    where, address = split_url(value)
    if address is None:
        example = f"{url}?address=NODE" if url.path else f"{url}/NODE"
        raise click.BadParameter(f"{url} names no node; append its address, as in {example}")
    return where, address


def _as_listen_url(value: str) -> str:
    """Where to listen: a URL of AMQP 1.0, or of 0-9-1."""
    _parsed(value, schemes_of("amqp091"))
    return value


def _as_proxy_url(value: str) -> str:
    """Where octets pass as they are, on TCP, TLS or a Unix socket: no scheme of it changes any but of WebSockets and TLS by header."""
    url = _parsed(value, schemes_of("amqp091"))
    if url.scheme not in ("amqp", "amqps", "amqp+unix"):
        raise click.BadParameter(
            f"{url} is not passed on octet for octet; give amqp://, amqps:// or amqp+unix://"
        )
    if url.username is not None or url.address is not None:
        raise click.BadParameter(
            f"{url} is enough: credentials and address come from whoever dials the proxy"
        )
    return value


def _as_management_url(value: str) -> str:
    from .dial_management import management_url

    try:
        management_url(value)
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None
    return value


def _parsed(value: str, schemes: Mapping[str, str] | None = None) -> Url:
    try:
        return parse_url(value, schemes)
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None


def as_pair(value: str) -> tuple[str, str]:
    """``NAME=VALUE`` as (name, value).

    Raises:
        click.BadParameter: it is not of that form.
    """
    return _pair(value, "=", "NAME=VALUE")


def _as_user(value: str) -> tuple[str, str]:
    return _pair(value, ":", "NAME:PASSWORD")


def _pair(value: str, separator: str, form: str) -> tuple[str, str]:
    name, found, rest = value.partition(separator)
    if not found or not name:
        raise click.BadParameter(f"{name!r} is not of the form {form}")
    return name, rest


_target = click.argument("target", metavar="URL/ADDRESS", type=as_target)
_guarantee = click.option(
    "--guarantee", type=click.Choice(_GUARANTEES), default="at-least-once", show_default=True
)
_filter = click.option(
    "--filter",
    "selector",
    metavar="SELECTOR",
    help="Only messages for which this selector of JMS is true, as in \"colour = 'red' AND JMSPriority > 5\"; fails where the peer "
    "does not filter.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print the whole message as one JSON object.")


@click.group(
    cls=LazyGroup,
    lazy={
        "passwd": "secret_commands:passwd_command",
        "certs": "secret_commands:certs_command",
        "spool": "spool_command:spool_command",
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="amqp10")
def amqp10() -> None:
    """AMQP 1.0 and 0-9-1 from the command line.

    Results go to stdout and everything else to stderr; the exit code is 0 only when all that was
    asked for happened.
    """


@amqp10.command("demo")
@click.option("--frames", is_flag=True, help="Show every frame that crosses the wire.")
@click.option(
    "--dialect",
    type=click.Choice(["1.0", "all"]),
    default="1.0",
    show_default=True,
    help="all: send one message through every protocol that a container serves.",
)
def demo_command(frames: bool, dialect: str) -> None:
    """A container, a sender and a receiver in one process, with real messages between them."""
    from .demo import demo
    from .demo_round import demo_round

    run(partial(demo_round if dialect == "all" else demo, frames))


@amqp10.command("serve", cls=RulesCommand)
@click.option(
    "--listen",
    "urls",
    metavar="URL",
    type=_as_listen_url,
    multiple=True,
    help="The URL to listen on; port 0 chooses a free port. amqp091:// serves AMQP 0-9-1 only. May be repeated.  "
    "[default: amqp://127.0.0.1:5672]",
)
@click.option(
    "--allow-plaintext-password",
    is_flag=True,
    help="Accept passwords over connections that are not encrypted, also from other machines.",
)
@click.option(
    "--queue",
    "queues",
    metavar="NAME[,RULE=VALUE...]",
    type=parsed_by("parse_queue"),
    multiple=True,
    help="A queue and its rules, as in orders,max-length=1000,dead-letter=dead; the rules are below. May be repeated.",
)
@click.option("--topic", "topics", metavar="NAME", multiple=True, help="A topic. May be repeated.")
@click.option(
    "--store",
    metavar="FILE",
    type=LocalPath(dir_okay=False),
    help="Keep all messages in this file, which is created if necessary; of a queue with durable=false only those that are durable.",
)
@click.option(
    "--user",
    "users",
    metavar="NAME:PASSWORD",
    type=_as_user,
    multiple=True,
    help="A user who may connect; without any, everyone may. May be repeated.",
)
@click.option(
    "--users",
    "users_file",
    metavar="FILE",
    type=FILE,
    help='Those who may connect, with their keys, as "amqp10 passwd" makes it; read again on SIGHUP.',
)
@click.option(
    "--tls-cert",
    metavar="FILE",
    type=FILE,
    help="The server certificate, for amqps:// and other URLs with TLS; read again on SIGHUP.",
)
@click.option(
    "--tls-key", metavar="FILE", type=FILE, help="The key of the certificate, if it is not in the same file."
)
@click.option(
    "--tls-client-ca",
    metavar="FILE",
    type=FILE,
    help="Require client certificates from these authorities; EXTERNAL uses the name in the certificate.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse unknown addresses; without it, a queue is created on first use.",
)
@click.option(
    "--quota",
    "quotas",
    metavar="[USER:]NAME=VALUE",
    type=parsed_by("parse_quota"),
    multiple=True,
    help="A limit for each identity or node, as in links=100 or ada:connections=5. May be repeated.",
)
@click.option(
    "--max-failures",
    metavar="N",
    type=parsed_by("parse_limit"),
    default="10",
    show_default=True,
    help="Failed log-ins of a user from one host before the user is blocked there; a host is blocked after ten times as many. Or none.",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    type=parsed_by("parse_memory_limit"),
    default="auto",
    show_default=True,
    help="Limit for messages in memory, as in 512MiB; auto is 40 % of the memory available to the process; or none.",
)
@click.option(
    "--max-partial",
    metavar="SIZE",
    type=parsed_by("parse_size"),
    default="256MiB",
    show_default=True,
    help="Limit for incomplete messages, on all connections of all protocols together, as in 64MiB; or none.",
)
@click.option(
    "--refuse-durable",
    is_flag=True,
    help="Without --store, reject durable messages instead of keeping them in memory.",
)
@click.option("--management", is_flag=True, help="Let peers create and delete nodes, at $management.")
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="NAME[,OPTION=VALUE...]",
    type=parsed_by("parse_dialect"),
    help="Serve this protocol as well as AMQP 1.0, on the same URLs, as in 0-9-1,heartbeat=30; or all. May be repeated.",
)
def serve_command(
    urls: tuple[str, ...],
    allow_plaintext_password: bool,
    queues: tuple[tuple[str, dict[str, Any]], ...],
    topics: tuple[str, ...],
    users: tuple[tuple[str, str], ...],
    users_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    strict: bool,
    quotas: tuple[tuple[str | None, str, int], ...],
    max_failures: int | None,
    memory_limit: int | Literal["auto"] | None,
    max_partial: int | None,
    refuse_durable: bool,
    management: bool,
    dialects: tuple[dict[str, dict[str, Any]], ...],
    store: str | None,
) -> None:
    """A container of queues and topics, in memory; with --store, all messages in queues outlive it.

    Prints "listening URL" for each listener once it is ready. SIGTERM and SIGINT finish the
    deliveries in flight, for at most 5 seconds.
    """
    from .node_rules import quotas_of
    from .serve import ServeOptions, serve

    if users and users_file is not None:
        raise click.UsageError("--user and --users exclude each other.")
    for queue, rules in queues:
        if rules.get("durable") and store is None:
            raise click.UsageError(f"--queue {queue},durable=true needs --store.")
    if tls_cert is None and (tls_key is not None or tls_client_ca is not None):
        raise click.UsageError("--tls-key and --tls-client-ca need --tls-cert.")
    options = ServeOptions(
        urls=urls or ("amqp://127.0.0.1:5672",),
        queues=queues,
        topics=topics,
        users=dict(users),
        users_file=users_file,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_client_ca=tls_client_ca,
        strict=strict,
        management=management,
        dialects={name: options for each in dialects for name, options in each.items()},
        allow_plaintext_password=allow_plaintext_password,
        store=store,
        quotas=quotas_of(quotas),
        max_failures=max_failures,
        memory_limit=memory_limit,
        max_partial=max_partial,
        refuse_durable=refuse_durable,
    )
    run(partial(serve, options))


@amqp10.command("send")
@amqp091_options(as_target, publishes=True)
@click.option("--body", metavar="TEXT", help="Send one message with this body.")
@click.option(
    "--file",
    type=LocalPath(exists=True, dir_okay=False, readable=True, allow_dash=True),
    help="One message for each line of this file; without it and --body, of stdin.",
)
@click.option("--count", type=COUNT, help="Send the body this many times, or this many lines.")
@click.option("--binary", is_flag=True, help="Bodies are data sections, not strings.")
@click.option("--durable", is_flag=True, help="The messages must survive the loss of a broker.")
@click.option(
    "--property",
    "properties",
    metavar="NAME=VALUE",
    type=as_pair,
    multiple=True,
    help="An application property, as a string. May be repeated.",
)
@click.option("--subject", metavar="TEXT", help="The subject of the messages.")
@click.option("--ttl", metavar="SECONDS", type=SECONDS, help="Time to live of the messages.")
@click.option(
    "--priority",
    type=PRIORITY,
    help="The priority; higher is delivered first, the default is 4.",
)
@click.option("--message-id", metavar="TEXT", help="The id of the message; for one message only.")
@click.option("--correlation-id", metavar="TEXT", help="The id of the message that this one answers.")
@click.option("--reply-to", metavar="ADDRESS", help="The address for replies.")
@click.option(
    "--content-type", metavar="TYPE", help="The media type of the bodies, as in text/csv; for --binary."
)
@_guarantee
@dialling
def send_command(
    target: tuple[str, str],
    route: Route | None,
    body: str | None,
    file: str | None,
    count: int | None,
    binary: bool,
    durable: bool,
    properties: tuple[tuple[str, str], ...],
    subject: str | None,
    ttl: float | None,
    priority: int | None,
    message_id: str | None,
    correlation_id: str | None,
    reply_to: str | None,
    content_type: str | None,
    guarantee: Guarantee,
    dial: DialOptions,
) -> None:
    """Send messages to a node; prints "sent N" when N are accepted.

    In AMQP 0-9-1: publish messages to a queue, or to an exchange; prints "sent N" when N are confirmed.
    """
    from .send import SendOptions, send

    if body is not None and file is not None:
        raise click.UsageError("--body and --file exclude each other.")
    if message_id is not None and (body is None or count not in (None, 1)):
        raise click.UsageError("--message-id names one message: give its --body, and no --count.")
    options = SendOptions(
        url=target[0],
        address=target[1],
        body=body,
        file=None if file == "-" else file,
        count=count,
        guarantee=guarantee,
        binary=binary,
        durable=durable,
        properties=dict(properties),
        subject=subject,
        ttl=ttl,
        priority=priority,
        message_id=message_id,
        correlation_id=correlation_id,
        reply_to=reply_to,
        content_type=content_type,
        dial=dial,
    )
    if route is not None and subject is not None:
        raise click.UsageError("--subject is of AMQP 1.0: in AMQP 0-9-1 there is --routing-key.")
    if route is None:
        run(partial(send, options))
    from . import amqp091_commands

    run(partial(amqp091_commands.send, options, route))


@amqp10.command("receive")
@amqp091_options(as_target)
@click.option("--count", type=COUNT, help="Receive this many messages; without it, until interrupted.")
@click.option(
    "--timeout", metavar="SECONDS", type=SECONDS, help="Stop when no message has come for this time."
)
@_json
@_filter
@click.option(
    "--credit",
    type=COUNT,
    help="How many messages may wait to be printed, at most; in AMQP 0-9-1 the prefetch.  [default: 1000]",
)
@_guarantee
@click.option(
    "--undecodable",
    type=click.Choice(["release", "reject", "raw"]),
    default="release",
    show_default=True,
    help="What happens to a message that cannot be decoded. release: at the end it goes back to its queue; reject: it is "
    "rejected, so that a queue with a dead-letter address moves it there; raw: its octets are printed as they are, and it is accepted.",
)
@dialling
def receive_command(
    target: tuple[str, str],
    route: Route | None,
    count: int | None,
    timeout: float | None,
    as_json: bool,
    selector: str | None,
    credit: int | None,
    guarantee: Guarantee,
    undecodable: Undecodable,
    dial: DialOptions,
) -> None:
    """Print the bodies of messages, one a line, and accept them.

    Data is printed as its octets, strings as UTF-8, anything else as JSON. A message that cannot be decoded is reported on
    stderr with its delivery-tag and message-format.
    """
    from .receive import ReceiveOptions, receive

    options = ReceiveOptions(
        url=target[0],
        address=target[1],
        count=count,
        timeout=timeout,
        json=as_json,
        selector=selector,
        credit=credit,
        guarantee=guarantee,
        undecodable=undecodable,
        dial=dial,
    )
    if route is not None and undecodable != "release":
        raise click.UsageError(
            "--undecodable is of AMQP 1.0: in AMQP 0-9-1 bodies are octets, and need no decoding."
        )
    if route is not None and selector is not None:
        raise click.UsageError("--filter is of AMQP 1.0: in AMQP 0-9-1 a queue gives what is bound to it.")
    if route is None:
        run(partial(receive, options))
    from . import amqp091_commands

    run(partial(amqp091_commands.receive, options, route))


@amqp10.command("browse")
@_target
@click.option("--count", type=COUNT, help="Print this many messages; without it, all of them.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    default=10.0,
    show_default=True,
    help="How long to wait for the peer's answer that there are no more messages.",
)
@_json
@_filter
@click.option(
    "--undecodable",
    type=click.Choice(["release", "raw"]),
    default="release",
    show_default=True,
    help="Whether a message that cannot be decoded is only reported, or its octets are printed as they are.",
)
@dialling
def browse_command(
    target: tuple[str, str],
    count: int | None,
    timeout: float,
    as_json: bool,
    selector: str | None,
    undecodable: Undecodable,
    dial: DialOptions,
) -> None:
    """Print the messages that are at a node now, and leave them there."""
    from .receive import ReceiveOptions, browse

    options = ReceiveOptions(
        url=target[0],
        address=target[1],
        count=count,
        timeout=timeout,
        json=as_json,
        selector=selector,
        undecodable=undecodable,
        dial=dial,
    )
    run(partial(browse, options))


@amqp10.command("request")
@amqp091_options(as_target, publishes=True)
@click.option("--body", metavar="TEXT", required=True, help="The body of the request.")
@click.option("--timeout", metavar="SECONDS", type=SECONDS, default=30.0, show_default=True)
@_json
@dialling
def request_command(
    target: tuple[str, str], route: Route | None, body: str, timeout: float, as_json: bool, dial: DialOptions
) -> None:
    """Send a request to a node, and print the reply."""
    from .request import RequestOptions, request

    options = RequestOptions(
        url=target[0],
        address=target[1],
        body=body,
        timeout=timeout,
        json=as_json,
        dial=dial,
    )
    if route is None:
        run(partial(request, options))
    from . import amqp091_commands

    run(partial(amqp091_commands.request, options, route))


@amqp10.command("top")
@click.argument("url", metavar="[URL]", type=_as_management_url, required=False)
@click.option(
    "--spool",
    metavar="FOLDER",
    type=FOLDER,
    help="Watch the spool of a Spark query instead of a container.",
)
@click.option("--interval", metavar="SECONDS", type=SECONDS, default=1.0, show_default=True)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    help="With --spool: stop when its receivers have been silent for this time.",
)
@click.option("--once", is_flag=True, help="Print once, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line, each time.")
@dialling
def top_command(
    url: str | None,
    spool: str | None,
    interval: float,
    timeout: float | None,
    once: bool,
    as_json: bool,
    dial: DialOptions,
) -> None:
    """Watch the nodes, connections and links of a container, and how fast messages move.

    Needs $management there, as "amqp10 serve --management" has it; of a peer without it, shows what
    that says of itself. It is asked for in AMQP 1.0: amqp091:// stands for the same host and port. Ctrl-C ends it.

    With --spool in place of a URL: what a query of Spark has received, and what waits in its spool.
    """
    if (url is None) == (spool is None):
        raise click.UsageError("what is to be watched? give either a URL or --spool FOLDER")
    if spool is not None:
        from .top_spool import TopSpoolOptions, top_spool

        watched = TopSpoolOptions(folder=spool, interval=interval, once=once, json=as_json, timeout=timeout)
        run(partial(top_spool, watched))
    if timeout is not None:
        raise click.UsageError("--timeout goes with --spool")
    from .top import TopOptions, top

    run(partial(top, TopOptions(url=str(url), interval=interval, once=once, json=as_json, dial=dial)))


@amqp10.command("disconnect")
@click.argument("url", metavar="URL", type=_as_management_url)
@click.argument("identities", metavar="IDENTITY...", nargs=-1, required=True)
@dialling
def disconnect_command(url: str, identities: tuple[str, ...], dial: DialOptions) -> None:
    """Close connections of a container, by the identities that "amqp10 top" shows.

    Needs $management there, as "amqp10 serve --management" has it. The peers see amqp:connection:forced.
    amqp091:// stands for the same host and port in AMQP 1.0.
    """
    from .disconnect import DisconnectOptions, disconnect

    run(partial(disconnect, DisconnectOptions(url=url, identities=identities, dial=dial)))


@amqp10.command("bench")
@amqp091_options(as_target, required=False)
@click.option("--count", type=COUNT, default=100_000, show_default=True, help="Messages.")
@click.option("--size", type=Whole(min=8), default=100, show_default=True, help="Octets in each body.")
@click.option(
    "--presettled",
    is_flag=True,
    help="At most once: no outcomes; in AMQP 0-9-1 no confirms and no acknowledgements.",
)
@click.option(
    "--credit",
    type=COUNT,
    default=1000,
    show_default=True,
    help="The credit of the receiver; in AMQP 0-9-1 its prefetch, and the number of unconfirmed publishes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def bench_command(
    target: tuple[str, str] | None,
    route: Route | None,
    count: int,
    size: int,
    presettled: bool,
    credit: int,
    as_json: bool,
) -> None:
    """Measure throughput and latency against a peer; without one, between two processes here.

    At a peer, the node has to be an empty queue. AMQP 0-9-1 is measured at a server of it.
    """
    from .bench import BenchOptions, bench

    options = BenchOptions(
        url=target[0] if target else None,
        address=target[1] if target else "bench",
        count=count,
        size=size,
        presettled=presettled,
        credit=credit,
        json=as_json,
        dialect="1.0" if route is None else "0-9-1",
    )
    run(partial(bench, options))


@amqp10.command("trace")
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    type=LocalPath(exists=True, dir_okay=False, readable=True, allow_dash=True),
)
@click.option(
    "--html",
    metavar="OUT",
    type=LocalPath(dir_okay=False, allow_dash=True),
    help="Write a self-contained HTML page to this file, with a sequence diagram of frames, deliveries, credit and errors; - is stdout.",
)
@click.option("--octets", is_flag=True, help="Show the octets too.")
@click.option(
    "--listen",
    metavar="URL",
    type=_as_proxy_url,
    help="Run a proxy: listen on this URL, pass everything on to --to, and show it.",
)
@click.option(
    "--to", metavar="URL", type=_as_proxy_url, help="The URL that --listen passes everything on to."
)
@click.option(
    "--listen-cert", metavar="FILE", type=FILE, help="The server certificate, for amqps:// at --listen."
)
@click.option(
    "--listen-key",
    metavar="FILE",
    type=FILE,
    help="The key of the certificate, if it is not in the same file.",
)
@tls_dialling
def trace_command(
    files: tuple[str, ...],
    html: str | None,
    octets: bool,
    listen: str | None,
    to: str | None,
    listen_cert: str | None,
    listen_key: str | None,
    dial: DialOptions,
) -> None:
    """Decode conversations: frame logs, pcap or pcapng captures, hex, or raw octets; - is stdin.

    Of a capture, the conversations that begin with a protocol header. Secrets of SASL are not shown. With --listen and
    --to, show the frames of those who dial one as they pass to the other, until Ctrl-C: --tls-ca, --tls-cert, --tls-key and
    --insecure are for --to.
    """
    if bool(files) is (listen is not None):
        raise click.UsageError("Give files to decode, or --listen and --to to watch what passes.")
    if (listen is None) is not (to is None):
        raise click.UsageError("--listen and --to go together.")
    if listen is None or to is None:
        from .trace import TraceOptions, trace

        if listen_cert is not None or listen_key is not None or dial != DialOptions():
            raise click.UsageError("Certificates, keys and trust are for --listen and --to.")
        run(partial(trace, TraceOptions(files=files, html=html, octets=octets)))
    from .trace_proxy import ProxyOptions, trace_proxy

    if html == "-":
        raise click.UsageError("The frames are on stdout: give --html a file.")
    if listen_key is not None and listen_cert is None:
        raise click.UsageError("--listen-key needs --listen-cert.")
    options = ProxyOptions(
        listen=listen,
        to=to,
        html=html,
        octets=octets,
        listen_cert=listen_cert,
        listen_key=listen_key,
        dial=dial,
    )
    run(partial(trace_proxy, options))


@amqp10.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print what completes commands and options in a shell.

    For bash: eval "$(amqp10 completion bash)" in ~/.bashrc, and likewise in ~/.zshrc; for fish: amqp10 completion fish >
    ~/.config/fish/completions/amqp10.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click has these three
    click.echo(made.source_template % made(amqp10, {}, "amqp10", "_AMQP10_COMPLETE").source_vars())
