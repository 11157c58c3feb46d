"""Dial a peer: ``open_connection``, with all its options."""

from __future__ import annotations

from .dial_options import WhereAndOptions
from .dialling import Dialling
from .option_signatures import takes

__all__ = ["open_connection"]


@takes(WhereAndOptions)
def open_connection(options: WhereAndOptions) -> Dialling:
    """Dial a peer: ``async with open_connection(url) as conn``.

    Entering waits until the peer has opened the connection too. Leaving closes it: what is queued
    is written first, then the peer's close is awaited for at most ``close_timeout`` seconds. What
    the block raises leaves as itself.

    Args:
        where: a URL, or several, tried in turn, or a stream that is connected already. ``amqp://[user:password@]host[:port]``;
            ``amqps://`` with TLS first; ``amqp+tls://`` with TLS by protocol id 2; ``amqpws://host/path``
            and ``amqpwss://`` in a WebSocket; ``amqp+unix:///path``.
        container_id: who we are (2.4.1); a fresh UUID if None.
        hostname: the host that ``open`` and ``sasl-init`` name; the URL's if None.
        sasl: a mechanism, or several, best first; False for no SASL layer. If None: where the URL has
            a user, SCRAM, EXTERNAL with ``certfile``, and PLAIN where nobody can read along; else EXTERNAL or
            ANONYMOUS; for a stream no SASL layer.
        allow_plaintext_password: send a password where somebody could read along, or to a peer that
            proved nothing (``insecure``).
        layers: what to put between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``,
            ``"in-band-tls"``. None: what the URL's scheme says; nothing on a stream.
        ssl_context: for TLS, in place of one that ``tls.client_context`` makes.
        cafile: authorities to believe, in PEM, in place of those of the system.
        certfile, keyfile: our own certificate, and its key if that is in another file.
        server_hostname: whom the peer's certificate has to name, and SNI tells; the URL's host if None.
        insecure: take a certificate from anybody.
        idle_timeout: seconds of silence after which the peer counts as gone (2.4.5); None: never.
        max_frame_size, channel_max: as in ``limits``, which they override.
        properties: about us, for the peer; str keys travel as symbols.
        desired_capabilities, offered_capabilities: extensions to ask for and to offer. ``ANONYMOUS-RELAY`` is always
            desired, for senders without an address.
        outgoing_locales, incoming_locales: languages that we can tell of errors in, and those that we want to be told
            in, best first, as ``"fr-CA"``; ``en-US`` is understood. See ``Connection.outgoing_locale``.
        limits: what the peer may cost us.
        pipelined: write open, begin and so on without waiting for the peer's; False for peers
            that cannot take it.
        close_timeout: seconds to wait for the peer whenever something is closed.
        reconnect: come back by itself, with all links, for ever or as a ``Backoff`` says; the first dial
            too. See ``Connection.changes``.
        sole_connection: be the only connection of this container to the peer: where there is one, be refused
            (``"refuse-connection"``), or have it closed (``"close-existing"``: with ``reconnect``, for a peer that has not
            noticed yet that the last one is lost). It needs a ``container_id`` of your own.
        follow_redirects: go where a peer says that it wants to be dialled instead, up to five times in a
            row, or as often as the number says; with ``reconnect`` also later. The scheme stays, the path and
            all options too. Costs a round trip.
        trusted_hosts: hosts that then get the credentials that were given for those of the URLs.
        dialect: ``"1.0-draft-2010"`` for a peer that speaks the draft of May 2010 (historical: see the manual);
            ``"1.0"`` is the standard.
        strict: which rules to hold strictly, of those where peers that break them can be lived with; True for
            all of them, False for none, None for the defaults of ``Strict``.

    Raises (on entering):
        OSError: nobody answers there.
        SecurityError: it was not agreed who is who, or a side would have had to go on with less security.
        ConnectionClosedError: the peer closed, or is dead: its transport ended, or it was silent for too long.
        GuaranteeNotSupportedError: ``sole_connection`` was asked for, and the peer does not see to that.
        ConnectionRedirectError: it is to be found elsewhere, and that was not, or no further, followed.
        RemoteProtocolError: what answers does not speak AMQP 1.0.
        LocalProtocolError: the URL is not one, or options for TLS make no sense with it or are not safe.

    Cancelled: what was dialled is closed; the close frame gets at most a second.
    """
    return Dialling(options.where, options)
