"""TLS contexts with safe defaults, and the certificates of verified peers (5.2).

``client_context`` and ``server_context`` make contexts of the standard library, for ``open_connection`` and
``serve``; contexts of your own are accepted too, unless they are unsafe. Nothing here falls back to less security.

Knows nothing of AMQP, nor of the octets inside TLS.
"""

from __future__ import annotations

import re
import ssl
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    PathLike = str | os.PathLike[str]

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MODERN: Final = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.MAXIMUM_SUPPORTED)


class Certificate:
    """A peer's certificate that TLS has verified.

    Attributes:
        der: the whole certificate, in DER.
        fields: as returned by ``ssl.SSLSocket.getpeercert()``.
    """

    __slots__ = ("der", "fields")

    def __init__(self, der: bytes, fields: Mapping[str, Any]) -> None:
        self.der: Final = der
        self.fields: Final = fields

    @property
    def common_name(self) -> str | None:
        """The common name of its subject; None if it has none or several."""
        rows = self.fields.get("subject", ())
        names = [value for row in rows for kind, value in row if kind == "commonName"]
        return names[0] if len(names) == 1 else None

    def alternative_names(self, kind: str) -> tuple[str, ...]:
        """Return the alternative names of its subject that have one kind.

        Args:
            kind: ``"DNS"``, ``"URI"``, ``"email"`` or ``"IP Address"``.
        """
        return tuple(value for each, value in self.fields.get("subjectAltName", ()) if each == kind)

    def __repr__(self) -> str:
        return f"<Certificate {self.common_name!r}>"


class ServerContext(ssl.SSLContext):
    """A listener's context that keeps its own certificate; see ``server_context``.

    The ``-PLUS`` mechanisms of SCRAM need the certificate on the server's side, and ``reload`` reads it again.

    Attributes:
        certificate: the listener's own, in DER; None before one is loaded.
    """

    certificate: bytes | None = None
    _files: tuple[Any, ...] | None = None
    _authorities: tuple[tuple[Any, ...], ...] = ()
    _renewed: ServerContext | None = None

    def load_cert_chain(self, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        """Do the same as ``ssl.SSLContext.load_cert_chain``.

        If the files cannot be used, nothing changes.
        """
        # A context keeps a certificate even if it then refuses its key: so another context tries it first.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certfile, keyfile, password)
        super().load_cert_chain(certfile, keyfile, password)
        if self._renewed is not None:
            self._renewed.load_cert_chain(certfile, keyfile, password)
        with open(certfile, encoding="latin-1") as file:
            found = _CERTIFICATE.search(file.read())
        assert found is not None  # otherwise super().load_cert_chain() would have raised
        self.certificate = ssl.PEM_cert_to_DER_cert(found[0])
        self._files = (certfile, keyfile, password)

    def load_verify_locations(self, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        """Do the same as ``ssl.SSLContext.load_verify_locations``.

        ``reload`` reads the files again.
        """
        super().load_verify_locations(cafile, capath, cadata)
        if self._renewed is not None:
            self._renewed.load_verify_locations(cafile, capath, cadata)
        self._authorities += ((cafile, capath, cadata),)

    @property
    def renewed(self) -> ServerContext:
        """The context for new connections: this one, or that of the last ``reload``."""
        return self._renewed or self

    def reload(self) -> None:
        """Read the files again: certificate, key, and authorities of clients.

        Existing connections continue. New connections to a ``serve`` with this context get the new certificate, and are verified by
        the new authorities: an authority that is no longer in its file is no longer trusted.

        Raises:
            OSError: the files cannot be read, or do not belong together (``ssl.SSLError``); the old ones stay in use.
            LocalProtocolError: no certificate was loaded before.
        """
        self.read_again()()

    def read_again(self) -> Callable[[], None]:
        """Read the files as ``reload`` does, but change nothing yet.

        Returns:
            A function that puts them in use, and cannot fail.

        Raises:
            OSError, LocalProtocolError: as ``reload``.
        """
        if self._files is None:
            raise LocalProtocolError("there is no certificate to reload: call load_cert_chain() first")
        # Authorities cannot be removed from a context, and a file can change after it was tried. So all is loaded into a new
        # context, and each handshake is switched to that.
        renewed = ServerContext(ssl.PROTOCOL_TLS_SERVER)
        renewed.load_cert_chain(*self._files)
        for each in self._authorities:
            renewed.load_verify_locations(*each)

        def use() -> None:
            self._renewed = renewed
            self.certificate = renewed.certificate

        return use


def client_context(
    cafile: PathLike | None = None,
    *,
    certfile: PathLike | None = None,
    keyfile: PathLike | None = None,
    password: str | None = None,
    insecure: bool = False,
) -> ssl.SSLContext:
    """Return a context to dial with; it verifies certificates and host names.

    TLS is 1.2 or newer.

    Args:
        cafile: authorities to trust, in PEM, instead of those of the system.
        certfile, keyfile, password: our own certificate, for peers that request one.
        insecure: verify nothing. Any host may then impersonate the peer.

    Raises:
        OSError: a file cannot be read, or has the wrong content.
        LocalProtocolError: ``insecure`` with ``cafile``, which it would ignore.
    """
    if insecure and cafile is not None:
        raise LocalProtocolError("insecure=True would ignore cafile: leave out one of them")
    _check_files(cafile=cafile, certfile=certfile, keyfile=keyfile)
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
    """Return a context to listen with.

    It uses TLS 1.2 or newer, without renegotiation and session tickets.

    Args:
        certfile: the server's certificate and those that lead to its authority, in PEM; may contain the key too.
        keyfile, password: the file of the key, if it is another one, and the password of the key.
        client_cafile: authorities of clients' certificates, in PEM: clients are asked for a certificate, which
            ``sasl.ExternalServer`` needs. None: they are not asked.
        client_certificate_required: whether clients without a certificate are refused.

    Raises:
        OSError: a file cannot be read, or has the wrong content.
    """
    _check_files(certfile=certfile, keyfile=keyfile, client_cafile=client_cafile)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # AMQP clients do not resume TLS sessions, and each ticket costs octets and memory. In TLS 1.2 a client with a
    # ticket would also not be verified again, although its authority may have been removed since.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.load_cert_chain(certfile, keyfile, password)
    if client_cafile is not None:
        context.load_verify_locations(client_cafile)
        context.verify_mode = ssl.CERT_REQUIRED if client_certificate_required else ssl.CERT_OPTIONAL
    return context


def _check_files(**files: PathLike | None) -> None:
    """Open each file, because ``ssl`` does not name the one that it cannot read.

    Raises:
        OSError: a file cannot be read; the message has the argument and the path.
    """
    for argument, path in files.items():
        if path is not None:
            try:
                with open(path, "rb"):
                    pass
            except OSError as failure:
                raise type(failure)(failure.errno, f"{argument}: {failure.strerror}", str(path)) from None


def check_client_context(context: ssl.SSLContext, *, insecure: bool) -> None:
    """Raise an error if a context would accept any host as the peer (5.2.1).

    Args:
        insecure: whether to permit a context that does not verify the peer.

    Raises:
        LocalProtocolError: it verifies no certificate or no host name, and ``insecure`` is False;
            or it accepts an old version of TLS, or ciphers without authentication or encryption.
    """
    if not insecure and (context.verify_mode is not ssl.CERT_REQUIRED or not context.check_hostname):
        what = "host names" if context.verify_mode is ssl.CERT_REQUIRED else "certificates"
        raise LocalProtocolError(
            f"this ssl_context does not verify {what}, so anyone could pretend to be the peer: "
            "use tls.client_context(cafile=...), or set insecure=True"
        )
    _check(context)


def check_server_context(context: ssl.SSLContext) -> None:
    """Raise an error if a context is too weak, and disable its renegotiation.

    Renegotiation has no use here, but costs work.

    Raises:
        LocalProtocolError: it is a client's, or accepts an old version of TLS, or ciphers without
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
    """An ``sni_callback`` that stores the host name that the client asked for.

    The standard library does not keep the name elsewhere. It calls this in each handshake, with a name or None, before
    certificates are chosen and verified: so a reloaded context is applied here, too. The context's previous callback
    is called last.
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
    """Return the host name that a client asked for by SNI, or None.

    The context must have passed ``check_server_context``.
    """
    return _ASKED_FOR.get(tls)


def _check(context: ssl.SSLContext) -> None:
    if context.minimum_version not in _MODERN:
        raise LocalProtocolError(
            f"this ssl_context accepts {context.minimum_version.name}: set minimum_version to TLSVersion.TLSv1_2"
        )
    for cipher in context.get_ciphers():
        if cipher.get("auth") == "auth-null" or not cipher.get("strength_bits"):
            raise LocalProtocolError(
                f"this ssl_context accepts the cipher {cipher['name']}, which has no authentication or no encryption: "
                "do not call set_ciphers(), or add !aNULL:!eNULL to its text"
            )
