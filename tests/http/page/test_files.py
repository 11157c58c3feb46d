"""The files of the page: what is served, and under which policy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import trio_amqp10
from tests.http.served import served
from trio_amqp10.http.page.files import FILES, POLICY

FOLDER = Path(trio_amqp10.__file__).parent / "http/page"


def test_every_file_of_the_package_has_a_path_and_the_other_way_round() -> None:
    kept = {path.name for path in FOLDER.iterdir() if path.suffix in (".html", ".css", ".js")}
    assert kept == set(FILES.values())


@pytest.mark.parametrize("path", FILES)
async def test_file_is_served_under_a_strict_policy(path: str) -> None:
    async with served() as client:
        answer = await client.http.get(path)
    assert answer.status_code == 200
    assert answer.content == (FOLDER / FILES[path]).read_bytes()
    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript"}[FILES[path].rpartition(".")[2]]
    assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_file_has_inline_script_or_style_or_leads_to_a_network() -> None:
    for name in FILES.values():
        text = (FOLDER / name).read_text("utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg\")", text), name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        )
    page = (FOLDER / "page.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", page)


def test_scripts_import_only_what_is_served() -> None:
    for name in FILES.values():
        for imported in re.findall(r"from \"\./(\w+\.js)\"", (FOLDER / name).read_text("utf-8")):
            assert imported in FILES.values(), (name, imported)


async def test_page_needs_the_login_of_everything_else() -> None:
    async with served(users={"ada": "x"}) as client:
        assert (await client.http.get("/")).status_code == 200
        client.http.auth = None
        for path in FILES:
            answer = await client.http.get(path)
            assert (answer.status_code, answer.headers["www-authenticate"][:5]) == (401, "Basic")


VISIT = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


async def test_link_of_another_origin_may_lead_to_the_page_and_to_nothing_else() -> None:
    async with served() as client:
        assert (await client.http.get("/", headers=VISIT)).status_code == 200
        assert (await client.http.get("/api/whoami", headers=VISIT)).status_code == 403
        for name, value in (("Sec-Fetch-Dest", "iframe"), ("Sec-Fetch-Mode", "no-cors")):
            assert (await client.http.get("/", headers={**VISIT, name: value})).status_code == 403
        assert (
            await client.http.get("/", headers={**VISIT, "Origin": "https://evil.example"})
        ).status_code == 403
        assert (await client.http.post("/", headers=VISIT)).status_code == 403


def test_container_without_http_loads_nothing_of_it() -> None:
    script = "import sys, trio_amqp10.container; print([name for name in sys.modules if 'amqp10.http' in name or 'starlette' in name])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
