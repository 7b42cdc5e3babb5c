"""Kubernetes in small: pods are transient units of systemd that see the machine's own tree as their image."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.installers.site import STEP_S, Site

TOP = "/srv/pods"
#: Of an image for nova: its virtual environment comes first.
PATH = "/var/lib/openstack/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Pod:
    """One container, and what runs before it. Lines of ``before`` are for root.

    ``files``: in the pod -> in the machine, read-only, as ConfigMaps are mounted. ``folders``: the same for hostPath.
    ``on_host``: with the host's name and a tree that may be written to, as computes are."""

    name: str
    script: str
    files: Mapping[str, str]
    before: str = ""
    user: str = "nova"
    environment: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    on_host: bool = False


class Pods:
    """Those of one machine. A pod's name ends in a number that no other had: it is the name of its host, too."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._numbers = itertools.count(1)
        self._running: dict[str, str] = {}

    def job(self, pod: Pod) -> str:
        """What it printed; it has to end with 0."""
        return self._run(pod, f"{pod.name}-{next(self._numbers)}", "--wait --pipe --collect", STEP_S)

    def roll(self, pod: Pod, *, first_out: bool = False) -> None:
        """Start a new one beside the one that runs, which then ends. ``first_out``: one alone has the port."""
        name, former = f"{pod.name}-{next(self._numbers)}", self._running.pop(pod.name, "")
        if first_out:
            self._end(former)
        self._run(pod, name, "--property=Restart=always --property=RestartSec=2", 60)
        self._running[pod.name] = name
        if not first_out:
            self._end(former)

    def end(self, name: str) -> None:
        """``kubectl delete`` of what keeps it running."""
        self._end(self._running.pop(name))

    def pid(self, name: str) -> int:
        """Of the process that the unit started; 0 where none runs."""
        return int(self.site.machine.ok(f"systemctl show -P MainPID {self._running[name]}"))

    def inside(self, name: str, command: str) -> int:
        """``kubectl exec``; its exit code."""
        enter = f"nsenter -t {self.pid(name)} -m -u env PATH={PATH} setpriv --reuid=nova --regid=nova --init-groups"
        return self.site.machine.run(f"{enter} sh -c {shlex.quote(command)}", 120).status

    def logs(self, name: str) -> str:
        """``kubectl logs``."""
        return self.site.machine.ok(f"journalctl --no-pager -o cat -u {self._running[name]}")

    def _end(self, name: str) -> None:
        if name:
            self.site.machine.ok(f"systemctl stop {name}; systemctl reset-failed {name} 2>/dev/null || true", 120)

    def _run(self, pod: Pod, name: str, options: str, seconds: float) -> str:
        folder = f"{TOP}/{name}"
        self.site.write(f"{folder}/before", f"set -e\n{pod.before}\n", mode="0755")
        self.site.write(f"{folder}/start", f"set -e\n{pod.script}\n", mode="0755")
        self.site.machine.ok(f"install -d -m 0777 {folder}/shared")
        mounts = [f"BindPaths={folder}/shared:/tmp/pod-shared", "TemporaryFileSystem=/etc/nova:mode=0777",
                  *(f"BindReadOnlyPaths={source}:{target}" for target, source in pod.files.items()),
                  *(f"BindPaths={source}:{target}" for target, source in pod.folders.items()),
                  "PrivateTmp=yes", "KillMode=mixed", *([] if pod.on_host else ["ProtectSystem=strict"])]
        settings = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/var/lib/nova", **pod.environment}
        words = ["systemd-run", "--quiet", f"--unit={name}", *options.split(), *(f"--property={one}" for one in mounts),
                 *(f"--setenv={key}={value}" for key, value in settings.items()), "unshare", "--uts", "sh", "-c",
                 _start(pod, name, folder)]
        return self.site.machine.ok(" ".join(map(shlex.quote, words)), seconds)


def _start(pod: Pod, name: str, folder: str) -> str:
    hostname = "" if pod.on_host else f"hostname {name} && "
    return (f"{hostname}sh {folder}/before && exec setpriv --reuid={pod.user} --regid={pod.user} --init-groups "
            f"sh {folder}/start")
