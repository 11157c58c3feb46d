"""Dial a peer: ``open_connection``, with all its options."""

from __future__ import annotations

from trio_amqp10.net.option_signatures import takes

from .dial_options import WhereAndOptions
from .dialling import Dialling


@takes(WhereAndOptions)
def open_connection(options: WhereAndOptions) -> Dialling:
    """Connect to a peer: ``async with open_connection(url) as conn``.

    Entering the block waits until the peer has opened the connection too. Leaving it writes the queued octets, closes the
    connection, and waits at most ``close_timeout`` seconds for the peer's close. An exception raised in the block
    propagates unchanged.

    Args:
        where: a URL, several URLs to try in turn, or a connected stream. ``amqp://[user:password@]host[:port]``;
            ``amqps://`` with TLS first; ``amqp+tls://`` with TLS by protocol id 2; ``amqpws://host/path``
            and ``amqpwss://`` in a WebSocket; ``amqp+unix:///path``.
        container_id: our container id (2.4.1); a fresh UUID if None.
        hostname: the host that ``open`` and ``sasl-init`` name; the URL's if None.
        sasl: a mechanism, or several, best first; False for no SASL layer. If None and the URL has a user: SCRAM,
            EXTERNAL with ``certfile``, and PLAIN if the connection cannot be read by others. If None and it has no user:
            EXTERNAL or ANONYMOUS; on a stream no SASL layer.
        allow_plaintext_password: also send a password over a connection that is not encrypted, or to a peer that was not
            verified (``insecure``).
        layers: the layers between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``,
            ``"in-band-tls"``. None: those of the URL's scheme; none on a stream.
        ssl_context: for TLS, instead of one that ``tls.client_context`` makes.
        cafile: certificate authorities to trust, in PEM, instead of the system's.
        certfile, keyfile: our certificate, and its key if that is in another file.
        server_hostname: the name that the peer's certificate must have, also sent as SNI; the URL's host if None.
        insecure: do not verify the peer's certificate.
        idle_timeout: seconds of silence after which the peer counts as gone (2.4.5); None: never.
        max_frame_size, channel_max: as in ``limits``, which they override.
        properties: our properties, for the peer; str keys are sent as symbols.
        desired_capabilities, offered_capabilities: extensions to ask for and to offer. ``ANONYMOUS-RELAY`` is always
            desired, for senders without an address.
        outgoing_locales, incoming_locales: languages in which we can describe errors, and in which the peer should describe
            them, best first, as ``"fr-CA"``; ``en-US`` is understood. See ``Connection.outgoing_locale``.
        limits: limits for the peer's use of our resources.
        pipelined: write open, begin and attach without waiting for the peer's answers; False for peers that do not
            support it.
        close_timeout: seconds to wait for the peer whenever something is closed.
        reconnect: connect again after a loss, with all links, without end or as the ``Backoff`` limits it; this includes
            the first attempt. See ``Connection.changes``.
        sole_connection: allow only one connection of this container to the peer. If there is another, either this one is
            refused (``"refuse-connection"``) or the other is closed (``"close-existing"``; with ``reconnect``, if the peer has
            not yet noticed that the last connection is lost). It needs a ``container_id`` of your own.
        follow_redirects: follow the redirects of a peer, up to five in a row, or the given number; with ``reconnect`` at
            any time. The scheme, the path and all options stay the same. Costs a round trip.
        trusted_hosts: hosts of redirects that may get the credentials, in addition to the hosts of the URLs.
        dialect: ``"1.0-draft-2010"`` for a peer that implements the draft of May 2010 (historical: see the manual);
            ``"1.0"`` is the standard.
        strict: which of the rules with a tolerant mode to enforce: True for all, False for none, None for the defaults of
            ``Strict``.

    Raises (on entering):
        OSError: the peer cannot be reached.
        SecurityError: authentication or TLS failed, or the peer wanted to continue with less security.
        ConnectionClosedError: the peer closed the connection, its transport ended, or it was silent for too long.
        GuaranteeNotSupportedError: the peer does not support ``sole_connection``.
        ConnectionRedirectError: the peer redirects, and ``follow_redirects`` does not allow to follow.
        RemoteProtocolError: the peer does not implement AMQP 1.0.
        LocalProtocolError: the URL is wrong, or the options for TLS do not fit it or are not safe.

    Cancelled: the connection is closed; writing the close frame takes at most a second.
    """
    return Dialling(options.where, options)
