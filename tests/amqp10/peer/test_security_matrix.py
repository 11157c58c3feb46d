"""Which mechanism goes over which layers, for each side by itself; docs/reference/layers.rst shows this table.

Each cell is a connection: the side in question as it comes, the other as permissive as it can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

import trio_amqp10 as amqp
from tests.places import ROOT
from trio_amqp10 import sasl

from .authority import authority, serving
from .helpers import listening

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE: Final = ROOT / "docs/reference/layers.rst"

CA: Final = str(authority().cafile)
PASSWORD: Final = "s3cret"
TOKEN: Final = "a-token"

CLEAR: Final = ("amqp", "amqpws", "amqp+unix")
SECURE: Final = ("amqps", "amqp+tls", "amqpwss")
LAYERS: Final = {
    "``amqp://``": "amqp",
    "``amqpws://``": "amqpws",
    "loopback": "loopback",
    "``amqp+unix://``": "amqp+unix",
    "``amqps://``": "amqps",
    "``amqp+tls://``": "amqp+tls",
    "``amqpwss://``": "amqpwss",
}
"""By heading: a URL's scheme. Those without TLS are of a network, but for a peer on this machine."""

ROLES: Final = ("dials", "listens")
YES, ASKED, NO = "yes", "if allowed", "no"
ALWAYS: Final = dict.fromkeys(LAYERS.values(), YES)
SECRET: Final = ALWAYS | dict.fromkeys(("amqp", "amqpws"), ASKED)
TLS_ONLY: Final = {name: YES if name in SECURE else NO for name in LAYERS.values()}
ROWS: Final = {
    "no SASL layer": ALWAYS,
    "ANONYMOUS": ALWAYS,
    "PLAIN": SECRET,
    "SCRAM-SHA-1": ALWAYS,
    "SCRAM-SHA-256": ALWAYS,
    "SCRAM-SHA-512": ALWAYS,
    "SCRAM-SHA-1-PLUS": TLS_ONLY,
    "SCRAM-SHA-256-PLUS": TLS_ONLY,
    "SCRAM-SHA-512-PLUS": TLS_ONLY,
    "EXTERNAL": TLS_ONLY,
    "OAUTHBEARER": SECRET,
    "XOAUTH2": SECRET,
}

CELLS: Final = [(row, layer, role) for row in ROWS for layer in LAYERS.values() for role in ROLES]


def table() -> str:
    """The table as the page has it: the two roles share a cell where they agree, and they always do."""
    lines = [".. list-table::", "   :header-rows: 1", "   :stub-columns: 1", ""]
    for cells in (["", *LAYERS], *([row, *(ROWS[row][layer] for layer in LAYERS.values())] for row in ROWS)):
        lines += [f"   {'* -' if at == 0 else '  -'} {cell}".rstrip() for at, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def test_page_shows_the_table_that_is_tested() -> None:
    assert table() in PAGE.read_text()


async def fetch() -> str:
    return TOKEN


async def verify(username: str, token: str) -> str | None:
    return "ann" if token == TOKEN else None


def client(mechanism: str) -> Any:
    if mechanism == "no SASL layer":
        return False
    if mechanism.startswith("SCRAM"):
        return sasl.Scram("ann", PASSWORD, mechanism)
    makers: dict[str, Callable[[], sasl.ClientMechanism]] = {
        "ANONYMOUS": sasl.Anonymous,
        "PLAIN": lambda: sasl.Plain("ann", PASSWORD),
        "EXTERNAL": sasl.External,
        "OAUTHBEARER": lambda: sasl.OAuthBearer(fetch, "ann"),
        "XOAUTH2": lambda: sasl.XOAuth2(fetch, "ann"),
    }
    return makers[mechanism]()


def server(mechanism: str) -> sasl.Server | None:
    if mechanism in ("no SASL layer", "ANONYMOUS"):
        return None
    if mechanism.startswith("SCRAM"):
        return sasl.Server({"ann": PASSWORD}, scram=[mechanism.removesuffix("-PLUS")])
    if mechanism == "PLAIN":
        return sasl.Server({"ann": PASSWORD})
    made: dict[str, Callable[[], sasl.ServerMechanism]] = {
        "EXTERNAL": lambda: sasl.ExternalServer(lambda certificate: certificate.common_name),
        "OAUTHBEARER": lambda: sasl.OAuthBearerServer(verify),
        "XOAUTH2": lambda: sasl.XOAuth2Server(verify),
    }
    return sasl.Server(mechanisms=[made[mechanism]()])


async def connect(
    mechanism: str, layer: str, tmp_path: Path, *, dialler_allows: bool, listener_allows: bool
) -> list[str | None] | None:
    """Connect; the names of mechanisms by which peers came in, or None if it was for one side to refuse."""
    seen: list[str | None] = []

    async def handle(connection: amqp.Connection) -> None:
        seen.append(getattr(connection.identity, "mechanism", None))

    scheme = "amqp" if layer == "loopback" else layer
    url = f"amqp+unix://{tmp_path}/s" if scheme == "amqp+unix" else f"{scheme}://127.0.0.1:0"
    secure: dict[str, Any] = {}
    if scheme in SECURE:
        secure["cafile"] = CA
        if mechanism == "EXTERNAL":
            secure["certfile"] = authority("clients").issue(common_name="ann").file
    context = serving(clients="clients" if mechanism == "EXTERNAL" else None) if scheme in SECURE else None
    async with listening(
        handle, url, sasl=server(mechanism), ssl_context=context, allow_plaintext_password=listener_allows
    ) as [listener]:
        dialling = amqp.open_connection(
            listener.url, sasl=client(mechanism), allow_plaintext_password=dialler_allows, **secure
        )
        try:
            async with dialling as connection:
                await connection.wait_closed()
        except amqp.SecurityError as refusal:
            said = str(refusal)
            assert PASSWORD not in said
            assert TOKEN not in said
            assert not seen
            return None
    return seen


@pytest.mark.parametrize(("mechanism", "layer", "role"), CELLS)
async def test_mechanism_goes_over_these_layers_or_does_not(
    mechanism: str, layer: str, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if layer in ("amqp", "amqpws", *SECURE):  # as over a network
        module = "net.dialling_base" if role == "dials" else "net.accept_loop"
        monkeypatch.setattr(f"trio_amqp10.{module}.is_private", lambda _: False)

    async def attempt(allowed: bool) -> list[str | None] | None:
        return await connect(
            mechanism,
            layer,
            tmp_path,
            dialler_allows=allowed or role == "listens",
            listener_allows=allowed or role == "dials",
        )

    cell = ROWS[mechanism][layer]
    came_in_by = None if mechanism == "no SASL layer" else mechanism
    if cell != YES:
        assert await attempt(False) is None
    if cell != NO:
        assert await attempt(cell == ASKED) == [came_in_by]
