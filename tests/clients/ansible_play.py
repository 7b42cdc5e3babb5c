"""A play of Ansible's collection openstack.cloud: play.yml beside this file; every task of it is a test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.clients.place import Place
from tests.clients.sample_data import IMAGE
from tests.clients.verdict import Ran

PLAY = Path(__file__).with_name("play.yml")
CLOUD = "devstack-admin"  # the entry that furnish writes
RUN_S = 600
REASON_CHARS = 400


def run(place: Place) -> list[Ran]:
    """A task that fails ends the play: those behind it did not run, and have failed."""
    values = {"cloud": CLOUD, "image": IMAGE, "ansible_python_interpreter": str(place.venv / "bin" / "python")}
    command = [str(place.venv / "bin" / "ansible-playbook"), "-i", "localhost,", "-e", json.dumps(values), str(PLAY)]
    done = subprocess.run(command, cwd=place.folder, env=environment(place), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=RUN_S, check=False)
    (place.folder / "play.log").write_text(done.stdout + done.stderr)
    begin = done.stdout.find("{")
    assert begin >= 0, f"ansible-playbook: {done.returncode} {(done.stdout + done.stderr)[-2000:]}"
    found = parsed(json.loads(done.stdout[begin:]))
    there = {ran.name for ran in found}
    return [*found, *(Ran(name, "fail", "did not run: an earlier task failed") for name in tasks()
                      if name not in there)]


def tasks() -> list[str]:
    [play] = yaml.safe_load(PLAY.read_text())
    return [task["name"] for task in play["tasks"]]


def parsed(report: dict[str, Any]) -> list[Ran]:
    """Of the output as JSON: a play's tasks, and each one's answer for the one host."""
    found: list[Ran] = []
    for task in report["plays"][0]["tasks"]:
        answer = task["hosts"].get("localhost", {})
        failed = answer.get("failed", False) or answer.get("unreachable", False)
        words = str(answer.get("msg", answer))[:REASON_CHARS]
        found.append(Ran(task["task"]["name"], "fail" if failed else "success", words if failed else ""))
    return found


def environment(place: Place) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    return {"LANG": "C.UTF-8", **kept, "PATH": f"{place.venv / 'bin'}:/usr/bin:/bin", "HOME": str(place.folder),
            "ANSIBLE_HOME": str(place.folder / "ansible"), "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
            "ANSIBLE_NOCOLOR": "1", "ANSIBLE_RETRY_FILES_ENABLED": "0", "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_PIPELINING": "1", "OS_CLIENT_CONFIG_FILE": str(place.folder / "clouds.yaml")}
