"""How a client of azure-servicebus or azure-eventhub reaches the emulator, for ``azure_peer`` and ``hubs_peer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse


def dialling(
    options: argparse.Namespace, name: str | None = None, key: str | None = None
) -> tuple[str, dict[str, Any]]:
    """The connection string, and further arguments of the client; the login is that of the options, if not given.

    Clients on uamqp know no emulators, and reach another port only over a WebSocket: with ``--cafile``.
    """
    settings = {
        "Endpoint": f"sb://127.0.0.1:{options.port}",
        "SharedAccessKeyName": name or options.name,
        "SharedAccessKey": key or options.key,
        "UseDevelopmentEmulator": "true",
    }
    more: dict[str, Any] = {}
    if options.cafile:
        settings["Endpoint"] = "sb://localhost"
        del settings["UseDevelopmentEmulator"]
        more = {
            "custom_endpoint_address": f"sb://localhost:{options.port}",
            "connection_verify": options.cafile,
        }
    return "".join(f"{name}={value};" for name, value in settings.items()), more
