"""TLS contexts that are safe by default, and what a handshake proved (5.2).

``client_context`` and ``server_context`` make contexts of the standard library, for ``open_connection`` and
``serve``; contexts of your own will do too, unless they would let in anybody. Nothing here falls back to less.

Knows nothing of AMQP, nor of what the octets inside are.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    PathLike = str | os.PathLike[str]

__all__ = [
    "Certificate",
    "ServerContext",
    "check_client_context",
    "check_server_context",
    "client_context",
    "name_asked_for",
    "server_context",
]

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MODERN: Final = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.MAXIMUM_SUPPORTED)


class Certificate:
    """A peer's certificate that TLS has verified.

    Attributes:
        der: the whole of it, in DER.
        fields: what the standard library reads in it, as of ``ssl.SSLSocket.getpeercert()``.
    """

    __slots__ = ("der", "fields")

    def __init__(self, der: bytes, fields: Mapping[str, Any]) -> None:
        self.der: Final = der
        self.fields: Final = fields

    @property
    def common_name(self) -> str | None:
        """The common name of its subject; None if there is none, or more than one."""
        rows = self.fields.get("subject", ())
        names = [value for row in rows for kind, value in row if kind == "commonName"]
        return names[0] if len(names) == 1 else None

    def alternative_names(self, kind: str) -> tuple[str, ...]:
        """Its subject's alternative names of one kind: ``"DNS"``, ``"URI"``, ``"email"``, ``"IP Address"``."""
        return tuple(value for each, value in self.fields.get("subjectAltName", ()) if each == kind)

    def __repr__(self) -> str:
        return f"<Certificate {self.common_name!r}>"


class ServerContext(ssl.SSLContext):
    """A listener's context that knows its own certificate; ``server_context`` makes one.

    That is what the ``-PLUS`` mechanisms of SCRAM need on this side, and what ``reload`` is for.

    Attributes:
        certificate: our own, in DER; None before there is one.
    """

    certificate: bytes | None = None
    _files: tuple[Any, ...] | None = None
    _authorities: tuple[tuple[Any, ...], ...] = ()
    _renewed: ServerContext | None = None

    def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        """As ``ssl.SSLContext.load_cert_chain``. What cannot be used leaves everything as it was."""
        # A context keeps the certificate whose key it then refuses: so it is tried on another one first.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile, password)
        super().load_cert_chain(certfile, keyfile, password)
        if self._renewed is not None:
            self._renewed.load_cert_chain(certfile, keyfile, password)
        with open(certfile, encoding="latin-1") as file:
            found = _CERTIFICATE.search(file.read())
        assert found is not None  # or it would not have been loaded
        self.certificate = ssl.PEM_cert_to_DER_cert(found[0])
        self._files = (certfile, keyfile, password)

    def load_verify_locations(self, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        """As ``ssl.SSLContext.load_verify_locations``, and to be read again by ``reload``."""
        super().load_verify_locations(cafile, capath, cadata)
        if self._renewed is not None:
            self._renewed.load_verify_locations(cafile, capath, cadata)
        self._authorities += ((cafile, capath, cadata),)

    @property
    def renewed(self) -> ServerContext:
        """What new connections are to be shown and verified with: this one, or what ``reload`` has read since."""
        return self._renewed or self

    def reload(self) -> None:
        """Read the same files again: certificate, key, and authorities of clients. Connections that there are go on.

        New ones are shown the new certificate, and are verified by the new authorities, where ``serve``
        has this context: authorities that are no longer in their file are no longer believed.

        Raises:
            OSError: they cannot be read, or do not belong together (``ssl.SSLError``); the old ones stay.
            LocalProtocolError: there was nothing loaded.
        """
        if self._files is None:
            raise LocalProtocolError("there is no certificate to reload: load_cert_chain() comes first")
        renewed: ServerContext | None = None
        if self._authorities:
            # A context forgets no authority. So there is another one, and each handshake is given what it believes.
            renewed = ServerContext(ssl.PROTOCOL_TLS_SERVER)
            renewed.load_cert_chain(*self._files)
            for each in self._authorities:
                renewed.load_verify_locations(*each)
        self.load_cert_chain(*self._files)
        self._renewed = renewed


def client_context(
    cafile: PathLike | None = None,
    *,
    certfile: PathLike | None = None,
    keyfile: PathLike | None = None,
    password: str | None = None,
    insecure: bool = False,
) -> ssl.SSLContext:
    """A context to dial with: certificates and host names are verified, TLS is 1.2 or newer.

    Args:
        cafile: authorities to believe, in PEM, in place of those of the system.
        certfile, keyfile, password: a certificate of our own, for peers that ask for one.
        insecure: verify nothing. Anybody may then answer in the peer's name.

    Raises:
        OSError: a file cannot be read, or is not what it should be.
        LocalProtocolError: ``insecure`` with ``cafile``, which it would ignore.
    """
    if insecure and cafile is not None:
        raise LocalProtocolError("insecure=True would not look at cafile: leave out one of them")
    context = ssl.create_default_context(cafile=cafile)
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    return context


def server_context(
    certfile: PathLike,
    keyfile: PathLike | None = None,
    *,
    password: str | None = None,
    client_cafile: PathLike | None = None,
    client_certificate_required: bool = True,
) -> ServerContext:
    """A context to listen with: TLS 1.2 or newer, no renegotiation, no session tickets.

    Args:
        certfile: our certificate and those that lead to its authority, in PEM; may hold the key too.
        keyfile, password: where the key is, if elsewhere, and what opens it.
        client_cafile: authorities of clients' certificates, in PEM: clients are asked for one, which
            is what ``sasl.ExternalServer`` needs. None: they are not asked.
        client_certificate_required: whether those who have none are sent away.

    Raises:
        OSError: a file cannot be read, or is not what it should be.
    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # Nobody resumes an AMQP connection's TLS, and each ticket costs octets and memory. In TLS 1.2 it would also
    # spare whoever has one that its certificate is verified, by authorities that may have gone since.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.load_cert_chain(certfile, keyfile, password)
    if client_cafile is not None:
        context.load_verify_locations(client_cafile)
        context.verify_mode = ssl.CERT_REQUIRED if client_certificate_required else ssl.CERT_OPTIONAL
    return context


def check_client_context(context: ssl.SSLContext, *, insecure: bool) -> None:
    """Refuse a context that would take anybody for the peer (5.2.1).

    Raises:
        LocalProtocolError: it verifies no certificate, or no host name, and nobody said ``insecure``;
            or it takes an old version of TLS, or ciphers without authentication or encryption.
    """
    if not insecure and (context.verify_mode is not ssl.CERT_REQUIRED or not context.check_hostname):
        what = "host names" if context.verify_mode is ssl.CERT_REQUIRED else "certificates"
        raise LocalProtocolError(
            f"this ssl_context does not verify {what}, so anyone could pretend to be the peer: "
            "use tls.client_context(cafile=...), or set insecure=True"
        )
    _check(context)


def check_server_context(context: ssl.SSLContext) -> None:
    """Refuse a context that is too weak, and have it take no renegotiation, which only costs us.

    Raises:
        LocalProtocolError: it is a client's, or takes an old version of TLS, or ciphers without
            authentication or encryption.
    """
    if context.protocol is ssl.PROTOCOL_TLS_CLIENT:
        raise LocalProtocolError("this ssl_context is a client's: use tls.server_context(certfile, keyfile)")
    _check(context)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not isinstance(context.sni_callback, _Names):
        context.sni_callback = _Names(context.sni_callback)


_ASKED_FOR: Final[WeakKeyDictionary[ssl.SSLObject, str]] = WeakKeyDictionary()


class _Names:
    """An ``sni_callback`` that remembers whom the client asked for, and then asks the one that there was.

    The standard library tells it to nobody else. It is called for each handshake, names or none, before
    certificates are chosen and verified: so here is where a context that was reloaded comes in.
    """

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, tls: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        if name:
            _ASKED_FOR[tls] = name
        if isinstance(context, ServerContext) and context.renewed is not context:
            tls.context = context.renewed
        answer: int | None = None if self._before is None else self._before(tls, name, context)
        return answer


def name_asked_for(tls: ssl.SSLObject) -> str | None:
    """Whom a client asked for by SNI, where ``check_server_context`` has seen our context."""
    return _ASKED_FOR.get(tls)


def _check(context: ssl.SSLContext) -> None:
    if context.minimum_version not in _MODERN:
        raise LocalProtocolError(
            f"this ssl_context takes {context.minimum_version.name}: set minimum_version to TLSVersion.TLSv1_2"
        )
    for cipher in context.get_ciphers():
        if cipher.get("auth") == "auth-null" or not cipher.get("strength_bits"):
            raise LocalProtocolError(
                f"this ssl_context takes the cipher {cipher['name']}, which proves nothing or hides nothing: "
                "leave set_ciphers() alone, or add :!aNULL:!eNULL"
            )
