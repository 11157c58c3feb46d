"""A headless Chromium, driven by the DevTools protocol over a pair of pipes: no port, and nothing to install beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Chromium"]

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
_SECONDS: Final = 10


class Chromium:
    """One page, in which one address after the other is opened.

    Args:
        folder: for its profile; empty.

    Raises:
        FileNotFoundError: there is no ``chromium`` here.
    """

    def __init__(self, folder: Path) -> None:
        if (program := shutil.which("chromium")) is None:
            raise FileNotFoundError("no chromium here: apt-get install chromium")
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        # It reads commands at descriptor 3 and writes answers at 4; the shell puts them there.
        words = [program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "sh", *words],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False

    def __enter__(self) -> Self:
        [page, *_] = [
            each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        ]
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._commands)
        self._process.terminate()
        self._process.wait(_SECONDS)
        os.close(self._answers)

    def call(self, method: str, **parameters: Any) -> Any:
        """Have it do something, and wait for the answer.

        Raises:
            RuntimeError: it refuses.
        """
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._commands, json.dumps(asked).encode() + b"\0")
        while (said := self._read()).get("id") != self._number:
            self._loaded |= said.get("method") == "Page.loadEventFired"
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']['message']}")
        return said["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            octets = os.read(self._answers, 65536)
            if not octets:
                raise EOFError("Chromium ended")
            self._buffer += octets
        said, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(said)
        return found

    def open(self, url: str, width: int) -> None:
        """Show a page in a window of this width, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self._loaded = False
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._loaded = self._read().get("method") == "Page.loadEventFired"

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def screenshot(self, height: int) -> bytes:
        """The page as PNG, from its top, at most so high."""
        whole = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": whole["width"], "height": min(height, whole["height"]), "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        return b64decode(shot["data"])
