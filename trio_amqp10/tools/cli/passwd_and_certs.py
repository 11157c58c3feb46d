"""The commands ``amqp10 passwd`` and ``amqp10 certs``."""

from __future__ import annotations

from functools import partial
from typing import Final

import click

from trio_amqp10.sasl.salted_keys import DEFAULT_ITERATIONS, DEFAULT_MECHANISMS
from trio_amqp10.sasl.scram_messages import HASHES, MAX_ITERATIONS, MIN_ITERATIONS

from .command_runner import CommandError, run_plain
from .option_types import LocalPath, Whole, file_of
from .passwd import DEFAULT_FILE, PasswdOptions, list_users, passwd

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


@click.command("passwd")
@click.argument("words", metavar="[FILE] USER", nargs=-1)
@click.option("--delete", is_flag=True, help="Delete the user.")
@click.option("--list", "as_list", is_flag=True, help="Print the users in FILE, without USER.")
@click.option("--stdin", is_flag=True, help="Read the password from the first line of stdin.")
@click.option(
    "--iterations",
    type=Whole(MIN_ITERATIONS, MAX_ITERATIONS),
    default=DEFAULT_ITERATIONS,
    show_default=True,
    help="The cost of each guess of a password, in iterations of the hash.",
)
@click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(tuple(HASHES)),
    multiple=True,
    help=f"Store keys for this mechanism. May be repeated.  [default: {', '.join(DEFAULT_MECHANISMS)}]",
)
def passwd_command(
    words: tuple[str, ...],
    delete: bool,
    as_list: bool,
    stdin: bool,
    iterations: int,
    mechanisms: tuple[str, ...],
) -> None:
    """Add USER to a file for "amqp10 serve --users", or give USER another password.

    FILE is "amqp10-users" by default. It holds salted keys, from which no password can be recovered. Keep it
    private: a person who has the file can guess passwords offline and pretend to be the server.
    """
    if as_list:
        if len(words) > 1 or delete or stdin:
            raise click.UsageError("--list takes only a FILE: leave out USER and other options.")
        run_plain(lambda: list_users(file_of(words[0] if words else DEFAULT_FILE)))
    if not 1 <= len(words) <= 2:
        missing = (
            "Missing argument 'USER': give [FILE] USER."
            if not words
            else "Too many arguments: give only [FILE] USER."
        )
        raise click.UsageError(missing)
    if delete and stdin:
        raise click.UsageError("--delete needs no password: leave out --stdin.")
    options = PasswdOptions(
        file=file_of(words[0] if len(words) == 2 else DEFAULT_FILE),
        user=words[-1],
        delete=delete,
        stdin=stdin,
        iterations=iterations,
        mechanisms=mechanisms or DEFAULT_MECHANISMS,
    )
    run_plain(lambda: [passwd(options)])


@click.command("certs")
@click.argument("directory", metavar="DIR", type=LocalPath(file_okay=False))
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help=f"Issue the server certificate for this host name or address. May be repeated.  [default: {', '.join(_HOSTS)}]",
)
@click.option(
    "--client",
    "clients",
    metavar="NAME",
    multiple=True,
    help="Make a certificate for this client. May be repeated.  [default: client]",
)
@click.option(
    "--days",
    type=Whole(1, 3650),
    default=365,
    show_default=True,
    help="How many days the certificates and a new authority are valid; a certificate never ends after its authority.",
)
@click.option("--renew", is_flag=True, help="Replace existing certificates, but never the authority.")
def certs_command(
    directory: str, hosts: tuple[str, ...], clients: tuple[str, ...], days: int, renew: bool
) -> None:
    """Make a development certificate authority, and certificates signed by it.

    Writes the authority and the certificates of a server and its clients to DIR, and prints the names of the files. If DIR
    has an authority, it is used again. Only the owner can read the keys.
    """
    run_plain(partial(_certs, directory, hosts or _HOSTS, clients or ("client",), days, renew))


def _certs(
    directory: str, hosts: tuple[str, ...], clients: tuple[str, ...], days: int, renew: bool
) -> list[str]:
    try:
        from .certs import CertsOptions, certs
    except ModuleNotFoundError as missing:  # the extra [tls]
        raise CommandError(str(missing), 2) from None
    return certs(CertsOptions(directory=directory, hosts=hosts, clients=clients, days=days, renew=renew))
