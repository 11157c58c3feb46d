"""The commands of the page about the HTTP API print what the page shows.

Requests are made here as ``curl`` makes them, so that the page is tested on machines without it.
"""

from __future__ import annotations

import argparse
import re
import shlex
from typing import NoReturn

import httpx
import pytest

from tests.test_docs import ROOT, blocks
from trio_amqp10.container import Container

from .served import served

PAGE = ROOT / "docs/how-to" / "http-api.rst"


class Curl(argparse.ArgumentParser):
    """The options of ``curl`` that the page has; any other is a failure."""

    def __init__(self) -> None:
        super().__init__(prog="curl", allow_abbrev=False, exit_on_error=False)
        self.add_argument("-s", dest="silent", action="store_true", required=True)
        self.add_argument("-u", dest="user", default="")
        self.add_argument("-X", dest="method")
        self.add_argument("-H", dest="headers", action="append", default=[])
        self.add_argument("-d", dest="data")
        self.add_argument("-w", dest="after", default="")
        self.add_argument("url")

    def error(self, message: str) -> NoReturn:
        pytest.fail(f"curl: {message}")


async def printed_by(command: str, port: int) -> str:
    """What ``curl`` prints: the body of the answer, and the text of ``-w``."""
    program, *arguments = shlex.split(command)
    assert program == "curl", command
    asked = Curl().parse_args(arguments)
    user, _, password = asked.user.partition(":")
    headers = dict(header.split(": ", 1) for header in asked.headers)
    if asked.data is not None:
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.request(
            asked.method or ("GET" if asked.data is None else "POST"),
            asked.url.replace("//localhost:15672/", f"//127.0.0.1:{port}/"),
            auth=(user, password),
            headers=headers,
            content=asked.data,
        )
    after: str = asked.after.replace("%{http_code}", str(answer.status_code)).replace("\\n", "\n")
    assert "%" not in after, command
    return answer.text + after


async def test_commands_of_the_page_print_what_it_shows() -> None:
    [text] = [block.text for block in blocks(PAGE) if block.kind == "console"]
    commands = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    async with served(Container("box", strict=True), users={"ada": "enigma"}) as client:
        for command, _, shown in (one.partition("\n") for one in commands):
            assert (await printed_by(command, client.port)).strip() == shown.strip(), command
