"""A server of S3 in this process, and stores in it."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Callable

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "ada",
    "AWS_SECRET_ACCESS_KEY": "enigma",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""The environment variables that processes need for the object store."""


class ObjectServer:
    """A bucket in memory: ``with ObjectServer() as objects``.

    Attributes:
        endpoint: where it listens.
    """

    def __enter__(self) -> Self:
        os.environ.update(CREDENTIALS)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # otherwise a failing test shows every request
        self._serve(0)
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        from pyarrow import fs

        self._filesystem = fs.S3FileSystem(
            endpoint_override=self.endpoint, region="us-east-1", allow_bucket_creation=True
        )
        self._filesystem.create_dir("bucket")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def _serve(self, port: int) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
        self._server.start()

    def refuse(self, seconds: float) -> None:
        """Stop for so many seconds, and start again with all objects."""
        _, port = self._server.get_host_and_port()
        self._server.stop()
        time.sleep(seconds)
        self._serve(port)

    def uri(self, path: str) -> str:
        """Return the URI of a store in the bucket."""
        return f"s3://bucket/{path}?endpoint_override={quote(self.endpoint, safe='')}&region=us-east-1"

    def count(self, path: str, holds: Callable[[str], bool] = lambda _: True) -> int:
        """Return how many objects below a path have a wanted name."""
        from pyarrow import fs

        chosen = fs.FileSelector(f"bucket/{path}", recursive=True, allow_not_found=True)
        found = self._filesystem.get_file_info(chosen)
        return len([each for each in found if each.type == fs.FileType.File and holds(each.path)])
