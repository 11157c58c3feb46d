"""The options of ``open_connection``, each declared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from trio_amqp10.amqp10.engine.open_options import OpenOptions, symbols
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.dial_options import CommonDialOptions
from trio_amqp10.net.tls_options import TlsOptions

from .link_options import ANONYMOUS_RELAY
from .sole_connection_request import CAPABILITY as SOLE
from .sole_connection_request import sole_properties
from .wires import FINAL, Wire, wire_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import trio

    from trio_amqp10.amqp10.engine.open_options import OpenKeywords
    from trio_amqp10.sasl import ClientMechanism

    from .sole_connection_request import SolePolicy

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | Literal[False] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class DialOptions(OpenOptions, TlsOptions, CommonDialOptions):
    """The options of ``open_connection``, which describes them.

    Raises:
        LocalProtocolError: the options contradict each other, or would not be safe.
    """

    container_id: str | None = None
    hostname: str | None = None
    sasl: SaslChoice = None
    pipelined: bool = True
    sole_connection: SolePolicy | None = None
    follow_redirects: bool | int = False
    trusted_hosts: Collection[str] = ()
    dialect: Literal["1.0", "1.0-draft-2010"] = FINAL

    def __post_init__(self) -> None:
        OpenOptions.__post_init__(self)
        TlsOptions.__post_init__(self)
        if self.sole_connection is not None and self.container_id is None:
            raise LocalProtocolError("sole_connection needs a container_id: give the id of this container")

    @property
    def wire(self) -> Wire:
        """The engine and the SASL layer for ``dialect``.

        Raises:
            LocalProtocolError: there is no such dialect.
        """
        return wire_of(self.dialect)

    def for_engine(self) -> OpenKeywords:
        """Return the keyword arguments of the engine: the fields of our open, and limits.

        Raises:
            LocalProtocolError: ``sole_connection`` is not a known policy.
        """
        # A capability may be used only if the open desires it (2.7.1), and the program may open senders without an
        # address later.
        sole = () if self.sole_connection is None else (SOLE,)
        desired = tuple(dict.fromkeys((*symbols(self.desired_capabilities), *sole, ANONYMOUS_RELAY)))
        properties = {**(self.properties or {}), **sole_properties(self.sole_connection)} or None
        return {**self.keywords(), "desired_capabilities": desired, "properties": properties}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereAndOptions(DialOptions):
    """All parameters of ``open_connection``."""

    where: str | Sequence[str] | trio.abc.Stream = field(kw_only=False, repr=False)  # may hold a password
