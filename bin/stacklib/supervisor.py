"""The supervisor: one process for each stack, which starts, monitors, restarts and stops the stack's daemons.

It has one thread, one loop and no locks. Clients control it over a unix socket (see control.py): one JSON request and
one JSON answer for each line. It ends only processes that it started itself, and their orphaned children.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import children, kernel, rooms
from .errors import StackError
from .machine import Machine, Order, Phase
from .notify import NotifySocket
from .probes import fork_probe
from .rotation import rotate
from .spawn import Place, spawn
from .spec import Daemon, from_json

ROTATE_EVERY = 20.0  # seconds


@dataclass
class Entry:
    daemon: Daemon
    machine: Machine
    pid: int | None = None
    probe: int | None = None
    notify: NotifySocket | None = None
    waiters: list[tuple[socket.socket, float]] = field(default_factory=list)


class Supervisor:
    def __init__(self, run: Path, logs: Path) -> None:
        self.run, self.logs = run, logs
        self.entries: dict[str, Entry] = {}
        self.rooms: dict[str, int] = {}
        self.selector = selectors.DefaultSelector()
        self.buffers: dict[socket.socket, bytes] = {}
        self.stopping: socket.socket | None = None  # the client that requested the shutdown and waits for its end
        self.down = False
        self.next_rotation = time.monotonic() + ROTATE_EVERY

    # --- the loop ----------------------------------------------------------------------------------------------------
    def serve(self, listener: socket.socket) -> None:
        reader, writer = socket.socketpair()
        for end in (reader, writer):
            end.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener))
        self.selector.register(reader, selectors.EVENT_READ, lambda: self._signals(reader))
        while not (self.down and self._finished()):
            for key, _ in self.selector.select(self._patience()):
                key.data()
            self._timers()

    def _patience(self) -> float:
        now = time.monotonic()
        dues = [e.machine.due for e in self.entries.values() if e.machine.due]
        dues += [deadline for e in self.entries.values() for _, deadline in e.waiters]
        return max(0.0, min([self.next_rotation, *dues]) - now)

    def _signals(self, reader: socket.socket) -> None:
        numbers = reader.recv(4096)
        if any(number in (signal.SIGTERM, signal.SIGINT) for number in numbers):
            self._begin_shutdown()
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if any(entry.pid == ended.si_pid for entry in self.entries.values()):
                    _end_workers(ended.si_pid)
                self._buried(ended.si_pid, os.waitstatus_to_exitcode(os.waitpid(ended.si_pid, 0)[1]))

    def _buried(self, pid: int, code: int) -> None:
        now = time.monotonic()
        for entry in self.entries.values():
            if entry.pid == pid:
                self._end_probe(entry)
                entry.pid = None
                if entry.machine.phase is not Phase.STOPPING:
                    self._say(entry, f"ended unexpectedly with status {code}")
                self._obey(entry, entry.machine.exited(now))
                self._record()
                self._tell_waiters(entry)
            elif entry.probe == pid:
                entry.probe = None
                if code == 0:
                    self._became_ready(entry)
        for name in [name for name, init in self.rooms.items() if init == pid]:
            del self.rooms[name]

    def _timers(self) -> None:
        now = time.monotonic()
        for entry in self.entries.values():
            self._obey(entry, entry.machine.timer(now))
            self._tell_waiters(entry)
        if now >= self.next_rotation:
            self.next_rotation = now + ROTATE_EVERY
            rotate(self.logs)
        if self.down:
            self._stop_next_tier()

    # --- one daemon --------------------------------------------------------------------------------------------------
    def _obey(self, entry: Entry, orders: list[Order]) -> None:
        for order in orders:
            if order is Order.SPAWN:
                self._spawn(entry)
            else:
                self._signal(entry, signal.SIGKILL if order is Order.KILL else entry.daemon.stop_signal)

    def _spawn(self, entry: Entry) -> None:
        daemon = entry.daemon
        room = self.rooms.get(daemon.room) if daemon.room else None
        if daemon.room and room is None:
            self._say(entry, f"cannot start: room {daemon.room} is gone")
            self._obey(entry, entry.machine.exited(time.monotonic()))
            return
        if daemon.probe.kind == "notify" and not entry.notify:
            entry.notify = NotifySocket(self.run / "notify" / f"{daemon.name}.sock", daemon.user)
            self.selector.register(entry.notify.socket, selectors.EVENT_READ, lambda: self._notified(entry))
        place = Place(self.logs / f"{daemon.name}.log", room, entry.notify.path if entry.notify else None)
        try:
            entry.pid = spawn(daemon, place)
        except OSError as error:
            self._say(entry, f"cannot start: {error}")
            self._obey(entry, entry.machine.exited(time.monotonic()))
            return
        self._record()
        if not entry.notify:
            entry.probe = fork_probe(daemon.probe, room, daemon.start_seconds * 10)

    def _signal(self, entry: Entry, number: int) -> None:
        """Send the stop signal only to the daemon, so that it ends its workers in order; SIGKILL to its whole session.
        Do nothing while it has no process: PID 0 would be the supervisor's own session."""
        if entry.pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(entry.pid, number)
            else:
                os.kill(entry.pid, number)

    def _notified(self, entry: Entry) -> None:
        if entry.notify and entry.notify.says_ready(entry.pid):
            self._became_ready(entry)

    def _became_ready(self, entry: Entry) -> None:
        entry.machine.ready(time.monotonic())
        self._tell_waiters(entry)

    def _end_probe(self, entry: Entry) -> None:
        if entry.probe:
            with contextlib.suppress(ProcessLookupError):
                os.kill(entry.probe, signal.SIGKILL)
            entry.probe = None

    def _say(self, entry: Entry, text: str) -> None:
        with open(self.logs / f"{entry.daemon.name}.log", "a") as log:
            log.write(f"{time.strftime('%F %T')} stack: {entry.daemon.name}: {text}\n")

    def _tell_waiters(self, entry: Entry) -> None:
        now, machine = time.monotonic(), entry.machine
        for client, deadline in list(entry.waiters):
            if machine.phase is Phase.READY or machine.hopeless or machine.phase is Phase.STOPPED or now >= deadline:
                entry.waiters.remove((client, deadline))
                self._answer(client, {"phase": machine.phase.value, "exits": machine.exits})

    def _record(self) -> None:
        children.write(self.run, [e.pid for e in self.entries.values() if e.pid])

    # --- requests ----------------------------------------------------------------------------------------------------
    def _accept(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        client.setblocking(False)
        self.buffers[client] = b""
        self.selector.register(client, selectors.EVENT_READ, lambda: self._read(client))

    def _read(self, client: socket.socket) -> None:
        try:
            data = client.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._hang_up(client)
            return
        self.buffers[client] += data
        while b"\n" in self.buffers.get(client, b""):
            line, _, self.buffers[client] = self.buffers[client].partition(b"\n")
            self._request(client, line)

    def _request(self, client: socket.socket, line: bytes) -> None:
        try:
            request = json.loads(line)
            answer = REQUESTS[request["do"]](self, client, request)
        except StackError as error:
            answer = {"error": error.message, "hint": error.hint}
        except (ValueError, KeyError, TypeError) as error:
            answer = {"error": f"not a request: {type(error).__name__}: {error}", "hint": ""}
        if answer is not None:
            self._answer(client, answer)

    def _answer(self, client: socket.socket, answer: dict) -> None:
        try:
            client.setblocking(True)
            client.settimeout(5)
            client.sendall(json.dumps(answer).encode() + b"\n")
            client.setblocking(False)
        except OSError:
            self._hang_up(client)

    def _hang_up(self, client: socket.socket) -> None:
        if self.buffers.pop(client, None) is not None:
            self.selector.unregister(client)
            client.close()
        for entry in self.entries.values():
            entry.waiters = [w for w in entry.waiters if w[0] is not client]

    def _entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise StackError(f"no such daemon: {name!r}", "`bin/stack status` lists the daemons")
        return self.entries[name]

    def do_start(self, _: socket.socket, request: dict) -> dict:
        """Start a daemon; restart a running one only if its fingerprint has changed."""
        daemon = from_json(request["daemon"])
        now = time.monotonic()
        entry = self.entries.get(daemon.name)
        if entry is None:
            entry = self.entries[daemon.name] = Entry(daemon, Machine(daemon.stop_seconds))
        changed = entry.daemon.fingerprint != daemon.fingerprint
        entry.daemon = daemon
        self._obey(entry, entry.machine.restart(now) if changed else entry.machine.start(now))
        return {"changed": changed}

    def do_wait(self, client: socket.socket, request: dict) -> None:
        entry = self._entry(request["name"])
        entry.waiters.append((client, time.monotonic() + float(request["seconds"])))
        self._tell_waiters(entry)

    def do_stop(self, _: socket.socket, request: dict) -> dict:
        entry = self._entry(request["name"])
        self._obey(entry, entry.machine.stop(time.monotonic()))
        return {}

    def do_restart(self, _: socket.socket, request: dict) -> dict:
        entry = self._entry(request["name"])
        self._obey(entry, entry.machine.restart(time.monotonic()))
        return {}

    def do_kill(self, _: socket.socket, request: dict) -> dict:
        """Send a signal to a daemon, for fault tests that do not know its PID."""
        entry = self._entry(request["name"])
        self._signal(entry, int(request["signal"]))
        return {"pid": entry.pid}

    def do_room(self, _: socket.socket, request: dict) -> dict:
        plan = rooms.plan_from_json(request["plan"])
        created = plan.name not in self.rooms
        if created:
            self.rooms[plan.name] = rooms.create(plan)
        return {"pid": self.rooms[plan.name], "created": created}

    def do_status(self, *_: object) -> dict:
        now = time.monotonic()
        return {
            "pid": os.getpid(),
            "rooms": self.rooms,
            "daemons": [
                {
                    "name": e.daemon.name,
                    "room": e.daemon.room,
                    "phase": e.machine.phase.value,
                    "pid": e.pid,
                    "seconds": round(now - e.machine.since),
                    "restarts": e.machine.restarts,
                    "tier": e.daemon.tier,
                }
                for e in self.entries.values()
            ],
        }

    def do_shutdown(self, client: socket.socket, _: dict) -> None:
        self.stopping = client
        self._begin_shutdown()

    # --- the end -----------------------------------------------------------------------------------------------------
    def _begin_shutdown(self) -> None:
        self.down = True
        self._stop_next_tier()

    def _stop_next_tier(self) -> None:
        """Stop the highest tier that still runs; the next tier is stopped when all daemons of this one have ended."""
        live = [e for e in self.entries.values() if e.machine.phase is not Phase.STOPPED]
        top = max((e.daemon.tier for e in live), default=None)
        for entry in live:
            if entry.daemon.tier == top and entry.machine.phase is not Phase.STOPPING:
                self._obey(entry, entry.machine.stop(time.monotonic()))

    def _finished(self) -> bool:
        if any(e.machine.phase is not Phase.STOPPED for e in self.entries.values()):
            return False
        children.end(list(self.rooms.values()), now=True)
        children.end(children.of(os.getpid()))
        children.write(self.run, [])
        if self.stopping:
            self._answer(self.stopping, {})
        return True


def _end_workers(pid: int) -> None:
    """Kill the workers of a dead daemon, which may keep its port. Called before the daemon is reaped: its PID cannot
    have been reused."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


REQUESTS = {name.removeprefix("do_"): getattr(Supervisor, name) for name in dir(Supervisor) if name.startswith("do_")}


def main(run: Path, logs: Path) -> int:
    """Run in the foreground until a shutdown request. The socket is the lock: one supervisor for each stack."""
    kernel.adopt_orphans()
    os.umask(0o027)
    path = run / "supervisor.sock"
    children.end_recorded(run)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(64)
    with contextlib.suppress(FileNotFoundError):
        rotate(logs)
    try:
        Supervisor(run, logs).serve(listener)
    finally:
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
