"""Use TLS on both sides: ``amqp10 certs certs``, then ``python tls.py certs``."""

import sys
from functools import partial
from pathlib import Path

import trio

import trio_amqp10 as amqp


def common_name(certificate: amqp.tls.Certificate) -> str | None:
    """Return the name of the client that has this certificate."""
    return certificate.common_name


async def handle(connection: amqp.Connection) -> None:
    assert connection.identity is not None
    print("the service knows", connection.identity.name)
    await connection.wait_closed()


async def main(folder: str) -> None:
    ca, server, server_key, certfile, keyfile = (
        Path(folder, f"{name}.pem") for name in ("ca", "server", "server-key", "client", "client-key")
    )
    context = amqp.tls.server_context(server, server_key, client_cafile=ca)
    external = amqp.sasl.Server(mechanisms=[amqp.sasl.ExternalServer(common_name)])
    async with trio.open_nursery() as nursery:
        serve = partial(amqp.serve, handle, "amqps://127.0.0.1:0", ssl_context=context, sasl=external)
        [listener] = await nursery.start(serve)
        dialling = amqp.open_connection(listener.url, cafile=ca, certfile=certfile, keyfile=keyfile)
        async with dialling as connection:
            print("the client is connected to", connection.remote.container_id)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python tls.py FOLDER"))
