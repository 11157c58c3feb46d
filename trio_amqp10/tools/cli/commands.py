"""The commands of ``amqp10`` and their options.

Each command imports its implementation when it runs: an import at the top of this module slows every start, and
every shell completion. Knows click, and the syntax of a URL with an address.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final

import click

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.version import __version__
from trio_amqp10.net.urls import Url, hide_login, parse_url, schemes_of, split_url

from .dial_options import DialOptions, completed, dialling, tls_dialling, wait_option
from .lazy_commands import LazyGroup, run
from .option_types import COUNT, FILE, PRIORITY, SECONDS, LocalPath, Whole
from .server_defaults import default_address, default_url, is_091, with_login
from .target_arguments import amqp091_options, management_place, no_scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .target_arguments import Route

_GUARANTEES: Final = ("at-most-once", "at-least-once", "exactly-once")


def as_target(value: str) -> tuple[str, str]:
    """Split ``URL/ADDRESS`` into the URL and the address.

    An address alone is at the server of the context or of ``AMQP10_URL``, whose user and password are added.

    Raises:
        click.BadParameter: the URL names no node, or is of another protocol.
    """
    found = default_address(value)
    if found is not None and not is_091(found[0]):
        return with_login(found[0]), value
    value = value if found is None else found[0]
    if "://" not in value:
        raise no_scheme(value, f"/{value}")
    if is_091(value):
        raise click.BadParameter(
            f"{hide_login(value)} is a URL of AMQP 0-9-1, which this command cannot use; give an amqp:// URL"
        )
    url = _parsed(value)
    where, address = split_url(value)
    if address is None:
        example = f"{url}?address=NODE" if url.path else f"{url}/NODE"
        raise click.BadParameter(f"{url} names no node; append an address, as in {example}")
    return with_login(where), address


def _as_proxy_url(value: str) -> str:
    """Check a URL of the proxy, which copies octets unchanged.

    Only TCP, TLS and Unix sockets are possible. For WebSockets, or an upgrade to TLS by a protocol header, the proxy would have
    to change octets.
    """
    url = _parsed(value, schemes_of("amqp091"))
    if url.scheme not in ("amqp", "amqps", "amqp+unix"):
        raise click.BadParameter(
            f"the proxy cannot use {url}, which it could not copy octet for octet; give amqp://, amqps:// or amqp+unix://"
        )
    if url.username is not None or url.address is not None:
        raise click.BadParameter(
            f"give only {url}: the clients of the proxy send their own credentials and addresses"
        )
    return value


def _url_and_identities(command: Callable[..., None]) -> Callable[..., None]:
    """Split words into a URL, perhaps of the context, and identities."""

    @wraps(command)
    def with_url(words: tuple[str, ...], **others: Any) -> None:
        known = None if "://" in words[0] else default_url()
        if known is not None:
            command(url=management_place(known), identities=words, **others)
            return
        if len(words) < 2:
            raise click.MissingParameter(param_hint="'IDENTITY...'", param_type="argument")
        try:
            url = management_place(words[0])
        except click.BadParameter as wrong:
            wrong.param_hint = "'URL'"
            raise
        command(url=url, identities=words[1:], **others)

    return with_url


def _parsed(value: str, schemes: Mapping[str, str] | None = None) -> Url:
    try:
        return parse_url(value, schemes)
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None


def as_pair(value: str) -> tuple[str, str]:
    """Split ``NAME=VALUE`` into the name and the value.

    Raises:
        click.BadParameter: there is no ``=``, or no name before it.
    """
    return _pair(value, "=", "NAME=VALUE")


def _as_property(value: str) -> tuple[str, Any]:
    """Split ``NAME[:TYPE]=VALUE`` into the name and the value of that type.

    Raises:
        click.BadParameter: as ``as_pair``; or the text is not a value of the type.
    """
    name, text = _pair(value, "=", "NAME=VALUE or NAME:TYPE=VALUE")
    bare, colon, kind = name.rpartition(":")
    if not colon or not bare:
        return name, text
    from .json_types import TYPES, parse_scalar
    from .toml_file import nearest

    if kind not in TYPES:
        close = nearest(kind, TYPES)
        if "did you mean" in close:
            raise click.BadParameter(f"{value!r}: {kind!r} is not a type{close}")
        return name, text  # a name with a colon
    try:
        return bare, parse_scalar(kind, text)
    except ValueError as wrong:
        raise click.BadParameter(f"{value!r}: {wrong}") from None


def _as_format(value: str) -> Any:
    from .message_format import parse_format

    try:
        return parse_format(value)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


def _pair(value: str, separator: str, form: str) -> tuple[str, str]:
    name, found, rest = value.partition(separator)
    if not found or not name:
        raise click.BadParameter(f"{name!r}: expected {form}")
    return name, rest


def _as_dict(
    _context: click.Context, _option: click.Parameter, pairs: tuple[tuple[str, Any], ...]
) -> dict[str, Any]:
    return dict(pairs)


_target = click.argument("target", metavar="URL/ADDRESS", type=as_target)
_guarantee = click.option(
    "--guarantee",
    type=click.Choice(_GUARANTEES),
    default="at-least-once",
    show_default=True,
    help="The guarantee of delivery.",
)
_filter = click.option(
    "--filter",
    "selector",
    metavar="SELECTOR",
    help="Receive only messages that match this JMS selector, as in \"colour = 'red' AND JMSPriority > 5\". Fails if the "
    "peer does not support filters.",
)
_json = click.option("--json", is_flag=True, help="Print the whole message as one JSON object.")


_raw = click.option(
    "--raw", "undecodable", flag_value="raw", help="Print the octets of a message that cannot be decoded."
)


@click.group(
    cls=LazyGroup,
    lazy={
        "passwd": "passwd_and_certs:passwd_command",
        "certs": "passwd_and_certs:certs_command",
        "emulate": "emulate_command:emulate_command",
        "reply": "reply_command:reply_command",
        "serve": "serve_command:serve_command",
        "spool": "spool_command:spool_command",
        "queue": "management_commands:queue_group",
        "topic": "management_commands:topic_group",
        "exchange": "management_commands:exchange_group",
        "binding": "management_commands:binding_group",
        "connection": "management_commands:connection_group",
        "user": "management_commands:user_group",
        "migrate": "migrate_command:migrate_command",
        "move": "management_commands:move_command",
        "redrive": "management_commands:redrive_command",
        "definitions": "management_commands:definitions_group",
    },
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="amqp10")
@click.option(
    "--context",
    "context_name",
    metavar="NAME",
    help="Use the server, user and password of this table in the file of AMQP10_CONFIG.",
)
def amqp10(context_name: str | None) -> None:
    """AMQP 1.0 and 0-9-1 from the command line.

    Results go to stdout, everything else to stderr. The exit code is 0 only if everything that you requested was done.

    The commands that dial take the server from AMQP10_URL, AMQP10_USER and AMQP10_PASSWORD too, or from a context: with these,
    an address is enough, as in "amqp10 send orders --body tea".
    """


@amqp10.command("demo")
@click.option("--frames", is_flag=True, help="Show every frame that crosses the wire.")
@click.option(
    "--dialect",
    type=click.Choice(["1.0", "all"]),
    default="1.0",
    show_default=True,
    help="1.0: use AMQP 1.0 only; all: send one message through every protocol of a container.",
)
def demo_command(frames: bool, dialect: str) -> None:
    """Run a container and a client in one process, and print each step."""
    from .demo import demo
    from .demo_round import demo_round

    run(partial(demo_round if dialect == "all" else demo, frames))


@amqp10.command("send")
@amqp091_options(as_target, publishes=True)
@click.option("--body", metavar="TEXT", help="Send one message with this body, or --count messages.")
@click.option(
    "--file",
    type=LocalPath(exists=True, dir_okay=False, readable=True, allow_dash=True),
    help="Send one message for each line of this file. Without --file and --body, for each line of stdin.",
)
@click.option(
    "--count",
    type=COUNT,
    help="Send the body this many times, or at most this many lines, and fail if there are fewer.",
)
@click.option("--binary", is_flag=True, help="Send bodies as data sections, not as strings.")
@click.option(
    "--json",
    is_flag=True,
    help='Read each line (or --body) as the JSON object of a message, as "amqp10 receive --json" writes it.',
)
@click.option(
    "--durable",
    is_flag=True,
    help="Mark the messages durable: they survive a restart of a broker that stores them.",
)
@click.option(
    "--property",
    "properties",
    metavar="NAME[:TYPE]=VALUE",
    type=_as_property,
    multiple=True,
    callback=_as_dict,
    help="Set this application property, a string, or a value of an AMQP type, as in n:int=5 or paid:boolean=true. May be repeated.",
)
@click.option("--subject", metavar="TEXT", help="Set the subject of the messages.")
@click.option("--ttl", metavar="SECONDS", type=SECONDS, help="Set the time to live of the messages.")
@click.option(
    "--priority",
    type=PRIORITY,
    help="Set the priority; higher is delivered first, and the default is 4.",
)
@click.option("--message-id", metavar="TEXT", help="Set the id of the message; for one message only.")
@click.option("--correlation-id", metavar="TEXT", help="Set the id of the message that this one answers.")
@click.option("--reply-to", metavar="ADDRESS", help="Set the address for replies.")
@click.option(
    "--content-type", metavar="TYPE", help="Set the media type of the bodies, as in text/csv; for --binary."
)
@_guarantee
@dialling
def send_command(target: tuple[str, str], route: Route | None, **given: Any) -> None:
    """Send messages to a node, and print "sent N" when N are accepted.

    In AMQP 0-9-1: publish messages to a queue or an exchange, and print "sent N" when N are confirmed.

    Example: amqp10 send amqp://localhost/orders --body tea --property table:int=7
    """
    from .send import SendOptions, send

    if given["body"] is not None and given["file"] is not None:
        raise click.UsageError("--body and --file exclude each other: use one of them.")
    if given["json"] and given["binary"]:
        raise click.UsageError("--json and --binary exclude each other: the JSON has the type of the body.")
    if given["message_id"] is not None and (given["body"] is None or given["count"] not in (None, 1)):
        raise click.UsageError("--message-id is for one message: give its --body, and no --count.")
    if given["file"] == "-":
        given["file"] = None
    options = SendOptions(url=target[0], address=target[1], **given)
    if route is not None and options.subject is not None:
        raise click.UsageError("AMQP 0-9-1 has no --subject: use --routing-key.")
    if route is None:
        run(partial(send, options))
    from . import amqp091_commands

    run(partial(amqp091_commands.send, options, route))


@amqp10.command("receive")
@amqp091_options(as_target)
@click.option(
    "--count", type=COUNT, help="Receive exactly this many messages. Without it, receive until interrupted."
)
@click.option(
    "--timeout", metavar="SECONDS", type=SECONDS, help="Stop when no message has arrived for this time."
)
@_json
@_filter
@click.option(
    "--credit",
    type=COUNT,
    help="Let at most this many messages wait to be printed; in AMQP 0-9-1 the prefetch.  [default: 1000]",
)
@_guarantee
@click.option("--until-empty", is_flag=True, help="End when the node has no more messages.")
@click.option(
    "--format",
    "template",
    metavar="TEXT",
    type=_as_format,
    help="Print this instead of the body: %b is the body, %s the subject, %i the message-id, %c the correlation-id, %r the "
    "reply-to, %g the group-id, %t the content-type, %p the priority, %d the delivery-count, %{NAME} an application property, %% "
    "a percent sign; \\n and \\t are a newline and a tab.",
)
@click.option(
    "--reject",
    is_flag=True,
    help="Reject the messages after they are printed, so that a queue with a dead-letter address moves them there.",
)
@click.option(
    "--undecodable",
    type=click.Choice(["release", "reject", "raw"]),
    default="release",
    show_default=True,
    help="What to do with a message that cannot be decoded. release: return it to its queue at the end; reject: reject it, so "
    "that a queue with a dead-letter address moves it there; raw: print its octets, and accept it.",
)
@_raw
@dialling
def receive_command(target: tuple[str, str], route: Route | None, **given: Any) -> None:
    """Print the bodies of messages, each on a line, and accept the messages.

    Data is printed as its octets, a string as UTF-8, any other body as JSON. A message that cannot be decoded is reported
    on stderr with its delivery-tag and message-format.

    Example: amqp10 receive amqp://localhost/orders --until-empty --format "%s %b"
    """
    from .receive import ReceiveOptions, receive

    if given["json"] and given["template"] is not None:
        raise click.UsageError("--json and --format exclude each other: use one of them.")
    if given["reject"] and given["guarantee"] == "at-most-once":
        raise click.UsageError(
            "--reject needs a guarantee other than at-most-once, which settles messages when they are sent."
        )
    options = ReceiveOptions(url=target[0], address=target[1], **given)
    if route is not None and options.undecodable != "release":
        raise click.UsageError(
            "AMQP 0-9-1 has no --undecodable: its bodies are octets, which are not decoded."
        )
    if route is not None and options.selector is not None:
        raise click.UsageError("AMQP 0-9-1 has no --filter: bind a queue to the messages to receive.")
    if route is None:
        run(partial(receive, options))
    from . import amqp091_commands

    run(partial(amqp091_commands.receive, options, route))


@amqp10.command("browse")
@_target
@click.option("--count", type=COUNT, help="Print this many messages. Without it, print all.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    default=10.0,
    show_default=True,
    help="Wait this long for the peer to report that there are no more messages.",
)
@_json
@_filter
@click.option(
    "--undecodable",
    type=click.Choice(["release", "raw"]),
    default="release",
    show_default=True,
    help="What to do with a message that cannot be decoded. release: only report it; raw: print its octets.",
)
@_raw
@dialling
def browse_command(target: tuple[str, str], **given: Any) -> None:
    """Print the messages in a node without removing them.

    A user who may manage a queue and not receive from it uses "amqp10 queue browse".
    """
    from .receive import ReceiveOptions, browse

    run(partial(browse, ReceiveOptions(url=target[0], address=target[1], **given)))


@amqp10.command("request")
@amqp091_options(as_target, publishes=True)
@click.option("--body", metavar="TEXT", help="The body of the request. Without it, all of stdin.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    default=30.0,
    show_default=True,
    help="Wait this long for the reply.",
)
@_json
@dialling
def request_command(target: tuple[str, str], route: Route | None, **given: Any) -> None:
    """Send a request to a node, and print the reply."""
    from .request import RequestOptions, request

    options = RequestOptions(url=target[0], address=target[1], **given)
    if route is None:
        run(partial(request, options))
    from . import amqp091_commands

    run(partial(amqp091_commands.request, options, route))


@amqp10.command("top")
@click.argument("url", metavar="[URL]", type=management_place, required=False)
@click.option(
    "--spool",
    metavar="FOLDER-OR-URI",
    help="Watch the spool of a Spark query instead of a container: a folder, or a URI as in s3://bucket/orders?region=eu-west-1.",
)
@click.option(
    "--interval",
    metavar="SECONDS",
    type=SECONDS,
    help="Update the figures this often: by default each second, or every 10 seconds for a URI.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    help="With --spool: stop when the receivers have been silent for this time.",
)
@click.option("--once", is_flag=True, help="Print the figures once, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, one object a line.")
@dialling
def top_command(
    url: str | None,
    spool: str | None,
    interval: float | None,
    timeout: float | None,
    once: bool,
    as_json: bool,
    dial: DialOptions,
) -> None:
    """Show the nodes, connections, links and message rates of a container.

    Updates the figures until Ctrl-C. The container needs $management, as in "amqp10 serve --management". If the peer has no
    $management, shows the peer's open frame and the counters of this connection. Uses AMQP 1.0: an amqp091:// URL stands for
    the same host and port.

    With --spool instead of a URL: show how many messages a Spark query has received, and how many wait in its spool.
    """
    if url is None and spool is None and (known := default_url()) is not None:
        url = management_place(known)
        dial = completed(dial, url)
    if (url is None) == (spool is None):
        raise click.UsageError("Give either a URL or --spool FOLDER-OR-URI to watch.")
    if spool is not None:
        from .top_spool import TopSpoolOptions, top_spool

        watched = TopSpoolOptions(where=spool, interval=interval, once=once, json=as_json, timeout=timeout)
        run(partial(top_spool, watched))
    if timeout is not None:
        raise click.UsageError("--timeout needs --spool.")
    from .top import TopOptions, top

    run(partial(top, TopOptions(url=str(url), interval=interval or 1.0, once=once, json=as_json, dial=dial)))


@amqp10.command("disconnect")
@click.argument("words", metavar="[URL] IDENTITY...", nargs=-1, required=True)
@_url_and_identities
@dialling
def disconnect_command(url: str, identities: tuple[str, ...], dial: DialOptions) -> None:
    """Close connections of a container, by the identities that "amqp10 top" shows.

    The container needs $management, as in "amqp10 serve --management". It closes each connection with the error
    amqp:connection:forced. Uses AMQP 1.0: an amqp091:// URL stands for the same host and port.
    """
    from .disconnect import DisconnectOptions, disconnect

    run(partial(disconnect, DisconnectOptions(url=url, identities=identities, dial=dial)))


@amqp10.command("bench")
@amqp091_options(as_target, required=False)
@click.option("--count", type=COUNT, default=100_000, show_default=True, help="Send this many messages.")
@click.option("--size", type=Whole(min=8), default=100, show_default=True, help="Octets in each body.")
@click.option(
    "--presettled",
    is_flag=True,
    help="Send settled messages (at most once), without outcomes; in AMQP 0-9-1 without confirms and acknowledgements.",
)
@click.option(
    "--credit",
    type=COUNT,
    default=1000,
    show_default=True,
    help="The credit of the receiver; in AMQP 0-9-1 its prefetch, and the number of unconfirmed publishes.",
)
@click.option("--json", is_flag=True, help="Print the result as one JSON object.")
@wait_option
def bench_command(target: tuple[str, str] | None, route: Route | None, **given: Any) -> None:
    """Measure throughput and latency, through a peer or directly.

    Without a URL, the sender is connected directly to the receiver, a second process. With a URL, both connect to the peer,
    and the node must be an empty queue. AMQP 0-9-1 needs a URL.
    """
    from .bench import BenchOptions, bench

    url, address = target or (None, "bench")
    options = BenchOptions(url=url, address=address, dialect="1.0" if route is None else "0-9-1", **given)
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
    help="Write a self-contained HTML page, with a sequence diagram of frames, deliveries, credit and errors, to this file; - is stdout.",
)
@click.option("--octets", is_flag=True, help="Print the octets of each frame too.")
@click.option(
    "--listen",
    metavar="URL",
    type=_as_proxy_url,
    help="Run a proxy: listen on this URL, forward to --to, and print every frame.",
)
@click.option("--to", metavar="URL", type=_as_proxy_url, help="The URL to which --listen forwards.")
@click.option(
    "--listen-cert", metavar="FILE", type=FILE, help="The server certificate, if --listen is amqps://."
)
@click.option(
    "--listen-key",
    metavar="FILE",
    type=FILE,
    help="The key of --listen-cert, if it is in another file.",
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
    """Print the frames of captures, logs or octets, or of a proxy.

    A FILE is a frame log, a pcap or pcapng capture, hex, or raw octets; - is stdin. Of a capture, prints the connections that
    begin with a protocol header. Passwords and other SASL secrets are hidden.

    With --listen and --to, listen at one URL, forward to the other, and print every frame in between, until Ctrl-C. --tls-ca,
    --tls-cert, --tls-key and --insecure are for --to.
    """
    if bool(files) is (listen is not None):
        raise click.UsageError("Give files to decode, or --listen and --to to run a proxy.")
    if (listen is None) is not (to is None):
        raise click.UsageError("--listen and --to need each other: give both.")
    if listen is None or to is None:
        from .trace import TraceOptions, trace

        if listen_cert is not None or listen_key is not None or dial != DialOptions():
            raise click.UsageError(
                "Options of TLS (--listen-cert, --listen-key, --tls-ca, --tls-cert, --tls-key, --insecure) need --listen and --to."
            )
        run(partial(trace, TraceOptions(files=files, html=html, octets=octets)))
    from .trace_proxy import ProxyOptions, trace_proxy

    if html == "-":
        raise click.UsageError(
            "--html - needs stdout, where the proxy prints the frames: give --html a file."
        )
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
    """Print a script that makes a shell complete commands and options.

    For bash: eval "$(amqp10 completion bash)" in ~/.bashrc, and likewise in ~/.zshrc; for fish: amqp10 completion fish >
    ~/.config/fish/completions/amqp10.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click supports these three shells
    click.echo(made.source_template % made(amqp10, {}, "amqp10", "_AMQP10_COMPLETE").source_vars())
