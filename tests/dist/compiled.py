"""Build the optional compiled wheel, and test it.

``python -m tests.dist.compiled --to dist --test ENVIRONMENT`` does both.

mypyc compiles the modules that ``pyproject.toml`` names, in an unpacked sdist, so that the sources here stay clean. The wheel has
all other modules as they are. The tests run on the installed wheel, in an environment of its own without mypyc. On a machine
without a C compiler the command does nothing, and prints the reason.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOOK = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
    "hooks"
]["mypyc"]
MODULES: list[str] = HOOK["include"]
SHORT = ("amqp10/wire", "amqp10/message", "amqp10/spec", "amqp10/engine")
"""The tests of the compiled modules, and of the modules that use them most."""
LONG = ("test_cost.py", "test_hostile.py", "test_exactly_once.py", "test_chunks.py")
"""Tests that are left out: they try every case, or count costs."""


def missing() -> str:
    """Return what this machine lacks to compile; empty if it lacks nothing."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler: {compiler} was not found"
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return "" if header.exists() else f"the headers of Python are not installed: {header} is not there"


def run(command: list[str], folder: Path, **environment: str) -> None:
    """Run a command, whose output is shown; raise ``SystemExit`` if it fails."""
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:5])} ...: {done.returncode}")


def build(folder: Path) -> tuple[Path, Path]:
    """Return the compiled wheel, and the unpacked sdist that it is made of."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], ROOT)
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    [unpacked] = (folder / "sdist").iterdir()
    build_wheel = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    run(build_wheel, unpacked, HATCH_BUILD_HOOK_ENABLE_MYPYC="1")
    [wheel] = (folder / "wheel").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for module in MODULES:
        stem = module.removesuffix(".py")
        assert module in names, f"{module} is not in the wheel as it is"
        assert any(name.startswith(f"{stem}.") and not name.endswith(".py") for name in names), (
            f"{module} is not compiled"
        )
    return wheel, unpacked


def check(wheel: Path, unpacked: Path, environment: Path) -> None:
    """Install the wheel, and run the tests of the sdist on it."""
    python = str(environment / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    run(
        [
            python,
            *["-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--force-reinstall"],
            str(wheel),
        ],
        ROOT,
    )
    shutil.rmtree(unpacked / "trio_amqp10")  # The tests must import the installed package.
    names = [module.removesuffix(".py").replace("/", ".") for module in MODULES]
    code = f"import importlib\nfor name in {names}:\n    file = importlib.import_module(name).__file__\n    assert not file.endswith('.py'), file"
    run([python, "-c", code], unpacked)
    ignored = [f"--ignore-glob=tests/amqp10/engine/{name}" for name in LONG]
    run([python, "-m", "pytest", *ignored, *(f"tests/{part}" for part in SHORT)], unpacked)


def main() -> None:
    """Build the wheel, and keep it or test it if the options require that."""
    parser = argparse.ArgumentParser(prog="python -m tests.dist.compiled", description=__doc__)
    parser.add_argument("--to", type=Path, help="a folder to put the wheel in")
    parser.add_argument(
        "--test", type=Path, help="an environment with what the tests need, to test the wheel in"
    )
    given = parser.parse_args()
    lacks = missing()
    if lacks:
        print(f"skipped: {lacks}. The pure wheel needs none.")
        return
    with tempfile.TemporaryDirectory() as temporary:
        wheel, unpacked = build(Path(temporary))
        print(f"{wheel.name}: {wheel.stat().st_size} octets, {len(MODULES)} modules compiled", flush=True)
        if given.to:
            given.to.mkdir(exist_ok=True)
            shutil.copy(wheel, given.to)
        if given.test:
            check(wheel, unpacked, given.test.resolve())


if __name__ == "__main__":
    main()
