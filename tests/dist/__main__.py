"""Build the wheel and the sdist, look into both, and use the wheel in empty environments as a stranger would.

For each interpreter one environment without extras, in which a message goes through a container and the command says what it needs; for the first
one also each extra alone, and the oldest trio that the metadata allows. The environments get wheels only. Ends with 1 if anything fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

from trio_amqp10 import __version__

ROOT = Path(__file__).resolve().parents[2]
NAME = "trio_amqp10"

ROUND = """
import trio
import trio_amqp10 as amqp
from trio_amqp10.testing import open_container

async def main():
    async with open_container(queues=["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q") as sender:
            await sender.send({"id": 1})
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert delivery.message.body == {"id": 1}
            delivery.accept()
    assert "site-packages" in amqp.__file__, amqp.__file__

trio.run(main)
print(amqp.__version__, "with trio", trio.__version__)
"""
NEEDS_CLI = """
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "trio_amqp10", "--help"], capture_output=True, text=True)
assert done.returncode == 2 and "pip install 'trio-amqp10[cli]'" in done.stderr, done
"""
CLI = f"""
import subprocess, sys
from pathlib import Path
command = str(Path(sys.executable).with_name("amqp10"))
assert "sent" in subprocess.run([command, "demo"], capture_output=True, text=True, check=True).stdout
assert subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip().endswith("{__version__}")
"""
SPOOL = """
import subprocess, sys
import trio_amqp10.spark.lane_program
from trio_amqp10.testing import running_container
with running_container(queues=["orders"]) as url:
    command = [sys.executable, "-m", "trio_amqp10", "spool", f"{url}/orders", "--to", "spool", "--lane", "a", "--until-empty"]
    assert "spooled 0" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
"""
TEST = """
import subprocess, sys
from pathlib import Path
import opentelemetry.sdk, scramp, trustme
Path("pytest.ini").write_text("[pytest]\\ntrio_mode = true\\n")
Path("test_orders.py").write_text('''
from hypothesis import given, strategies as st
import trio_amqp10 as amqp

async def test_order_is_taken(amqp_container):
    amqp_container.add_queue("orders")
    async with amqp_container.connect() as conn:
        async with conn.open_sender("orders") as sender:
            await sender.send("tea")
        async with conn.open_receiver("orders") as receiver:
            assert (await receiver.receive()).message.body == "tea"

@given(st.binary())
def test_message_is_read_as_it_was_written(body):
    assert amqp.Message.from_payload(amqp.Message(body).to_payload()).body == body
''')
done = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_orders.py"], capture_output=True, text=True)
assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
"""
WORKS = {
    "scram": "import trio_amqp10.sasl as sasl; sasl.Scram('user', 'password')",
    "tls": "import cryptography",
    "ws": "import trio_amqp10.net.websocket",
    "selector": "from trio_amqp10.amqp10.filters import Selector; Selector('a = 1')",
    "otel": "import trio_amqp10.otel",
    "http": "import trio_amqp10.http.application, trio_amqp10.http.server",
    "kombu": "import trio_amqp10.kombu",
    "entra": "from trio_amqp10.spark.token_sources import EntraTokens; EntraTokens('https://eventhubs.azure.net/.default')",
    "spool": SPOOL,
    "cli": CLI,
    "test": TEST,
}
"""What has to work with an extra; the others are for work on the package, and for Spark there is ``make test-spark``."""

Command = list[str]


def run(command: Command, **options: object) -> str:
    """What it prints; raises ``SystemExit`` with what it says where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # a stranger's
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600, **options
    )  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ...: {done.returncode}\n{done.stdout}{done.stderr}")
    return str(done.stdout).strip()


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist; the sdist makes the same wheel again."""
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "again", filter="data")
    [unpacked] = (folder / "again").iterdir()
    again = folder / "from-sdist"
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(again)], cwd=unpacked)
    assert contents(next(again.iterdir())) == contents(wheel), "the sdist makes another wheel"
    return wheel, sdist


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist()}


def check_wheel(wheel: Path) -> None:
    """What has to be in it, and what must not be."""
    names = set(contents(wheel))
    info = f"{NAME}-{__version__}.dist-info"
    assert wheel.name == f"{NAME}-{__version__}-py3-none-any.whl", wheel.name
    wanted = {f"{NAME}/py.typed", f"{info}/METADATA", f"{info}/entry_points.txt"}
    wanted |= {f"{info}/licenses/{name}" for name in ("LICENSE-APACHE", "LICENSE-MIT")}
    assert wanted <= names, sorted(wanted - names)
    strange = [name for name in names if not name.startswith((f"{NAME}/", "pyspark_amqp10/", f"{info}/"))]
    assert not strange, strange
    foreign = {name for name in names if not name.endswith((".py", "py.typed")) and not name.startswith(info)}
    pages = {f"{NAME}/tools/trace/page.{kind}" for kind in ("css", "html", "js")}
    served = (ROOT / NAME / "http/page").iterdir()
    pages |= {f"{NAME}/http/page/{path.name}" for path in served if path.suffix in (".css", ".html", ".js")}
    assert foreign == pages, f"nothing but Python and the two pages is bundled: {foreign ^ pages}"
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / NAME).rglob("*.py")}
    assert files <= names, sorted(files - names)
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"{info}/METADATA").decode()
    assert "License-Expression: Apache-2.0 OR MIT" in metadata
    required = re.findall(r"^Requires-Dist: ([\w.-]+)(?![^\n]*extra ==)", metadata, re.MULTILINE)
    assert required == ["trio"], required


def check_sdist(sdist: Path) -> None:
    """It has what it takes to work on the package, and nothing that git does not have."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    kept = set(run(["git", "ls-files"], cwd=ROOT).splitlines())
    for name in ("Makefile", "README.md", "tests/test_dist.py", "docs/index.rst", "CHANGELOG.md"):
        assert name in names, name
    assert names - kept <= {"PKG-INFO", ".gitignore"}, sorted(names - kept)[:5]


def environment(folder: Path, python: str, *wishes: str) -> str:
    """The interpreter of a new environment that has these."""
    if python == sys.executable:
        venv.create(folder, with_pip=True)
    else:
        run([python, "-m", "venv", str(folder)])
    inside = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    pip = [inside, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--only-binary", ":all:"]
    run([*pip, *wishes])
    return inside


def main() -> None:
    """Do all of it, a line each."""
    parser = argparse.ArgumentParser(prog="python -m tests.dist", description=__doc__)
    parser.add_argument("--python", action="append", help="an interpreter; this one if none is given")
    pythons: list[str] = parser.parse_args().python or [sys.executable]
    oldest = re.findall(
        r"trio>=([\d.]+)", str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])
    )[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, sdist = build(folder)
        check_wheel(wheel)
        check_sdist(sdist)
        print(
            f"{wheel.name}: {wheel.stat().st_size} octets; {sdist.name}: {sdist.stat().st_size} octets",
            flush=True,
        )
        for number, python in enumerate(pythons):
            bare = environment(folder / f"bare{number}", python, str(wheel))
            run([bare, "-c", NEEDS_CLI], cwd=folder)
            print(f"{python}: {run([bare, '-W', 'error', '-c', ROUND], cwd=folder)}", flush=True)
        old = environment(folder / "oldest", pythons[0], str(wheel), f"trio=={oldest}")
        print(f"oldest trio: {run([old, '-c', ROUND], cwd=folder)}", flush=True)
        for extra, code in WORKS.items():
            inside = environment(folder / extra, pythons[0], f"{wheel}[{extra}]")
            run([inside, "-c", code], cwd=folder)
            run([inside, "-c", ROUND], cwd=folder)
            print(f"[{extra}]: works", flush=True)


if __name__ == "__main__":
    main()
