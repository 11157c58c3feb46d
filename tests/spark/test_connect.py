"""Spark Connect: a server of its own, and a client that has no JVM."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from tests.ports import free_port

from .desk import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .peers import Peer

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
CLIENT = """
import sys
from pyspark.sql import SparkSession
remote, url, address, out, folder = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
rows = spark.range(0, 200, 1, 2).selectExpr("cast(cast(id as string) as binary) body")
rows.write.format("amqp10").options(url=url, address=address).mode("append").save()
source = spark.readStream.format("amqp10").options(url=url, address=address, spool=folder + "/spool", columns="seq,body")
sink = source.load().select("body").writeStream.format("amqp10").options(url=url, address=out)
query = sink.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
"""


@pytest.fixture(scope="module")
def remote(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a free port of this machine."""
    port = free_port()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    options = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    given = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    log = tmp_path_factory.mktemp("connect") / "server.txt"
    with log.open("w") as told:
        server = subprocess.Popen(
            [submit, "--class", SERVER, "--master", "local[2]", *given],
            env=os.environ | {"SPARK_HOME": str(submit.parents[1])},
            stdout=told,
            stderr=told,
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def test_rows_go_to_a_queue_and_through_a_stream_to_another(remote: str, peer: Peer, tmp_path: Path) -> None:
    given = [remote, peer.url, peer.address("in"), peer.address("out"), str(tmp_path)]
    subprocess.run([sys.executable, "-c", CLIENT, *given], check=True, timeout=PATIENCE)
    assert sorted(int(message.body) for message in peer.take("out")) == list(range(200))
    assert peer.take("in") == []
