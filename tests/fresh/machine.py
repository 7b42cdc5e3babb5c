"""A machine made of layers: an overlay of its own, in namespaces of its own, with systemd as its first process or not.

It ends with the process that made it, and leaves nothing but its log: all mounts are in its own namespace.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from stacklib import cgroups
from tests.fresh import layers, played

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INTERFACE = "eth0"
PIP_CACHE = "/var/cache/pip"  # of all users
BOOT_S = 30
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
WITH_US = ("setpriv", "--pdeathsig", "KILL")  # what is started ends with this process, however that ends
FIRST = ("systemd", "(sd-stubinit)", "(sd-stub)")  # a machine's first process, as it calls itself


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What this machine is like.

    ``name``: its host name. ``disk``, ``memory``: in MB, 0: as much as there is. ``hosts``: lines of /etc/hosts.
    ``resolver``: of /etc/resolv.conf; empty: one that answers. ``umask``: octal digits. ``kvm``: what QEMU plays when
    it is asked for KVM, see `played.py`; empty: there is no /dev/kvm. ``caches``: files that were fetched before need
    not be fetched again; ``pip_cache``: nor need pip's. ``home``: where the checkout is. ``user``: who runs the
    commands; empty: root.
    """

    name: str = "fresh"
    systemd: bool = False
    disk: int = 0
    memory: int = 0
    hosts: str = "127.0.0.1 localhost\n127.0.1.1 fresh\n::1 localhost\n"
    resolver: str = ""
    ipv6: bool = True
    umask: str = "022"
    env: dict[str, str] = field(default_factory=dict)
    kvm: str = ""
    caches: bool = True
    pip_cache: bool = False
    home: str = layers.HOME
    user: str = ""


@dataclass(frozen=True)
class Said:
    """How a command ended: its status (-1: it took too long), all that it printed, and how long it took."""

    status: int
    text: str
    seconds: float

    @property
    def last_words(self) -> str:
        return "\n".join(self.text.strip().splitlines()[-25:])


class Machine:
    """``with Machine(layers, plan) as machine: machine.run(...)``"""

    def __init__(self, made: layers.Made, plan: Plan, upper: Path | None = None) -> None:
        self.made, self.plan = made, plan
        self.upper = upper
        self.top = Path(tempfile.mkdtemp(prefix="run-", dir=layers.shared("runs")))
        self.leader = 0
        self.commands: list[str] = []  # that were begun
        self._processes: list[subprocess.Popen[bytes]] = []  # of this machine, outside of it
        self._group = f"nova-fresh-{self.top.name}-units"

    def __enter__(self) -> Machine:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._halt()
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.top)], check=False)
        if self.plan.memory:
            with contextlib.suppress(OSError):
                memory_group(self.top.name).rmdir()

    def power_cut(self) -> None:
        """All processes end at once; the machine starts again with what was on its disk."""
        self._halt()
        self._start()

    # --- commands ----------------------------------------------------------------------------------------------------
    def run(self, command: str, seconds: float = 60, user: str | None = None) -> Said:
        """A shell's command in the checkout; ended when it takes too long. ``user``: another than the plan's."""
        started = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = self.begin(command, output, user)
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                status = -1
                kill(process)
            output.seek(0)
            text = output.read().decode(errors="replace")
        return Said(status, text, time.monotonic() - started)

    def begin(self, command: str, output: int | IO[bytes] = subprocess.DEVNULL,
              user: str | None = None) -> subprocess.Popen[bytes]:
        """The same, not waited for. It has a process group of its own, as in a terminal."""
        plan = self.plan
        who = plan.user if user is None else user
        self.commands.append(command)
        env = {"PATH": PATH, "HOME": f"/home/{who}" if who else "/root", "TERM": "dumb", "LANG": "C.UTF-8",
               **layers.environment(), **({"UV_CACHE_DIR": "/var/cache/uv"} if plan.caches else {}),
               **({"PIP_CACHE_DIR": PIP_CACHE} if plan.pip_cache else {}), **plan.env}
        script = f"umask {plan.umask}; cd /{plan.home}; {command}"
        as_user = ["setpriv", f"--reuid={who}", f"--regid={who}", "--init-groups"] if who else []
        words = ["nsenter", "-t", str(self.leader), "-a", *as_user]
        return subprocess.Popen([*words, "sh", "-c", script], env=env, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=output, start_new_session=True, preexec_fn=self._join)

    def ok(self, command: str, seconds: float = 60, user: str | None = None) -> str:
        said = self.run(command, seconds, user)
        assert said.status == 0, f"{command}: {said.status}\n{said.last_words}"
        return said.text

    def until_listens(self, port: int) -> None:
        """A listener is in the kernel's table of them: ports are in hex there."""
        shown = f":{port:04X} "
        tables = ("cat", "/proc/net/tcp", "/proc/net/tcp6")
        _until(lambda: any(shown in line.partition("00000000:0000 ")[0] for line in
                           self.in_network(*tables).splitlines() if " 0A " in line), 10, f"port {port}")

    def kill_inside(self, words: str) -> None:
        """The processes in this machine whose command line has these words: what they started goes on."""
        own = os.readlink(f"/proc/{self.leader}/ns/pid")
        for pid in [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]:
            with contextlib.suppress(OSError):
                said = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if os.readlink(f"/proc/{pid}/ns/pid") == own and words in said:
                    os.kill(pid, signal.SIGKILL)

    def _join(self) -> None:
        cgroups.join_process(self.leader)

    # --- the network -------------------------------------------------------------------------------------------------
    def connect(self) -> None:
        """A way out for packets that this machine begins to send; nothing comes in by it."""
        words = ["slirp4netns", "--configure", "--mtu=1500", "--disable-host-loopback", str(self.leader), INTERFACE]
        self.way_out = subprocess.Popen([*WITH_US, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self._processes.append(self.way_out)
        _until(lambda: INTERFACE in self.in_network("cat", "/proc/net/dev"), BOOT_S, "the way out")

    def cut(self) -> None:
        self.in_network("ip", "link", "set", INTERFACE, "down")

    def mend(self) -> None:
        self.in_network("ip", "link", "set", INTERFACE, "up")
        self.in_network("ip", "route", "add", "default", "via", "10.0.2.2", "dev", INTERFACE)

    def in_network(self, *words: str) -> str:
        """A command of ours in the machine's network: a small Debian has no tools for it."""
        return subprocess.run(["nsenter", "-t", str(self.leader), "-n", *words],
                              capture_output=True, text=True, check=False).stdout

    # --- making it ---------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        plan = self.plan
        log = (self.top / "console.log").open("wb")
        self._process = subprocess.Popen(
            [*WITH_US, *UNSHARE, "sh", "-ec", self._script()],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=self._limit, start_new_session=True)
        self._processes.append(self._process)
        _until(self._found, BOOT_S, "the machine", lambda: (self.top / "console.log").read_text(errors="replace"))
        self.in_network("ip", "link", "set", "lo", "up")
        self.connect()
        self._inside("/bin/sh", "-c", NODES)
        self._inside("/bin/sh", "-c", WRITABLE)
        if plan.systemd:
            state = ("systemctl", "is-active", "basic.target")
            _until(lambda: self._inside(*state).strip() == "active", BOOT_S, "systemd")
        if not plan.ipv6:
            names = [f"net.ipv6.conf.{interface}.disable_ipv6=1" for interface in ("all", "lo")]
            self.in_network("sysctl", "-q", "-w", *names)
        if plan.kvm:
            self._inside("/bin/sh", "-c", f"{played.KVM_NODE}; echo {plan.kvm} > {played.ANSWER}")

    def _script(self) -> str:
        plan, root = self.plan, self.top / "root"
        disk = self.top / "disk"
        upper, work = (self.upper, self.top / "work") if self.upper else (disk / "upper", disk / "work")
        # no layer may lie in another one, and all lie in this machine's own tree
        copied = self.made[:-1] if self.made[-1] == Path("/") else ()
        lower = ":".join(map(str, self.made[len(copied):]))
        lines = [f"mkdir -p {root} {disk}"]
        lines += [f"mount -t tmpfs -o size={plan.disk}m disk {disk}"] if plan.disk else []
        lines += [f"mkdir -p {upper} {work}", *(f"cp -a {layer}/. {upper}" for layer in copied),
                  f"mount -t overlay overlay -o lowerdir={lower},upperdir={upper},workdir={work} {root}",
                  f"for at in {root}/var/lib/nova-*; do test ! -d $at || mount -t tmpfs none $at; done",  # a stack's
                  f"printf %s {shlex.quote(plan.hosts)} > {root}/etc/hosts",
                  f"echo {plan.name} > {root}/etc/hostname",
                  f"rm -f {root}/etc/resolv.conf",
                  f"echo {shlex.quote(plan.resolver or 'nameserver 10.0.2.3')} > {root}/etc/resolv.conf"]
        words = ["systemd-nspawn", "-q", "-D", str(root), "--register=no", "--keep-unit", "--private-network",
                 "--capability=all", "--console=pipe", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
                 f"--hostname={plan.name}", *self._binds()]
        words += ["-b"] if plan.systemd else ["-a", "sleep", "infinity"]
        return "\n".join([*lines, f"SYSTEMD_NSPAWN_API_VFS_WRITABLE=network exec {shlex.join(words)}"])

    def _binds(self) -> list[str]:
        binds = [f"--bind-ro={path}" for path in layers.local_indexes()]
        if self.plan.caches:
            targets = {"debs": "/var/cache/apt/archives", "uv": "/var/cache/uv"}
            binds += [f"--bind={layers.shared(name)}:{target}" for name, target in targets.items()]
        binds += [f"--bind={layers.shared('pip', 0o777)}:{PIP_CACHE}"] if self.plan.pip_cache else []
        binds += [f"--bind-ro={played.PROGRAM}:/usr/local/bin/qemu-played"] if self.plan.kvm else []
        return binds

    def _found(self) -> bool:
        """The machine's first process: what nspawn, which is what unshare started, has started."""
        assert self._process.poll() is None, (self.top / "console.log").read_text(errors="replace")
        for spawner in children(self._process.pid):
            for pid in children(spawner):
                with contextlib.suppress(OSError):  # nspawn's helpers come and go
                    if Path(f"/proc/{pid}/comm").read_text().strip() in FIRST:
                        self.leader = pid
        return bool(self.leader)

    def _inside(self, *words: str) -> str:
        done = subprocess.run(["nsenter", "-t", str(self.leader), "-a", *words],
                              capture_output=True, text=True, check=False, env={"PATH": PATH})
        return done.stdout

    def _limit(self) -> None:
        """This process, and so all of the machine, in control groups that are nobody else's: units of two machines have
        the same names. One of them has so much memory."""
        if self.plan.systemd:
            systemds = [one for one in cgroups.here() if one.kind == "cgroup2" or "name=" in one.options]
            cgroups.join(self._group, systemds)
        if self.plan.memory:
            group = memory_group(self.top.name)
            for name in ("memory.max", "memory.limit_in_bytes"):
                if (group / name).exists():
                    (group / name).write_text(str(self.plan.memory << 20))
            (group / "cgroup.procs").write_text(str(os.getpid()))

    def _halt(self) -> None:
        for process in self._processes:
            kill(process)
        self._processes.clear()
        self.leader = 0
        if self.plan.systemd:
            cgroups.remove(self._group)


NODES = "mkdir -p /dev/net && mknod -m 666 /dev/net/tun c 10 200"
#: libvirt makes groups for guests; nspawn hands the hierarchies over for reading alone
WRITABLE = "for at in /sys/fs/cgroup/*; do mount -o remount,bind,rw $at; done"


def memory_group(name: str) -> Path:
    top = Path("/sys/fs/cgroup/memory")
    group = (top if top.is_dir() else Path("/sys/fs/cgroup")) / f"nova-fresh-{name}"
    group.mkdir(exist_ok=True)
    return group


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def kill(process: subprocess.Popen[bytes]) -> None:
    """The process and all of its group, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()


def _until(true: Callable[[], bool], seconds: float, what: str, words: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what} is not there after {seconds} s: {words()}"
        time.sleep(0.05)


def tools_missing() -> list[str]:
    return [name for name in ("debootstrap", "systemd-nspawn", "slirp4netns", "sysctl") if not shutil.which(name)]
