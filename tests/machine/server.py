"""One server of a sandbox, as its owner and the operator see it, and as it is inside."""

from __future__ import annotations

from typing import Any

from tests.functional.backends import wait_until
from tests.machine.stack import Live, Sandbox

AWAKE_S, SETTLED_S = 120, 120


class Server:
    """``api``: its owner's; the operator's in general."""

    def __init__(self, sandbox: Sandbox, uuid: str, address: str, api: Live | None = None) -> None:
        self.sandbox, self.uuid, self.address = sandbox, uuid, address
        self.admin: Live = sandbox.api("admin")
        self.api = api or self.admin

    @property
    def host(self) -> str:
        return self.admin.show(self.uuid)["OS-EXT-SRV-ATTR:host"]

    @property
    def other_host(self) -> str:
        return next(name for name in self.sandbox.hosts if name != self.host)

    def act(self, action: str, body: Any = None) -> str:
        """Order an action; the request's id."""
        return self.api.act(self.uuid, action, body)

    def settled(self, *statuses: str) -> dict[str, Any]:
        return self.admin.settled(self.uuid, *statuses, seconds=SETTLED_S)

    def result_of(self, request: str) -> Any:
        """What an action that has ended says of itself: its message, None when it succeeded."""
        action = self.admin.get(f"/servers/{self.uuid}/os-instance-actions/{request}")["instanceAction"]
        return action["message"]

    # --- inside

    def ssh(self, command: str) -> str:
        return self.sandbox.ssh(self.address, command)

    def awake(self) -> None:
        wait_until("the guest answers", lambda: self.sandbox.ssh(self.address, "echo yes", code=None) == "yes\n",
                   AWAKE_S, 1)

    def uptime_s(self) -> float:
        return float(self.ssh("cat /proc/uptime").split()[0])

    def boot_id(self) -> str:
        """Another one for each time the guest's kernel starts."""
        return self.ssh("cat /proc/sys/kernel/random/boot_id").strip()

    def write(self, text: str, path: str = "/root/mark") -> None:
        self.ssh(f"echo {text} > {path}; sync")

    def read(self, path: str = "/root/mark") -> str:
        """Empty for a file that is not there."""
        return self.ssh(f"cat {path} 2>/dev/null; true").strip()

    # --- on its hosts

    def left_on(self, host: str) -> list[str]:
        """What a host has of it. (Its folder on shared storage is not one host's.)"""
        names = f"{self.uuid}_*" if self.sandbox.layout.choices.shared_storage else f"{self.uuid}*"
        folders = [path.name for path in self.sandbox.instances(host).glob(names)]
        script = f"virsh -q list --all --uuid; ps -eo args | grep '[{self.uuid[0]}]{self.uuid[1:]}'"
        reported = self.sandbox.run("sh", "-c", script, host=host, code=None)
        return folders + [line for line in reported.splitlines() if self.uuid in line]
