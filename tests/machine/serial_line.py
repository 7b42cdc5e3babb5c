"""A shell on the first serial port of a guest that libvirt runs: the tiny guest lets root in there."""

from __future__ import annotations

import os
import re
import select
import subprocess
import termios
import time
import tty

WHERE = "\x1b[6n"  # a shell asks where the cursor is

class Serial:
    """Use as a context manager, one at a time a guest."""

    def __init__(self, server_uuid: str) -> None:
        self._uuid, self._number, self._heard = server_uuid, 0, ""

    def __enter__(self) -> Serial:
        listed = subprocess.run(["virsh", "ttyconsole", self._uuid], capture_output=True, text=True, check=True)
        self._line = os.open(listed.stdout.strip(), os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self._line, termios.TCSANOW)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._line)

    def log_in(self, seconds: float = 180) -> None:
        """Wait for a shell; AssertionError with what was heard when none comes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._write("\n")
            if heard := self._await(r"login: $|[#$] $", 3):
                if not heard.group().startswith("login"):
                    self.run("stty -echo 2>/dev/null; PS1='# '")
                    return
                self._write("root\n")
                self._await(r"[#$] $", 5)
        raise AssertionError(f"no shell on the serial line; heard: {self._heard[-2000:]}")

    def run(self, command: str, seconds: float = 60) -> str:
        """What a command says. AssertionError when it fails or takes longer."""
        self._number += 1
        self._heard = ""
        mark = f"{self._number}-{os.getpid()}"
        self._write(f"echo be''gin-{mark}; {command}; echo e''nd-{mark}-$?\n")
        found = self._await(rf"begin-{mark}\n(.*?)end-{mark}-(\d+)\n", seconds)
        assert found, f"{command!r} did not end within {seconds} s; heard: {self._heard[-2000:]}"
        assert found[2] == "0", f"{command!r} failed ({found[2]}): {found[1]}"
        return found[1].strip()

    def uptime(self) -> float:
        return float(self.run("cut -d ' ' -f 1 /proc/uptime"))

    def boot_id(self) -> str:
        """Another one for each time the guest's kernel starts."""
        return self.run("cat /proc/sys/kernel/random/boot_id")

    def _write(self, text: str) -> None:
        os.write(self._line, text.encode())

    def _await(self, pattern: str, seconds: float) -> re.Match[str] | None:
        end = time.monotonic() + seconds
        while True:
            if found := re.search(pattern, self._heard, re.DOTALL):
                return found
            left = end - time.monotonic()
            if left <= 0:
                return None
            if select.select([self._line], [], [], left)[0]:
                try:
                    heard = os.read(self._line, 4096).decode(errors="replace")
                    self._heard += heard.replace("\r", "").replace(WHERE, "")
                except OSError:
                    return None
