"""Chromium without a window, driven over a pipe by the DevTools protocol: one page, looked at and clicked."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

SECONDS: Final = 60.0
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

_BECOME: Final = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Becomes the browser, which reads commands from descriptor 3 and writes answers to descriptor 4."""

# Where an element is, with a guard that lets the next click through only if it is on that element.
_AIM: Final = """(() => {
  const wanted = %s;
  let hit = false;
  const guard = (event) => {
    hit = wanted.contains(event.target);
    if (!hit) { event.stopImmediatePropagation(); event.preventDefault(); }
    removeEventListener("click", guard, true);
  };
  window.aim?.hit();
  addEventListener("click", guard, true);
  window.aim = { hit() { removeEventListener("click", guard, true); return hit; } };
  wanted.scrollIntoViewIfNeeded();
  return wanted.getBoundingClientRect().toJSON();
})()"""


class Page:
    """A page in a browser; ``open_page`` makes one.

    Attributes:
        said: what the page wrote to its console, and its errors.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        self.events: list[str] = []

    def attach(self) -> None:
        """Get hold of an empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command, and its result."""
        self._number += 1
        number = self._number
        command = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                found: dict[str, Any] = message["result"]
                return found
            self._heard(message)

    def _heard(self, message: dict[str, Any]) -> None:
        method = message.get("method", "")
        self.events.append(method)
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(json.dumps(message["params"]))

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser said nothing for {SECONDS} s"
            octets = os.read(self._answers, 1 << 20)
            assert octets, "the browser has ended"
            self._buffer += octets
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def go(self, url: str, *, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        """Load a page, and wait for all of it."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self._heard(self._next())
        self.drawn()

    def drawn(self) -> None:
        """Wait until what was changed is on the screen."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, element: str) -> None:
        """Press the mouse over an element that is on the screen; ``element`` is an expression that gives it.

        What moves under the mouse meanwhile, as rows come in above it, is not pressed: the click is made again.
        """
        deadline = time.monotonic() + SECONDS
        while True:
            box = self.run(_AIM % element)
            place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)
            self.drawn()
            if self.run("window.aim?.hit() ?? true"):
                return
            assert time.monotonic() < deadline, f"{element} moves on, or is covered"

    def picture(self, path: Path, *, most: int | None = None) -> None:
        """Write what is on the screen, as PNG; with ``most``, the whole page, at most so many pixels of it from its top."""
        wanted: dict[str, Any] = {}
        if most is not None:
            whole = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": whole["width"], "height": min(most, whole["height"]), "scale": 1}
            wanted = {"clip": clip, "captureBeyondViewport": True}
        taken = self.call("Page.captureScreenshot", format="png", **wanted)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def open_page(folder: Path) -> Generator[Page]:
    """A browser with one page, as long as the block lasts.

    Args:
        folder: for its profile.

    Raises:
        FileNotFoundError: there is no ``chromium`` here.
    """
    if shutil.which("chromium") is None:
        raise FileNotFoundError("no chromium here: apt-get install chromium")
    command_out, command_in = os.pipe()
    answer_out, answer_in = os.pipe()
    arguments = [*_FLAGS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _BECOME, str(command_out), str(answer_in), "chromium", *arguments],
        pass_fds=(command_out, answer_in),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_out)
    os.close(answer_in)
    try:
        page = Page(command_in, answer_out)
        page.attach()
        yield page
    finally:
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(command_in)
        os.close(answer_out)
