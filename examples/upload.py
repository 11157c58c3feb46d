"""Send a file larger than memory, block by block: ``python upload.py FILE``."""

import hashlib
import sys

import trio

import trio_amqp10 as amqp


async def take_files(connection: amqp.Connection) -> None:
    async for link in connection.incoming_links():
        if not isinstance(link, amqp.IncomingReceiver):
            await link.refuse("amqp:not-allowed", "files are only taken here")
            continue
        async with link.accept(streaming=True) as receiver:
            async for delivery in receiver:
                head, digest = await delivery.head(), hashlib.sha256()
                async for chunk in delivery.chunks():  # the sender waits while we do
                    digest.update(chunk)
                delivery.accept()
                print(head.subject, digest.hexdigest())


async def main(name: str) -> None:
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(amqp.serve, take_files, "amqp://127.0.0.1:0")
        async with (
            amqp.open_connection(listener.url) as connection,
            connection.open_sender("files") as sender,
            await trio.open_file(name, "rb") as file,
            sender.stream(message=amqp.Message(subject=trio.Path(name).name)) as body,
        ):
            while block := await file.read(64 * 1024):
                await body.send_all(block)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python upload.py FILE"))
