"""Client of a stack's supervisor, and the start of a supervisor that does not run."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

from .errors import StackError
from .layout import Layout
from .rooms import RoomPlan
from .spec import Daemon

ANSWER_SECONDS = 60.0
LOG_LINES = 15
LINE_LENGTH, LINE_HEAD = 600, 100  # characters that are kept of a long line, and how many of them from its start


class Control:
    """Client of the supervisor: one request for each call; safe for use by several threads."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def ask(self, patience: float = ANSWER_SECONDS, **request: object) -> dict:
        """Send a request and return the answer. Raises StackError if no supervisor runs or it refuses the request."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(patience)
                client.connect(str(self.layout.control_socket))
                client.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(client.makefile().readline() or "{}")
        except (FileNotFoundError, ConnectionError) as error:
            raise StackError(
                f"the stack in {self.layout.state} is not running", "start it with `bin/stack up`"
            ) from error
        except TimeoutError as error:
            raise StackError(
                f"the supervisor did not answer within {patience:.0f} s", f"see {self.layout.log('supervisor')}"
            ) from error
        if "error" in answer:
            raise StackError(answer["error"], answer["hint"])
        return answer

    def running(self) -> bool:
        try:
            return "pid" in self.ask(do="status")
        except StackError:
            return False

    def status(self) -> dict:
        return self.ask(do="status")

    def room_pid(self, room: str | None) -> int | None:
        """Return the PID of a room's init; None for the machine itself."""
        if room is None:
            return None
        pid = self.status()["rooms"].get(room)
        if pid is None:
            raise StackError(f"there is no host {room!r} in this stack", "`bin/stack status` lists the hosts")
        return pid

    def make_room(self, plan: RoomPlan) -> tuple[int, bool]:
        answer = self.ask(do="room", plan=plan.to_json())
        return answer["pid"], answer["created"]

    def start(self, *daemons: Daemon) -> str:
        """Start all in parallel, wait for each and return a summary. Raises StackError with the log's last lines."""
        changed = [d.name for d in daemons if self._starts(d)]
        for daemon in daemons:
            self.wait_ready(daemon.name, daemon.start_seconds)
        return f"started {', '.join(changed)}" if changed else "running"

    def _starts(self, daemon: Daemon) -> bool:
        before = {d["name"]: d["pid"] for d in self.status()["daemons"]}
        changed = self.ask(do="start", daemon=daemon.to_json())["changed"]
        return changed or before.get(daemon.name) is None

    def wait_ready(self, name: str, seconds: float) -> None:
        answer = self.ask(seconds + 10, do="wait", name=name, seconds=seconds)
        if answer.get("phase") == "ready":
            return
        what = "ends as soon as it starts" if answer.get("exits") else f"is not ready after {seconds:.0f} s"
        log = self.layout.log(name)
        raise StackError(
            f"{name} {what}; the end of {log}:\n{last_lines(log)}",
            "fix the cause and run `bin/stack up` again: it continues where it stopped",
        )

    def restart(self, name: str, seconds: float = 90) -> None:
        self.ask(do="restart", name=name)
        self.wait_ready(name, seconds)

    def shutdown(self) -> None:
        self.ask(120, do="shutdown")


def ensure_supervisor(layout: Layout) -> Control:
    """Return the client of the supervisor, which is started first if it does not run. Raises StackError."""
    control = Control(layout)
    if control.running():
        return control
    (layout.run / "notify").mkdir(parents=True, exist_ok=True)
    layout.run.chmod(0o711)
    layout.logs.mkdir(parents=True, exist_ok=True)
    with layout.log("supervisor").open("a") as log:
        subprocess.run(
            ["setsid", "--fork", sys.executable, "-S", "-m", "stacklib.supervisor", layout.run, layout.logs],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=True,
        )
    deadline = time.monotonic() + 20
    while not control.running():
        if time.monotonic() > deadline:
            raise StackError(f"the supervisor does not start:\n{last_lines(layout.log('supervisor'))}")
        time.sleep(0.05)
    return control


def last_lines(path: Path, count: int = LOG_LINES) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - 100 * 1024))
            lines = stream.read().decode(errors="replace").splitlines()
    except OSError:
        return "  (no log)"
    return "\n".join(f"  {shortened(line)}" for line in lines[-count:])


def shortened(line: str) -> str:
    """Return a long log line shortened to its start and its end, where a traceback has its cause. A line with a
    daemon's reason why it cannot start stays whole."""
    if len(line) <= LINE_LENGTH or "cannot start: " in line:
        return line
    return f"{line[:LINE_HEAD]} [...] {line[LINE_HEAD - LINE_LENGTH:]}"
