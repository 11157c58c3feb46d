"""Build the optional compiled wheel, and test it.

``python -m tests.dist.compiled --to dist --test ENVIRONMENT`` does both.

``hatch_build.py`` compiles the ``.pyx`` of the library with Cython, in an unpacked sdist, so that the sources here stay clean.
The tests run on the installed wheel, in an environment of its own without Cython. Then the modules are compiled again with
the C compiler's checks for addresses and undefined behaviour: a read or write out of bounds ends the tests there. On a
machine without a C compiler the command does nothing, and prints the reason.
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
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "trio_amqp10").rglob("*.pyx"))
TESTS = ("amqp10/wire", "amqp10/message", "amqp10/spec", "amqp10/engine")
"""The tests of the compiled modules, and of the modules that use them most."""
LONG = ("test_cost.py", "test_hostile.py", "test_exactly_once.py", "test_chunks.py")
"""Tests that are left out: they try every case, or count costs."""
CHECKED_TESTS = ("amqp10/message",)
FUZZED = "messages"
EXECUTIONS = 20_000
CHECKS = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"


def compiler() -> str:
    """Return the C compiler of this Python."""
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


def missing() -> str:
    """Return what this machine lacks to compile; empty if it lacks nothing."""
    if shutil.which(compiler()) is None:
        return f"there is no C compiler: {compiler()} was not found"
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    return "" if header.exists() else f"the headers of Python are not installed: {header} is not there"


def run(command: list[str], folder: Path, **environment: str) -> None:
    """Raises ``SystemExit`` where it fails; what it prints is seen."""
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:5])} ...: {done.returncode}")


def unpack(folder: Path) -> Path:
    """Build the sdist in ``folder``, and return the folder that it is unpacked in."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], ROOT)
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    [unpacked] = (folder / "sdist").iterdir()
    return unpacked


def build(unpacked: Path, folder: Path, **environment: str) -> Path:
    """Build the compiled wheel of an unpacked sdist in ``folder``, and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    run(command, unpacked, HATCH_BUILD_HOOK_ENABLE_CUSTOM="1", **environment)
    [wheel] = folder.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for module in MODULES:
        stem = module.removesuffix(".pyx")
        found = [name for name in names if name.startswith(f"{stem}.") and name.endswith((".so", ".pyd"))]
        assert found, f"{module} is not compiled"
    return wheel


def install(wheel: Path, python: str, folder: Path, **environment: str) -> None:
    """Install the wheel, and check that the library uses its compiled modules."""
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps"]
    run([*pip, "--force-reinstall", str(wheel)], ROOT)
    names = {module.removesuffix(".pyx").replace("/", ".") for module in MODULES}
    code = f"import sys, trio_amqp10.amqp10.message\nassert not {names} - sys.modules.keys()"
    run([python, "-c", code], folder, **environment)


def check(unpacked: Path, wheel: Path, checked: Path, environment: Path) -> None:
    """Run the tests of the sdist on both wheels."""
    python = str(environment / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    shutil.rmtree(unpacked / "trio_amqp10")  # what is tested is what was installed
    ignored = [f"--ignore-glob=tests/amqp10/engine/{name}" for name in LONG]
    install(wheel, python, unpacked)
    run([python, "-m", "pytest", *ignored, *(f"tests/{part}" for part in TESTS)], unpacked)
    runtime = subprocess.check_output([compiler(), "-print-file-name=libasan.so"], text=True).strip()
    # With Python's own allocator the checks would not see the end of an object. Objects that live until exit are no leak.
    checks = {"LD_PRELOAD": runtime, "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": "detect_leaks=0"}
    install(checked, python, unpacked, **checks)
    # The checks write past Python, where pytest would capture it.
    run(
        [python, "-m", "pytest", "--capture=sys", *(f"tests/{part}" for part in CHECKED_TESTS)],
        unpacked,
        **checks,
    )
    fuzz = [python, "-m", "tests.fuzz", FUZZED, "--executions", str(EXECUTIONS), "--seed", "1"]
    run(fuzz, unpacked, **checks)


def main() -> None:
    """Build, keep the wheel where that is asked for, and test."""
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
        folder = Path(temporary)
        unpacked = unpack(folder)
        wheel = build(unpacked, folder / "wheel")
        print(f"{wheel.name}: {wheel.stat().st_size} octets, compiled: {', '.join(MODULES)}", flush=True)
        if given.to:
            given.to.mkdir(exist_ok=True)
            shutil.copy(wheel, given.to)
        if given.test:
            checked = build(unpacked, folder / "checked", CFLAGS=CHECKS, LDFLAGS=CHECKS)
            check(unpacked, wheel, checked, given.test.resolve())


if __name__ == "__main__":
    main()
