"""A virtual machine run by QEMU for the tests of the guest image: emulated, without network beyond the loopback."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.functional.backends import free_port

KEYS = {" ": ("spc",), "\n": ("ret",), "-": ("minus",), "$": ("shift", "4"), "(": ("shift", "9"),
        ")": ("shift", "0"), "*": ("shift", "8"), ";": ("semicolon",), "/": ("slash",), ".": ("dot",)}
READY = re.compile(r"^nova-guest ready: (.*)$", re.MULTILINE)

# Run by QEMU for each connection of the guest to 169.254.169.254:80; argument: the directory that holds what is served.
SERVICE = """\
import pathlib, sys
path = sys.stdin.readline().split()[1]
while sys.stdin.readline().strip():
    pass
file = pathlib.Path(sys.argv[1], *path.strip("/").split("/"))
body = file.read_bytes() if file.is_file() else b"none"
status = b"200 OK" if file.is_file() else b"404 Not Found"
sys.stdout.buffer.write(b"HTTP/1.0 %s\\r\\nContent-Length: %d\\r\\n\\r\\n" % (status, len(body)) + body)
sys.stdout.flush()
"""


def write_metadata(directory: Path, uuid: str, key: str, user_data: str | None) -> Path:
    """Lay out openstack/latest/ below the directory, and return the directory."""
    latest = directory / "openstack/latest"
    latest.mkdir(parents=True)
    document = {"uuid": uuid, "name": "vm é1", "hostname": "vm1.novalocal", "public_keys": {"my.key": key + "\n"}}
    (latest / "meta_data.json").write_text(json.dumps(document))
    if user_data is not None:
        (latest / "user_data").write_text(user_data)
    return directory


@dataclass
class Machine:
    """One QEMU process. Use as a context manager; `scratch` is a directory of its own."""

    scratch: Path
    disk: Path
    arguments: Sequence[str] = ()
    metadata: Path | None = None
    nic: bool = True
    port: int = field(default_factory=free_port)

    def __enter__(self) -> Machine:
        self.console = self.scratch / "console.log"
        self.console.unlink(missing_ok=True)
        self.control = self.scratch / "qmp"
        command = ["qemu-system-x86_64", "-accel", "tcg", "-m", "128", "-smp", "1", "-nodefaults", "-vga", "std"]
        command += ["-display", "none", "-serial", f"file:{self.console}"]
        command += ["-qmp", f"unix:{self.control},server=on,wait=off"]
        command += ["-drive", f"file={self.disk},if=virtio,format=qcow2", *self.network(), *self.arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def network(self) -> list[str]:
        if not self.nic:
            return ["-nic", "none"]
        user = f"user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"
        if self.metadata:
            service = self.scratch / "service.py"
            service.write_text(SERVICE)
            forward = f"tcp:169.254.169.254:80-cmd:{sys.executable} {service} {self.metadata}"
            user += f",net=169.254.169.0/24,dhcpstart=169.254.169.15,guestfwd={forward}"
        return ["-netdev", user, "-device", "virtio-net-pci,netdev=n"]

    def output(self) -> str:
        return self.console.read_text(errors="replace").replace("\r", "") if self.console.exists() else ""

    def starved_s(self) -> float:
        """How long the machine has waited for a processor that others had; 0.0 where the kernel does not tell. What it
        does within a bound, it does within that bound of time that it was given."""
        waited = 0
        for file in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                waited = max(waited, int(file.read_text().split()[1]))
        return waited / 1e9

    def await_output(self, pattern: re.Pattern[str], seconds: float) -> re.Match[str]:
        """First match on the serial console; AssertionError with the console's text when it does not come in time."""
        begin, before = time.monotonic(), self.starved_s()
        while time.monotonic() - begin < min(seconds + self.starved_s() - before, 4 * seconds):
            found = pattern.search(self.output())
            if found:
                return found
            assert self.process.poll() is None, f"QEMU ended by itself; console:\n{self.output()}"
            time.sleep(0.05)
        raise AssertionError(f"no {pattern.pattern!r} within {seconds} s; console:\n{self.output()}")

    def facts(self, seconds: float = 60) -> dict[str, str]:
        """The ready line's facts, awaited."""
        line = self.await_output(READY, seconds)[1]
        return dict(word.split("=", 1) for word in line.split())

    def ssh(self, key: Path, command: str) -> subprocess.CompletedProcess[str]:
        options = ["UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "BatchMode=yes", "ConnectTimeout=20"]
        words = [word for option in options for word in ("-o", option)]
        return subprocess.run(
            ["ssh", "-q", "-F", "none", "-i", str(key), *words, "-p", str(self.port), "root@127.0.0.1", command],
            capture_output=True, text=True, timeout=60, check=False)  # fmt: skip

    def press_power_button(self) -> float:
        """Seconds until the machine was off, of those in which it had a processor."""
        self.order({"execute": "system_powerdown"})
        pressed, before = time.monotonic(), self.starved_s()
        starved = before
        while self.process.poll() is None:
            assert time.monotonic() < pressed + 30, "it does not go down"
            starved = max(starved, self.starved_s())
            time.sleep(0.02)
        return time.monotonic() - pressed - (starved - before)

    def order(self, *orders: dict[str, Any]) -> None:
        """Tell QEMU's monitor. AssertionError with its words when it refuses."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.control))
            replies = control.makefile("rw")
            replies.readline()
            for order in ({"execute": "qmp_capabilities"}, *orders):
                replies.write(json.dumps(order) + "\n")
                replies.flush()
                while "event" in (answer := json.loads(replies.readline())):
                    pass
                assert "return" in answer, answer

    def type(self, text: str) -> None:
        """On the machine's keyboard, as on an American one."""
        for character in text:
            keys = KEYS.get(character) or (("shift", character.lower()) if character.isupper() else (character,))
            pressed = [{"type": "qcode", "data": key} for key in keys]
            self.order({"execute": "send-key", "arguments": {"keys": pressed, "hold-time": 20}})
            time.sleep(0.05)

    def picture(self, file: Path, form: str = "png") -> Path:
        """What is on its screen."""
        self.order({"execute": "screendump", "arguments": {"filename": str(file), "format": form}})
        return file


def overlay(image: Path, directory: Path, size: str) -> Path:
    """A writable disk of this size on top of the image."""
    disk = directory / "disk.qcow2"
    qemu_img("create", "-q", "-f", "qcow2", "-b", str(image), "-F", "qcow2", str(disk), size)
    return disk


def qemu_img(*arguments: str) -> str:
    program = shutil.which("qemu-img") or "qemu-img"
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
