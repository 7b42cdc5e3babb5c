"""A container engine in small, for a machine whose own tree is every image: what kolla-ansible's module for containers,
its `docker exec` and its `docker inspect` ask for.

A container is a unit of systemd with mounts of its own: its volumes, and a copy of the image's /etc/nova. It runs
kolla's own start script as the image's user. What was asked for lies in ``/var/lib/played/NAME/spec.json``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

TOP, VOLUMES, IMAGE_ETC = Path("/var/lib/played"), Path("/var/lib/docker/volumes"), Path("/etc/nova.image")
VENV = "/var/lib/kolla/venv/bin"
PATH = f"{VENV}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Images whose Dockerfile ends without ``USER nova``.
OF_ROOT = ("nova-api",)
#: Which start script of kolla's an image has.
EXTEND = "/usr/local/share/kolla"
SAME = ("image", "volumes", "environment", "command", "privileged", "healthcheck")


class Container:
    """By name. ``spec`` has the module's own names."""

    def __init__(self, name: str) -> None:
        self.name, self.home = name, TOP / name
        self.unit = f"played-{name}.service"

    @property
    def spec(self) -> dict[str, Any] | None:
        path = self.home / "spec.json"
        return json.loads(path.read_text()) if path.exists() else None

    @property
    def pid(self) -> int:
        """0 where it does not run."""
        shown = subprocess.run(["systemctl", "show", "-P", "MainPID", self.unit], capture_output=True, text=True,
                               check=True)
        return int(shown.stdout)

    def differs(self, wanted: dict[str, Any]) -> bool:
        """From what runs: by what was asked for, or by files that kolla would copy anew."""
        spec = self.spec
        if not self.pid or spec is None or any((spec.get(key) or None) != (wanted.get(key) or None) for key in SAME):
            return True
        return self.run(["kolla_set_configs", "--check"], "root").returncode != 0

    def make(self, wanted: dict[str, Any]) -> None:
        """Its files, from the image's."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        shutil.copytree(IMAGE_ETC, self.home / "etc-nova", symlinks=True)
        (self.home / "run_command").write_text("")
        (self.home / "extend").write_text(_extend(_kind(wanted["image"])).read_text())
        for folder in ("defaults", "state"):
            (self.home / folder).mkdir()
        shutil.chown(self.home / "state", "nova", "nova")
        (self.home / "spec.json").write_text(json.dumps(wanted))

    def start(self) -> None:
        """In the background, and again whenever it ends."""
        self._systemd("--property=Restart=always", "--property=RestartSec=1", "--property=StartLimitIntervalSec=0")

    def run_once(self) -> subprocess.CompletedProcess[str]:
        """Until it ends."""
        return self._systemd("--wait", "--pipe", "--collect", check=False)

    def stop(self) -> None:
        subprocess.run(["systemctl", "stop", self.unit], capture_output=True, check=False)
        subprocess.run(["systemctl", "reset-failed", self.unit], capture_output=True, check=False)

    def run(self, words: list[str], user: str = "") -> subprocess.CompletedProcess[str]:
        """What ``docker exec`` does."""
        if self.spec is None or not self.pid:
            return subprocess.CompletedProcess(words, 1, "", f"no such container: {self.name}")
        who = user or _user(_kind(self.spec["image"]))
        inside = ["nsenter", "-t", str(self.pid), "-m", *_as(who), *words]
        return subprocess.run(inside, capture_output=True, text=True, check=False,
                              env=_environment(self.spec, who))

    def _systemd(self, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        spec = self.spec or {}
        self.stop()
        user = _user(_kind(spec["image"]))
        settings = [f"--setenv={key}={value}" for key, value in _environment(spec, user).items()]
        mounts = [f"--property=BindPaths={source}:{target}" for source, target in self._mounts(spec)]
        command = spec.get("command")
        words = ["sh", "-c", command] if command else ["bash", "/usr/local/bin/kolla_start"]
        return subprocess.run(["systemd-run", "--quiet", f"--unit={self.unit}", *options, *mounts, *settings,
                               "--property=KillMode=control-group", "--property=WorkingDirectory=/",
                               *_as(user), *words], capture_output=True, text=True, check=check)

    def _mounts(self, spec: dict[str, Any]) -> list[tuple[str, str]]:
        found = [(str(self.home / "etc-nova"), "/etc/nova"), (str(self.home / "run_command"), "/run_command"),
                 (str(self.home / "extend"), "/usr/local/bin/kolla_nova_extend_start"),
                 (str(self.home / "defaults"), "/etc/kolla/defaults"), (str(self.home / "state"), "/var/lib/nova")]
        for volume in filter(None, spec.get("volumes") or ()):
            source, target, *_options = volume.split(":")
            if not source.startswith("/"):
                folder = VOLUMES / source
                folder.mkdir(parents=True, exist_ok=True)
                source = str(folder)
            if source.rstrip("/") != target.rstrip("/") or source.rstrip("/") == "/var/lib/nova":
                found = [pair for pair in found if pair[1] != target.rstrip("/")]
                found.append((source.rstrip("/"), target.rstrip("/")))
        return found


def _kind(image: str) -> str:
    return image.rpartition("/")[2].partition(":")[0]


def _user(kind: str) -> str:
    return "root" if kind in OF_ROOT else "nova"


def _as(user: str) -> list[str]:
    return [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]


def _environment(spec: dict[str, Any], user: str) -> dict[str, str]:
    given = {key: "" if value is None else str(value) for key, value in (spec.get("environment") or {}).items()}
    home = "/root" if user == "root" else "/var/lib/nova"
    return {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", "KOLLA_CONFIG_STRATEGY": "COPY_ALWAYS", **given}


def _extend(kind: str) -> Path:
    path = Path(EXTEND, f"{kind}.sh")
    return path if path.exists() else Path(os.devnull)
