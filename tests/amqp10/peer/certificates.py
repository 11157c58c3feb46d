"""What tests of TLS dial: an authority, and URLs."""

from __future__ import annotations

from .authority import authority

CA = str(authority().cafile)


def url(scheme: str = "amqps", host: str = "127.0.0.1", port: int = 0) -> str:
    return f"{scheme}://{host}:{port}"


SCHEMES = ["amqps", "amqp+tls"]
