"""The part of the fake hypervisor that pauses, saves and copies guests, and calls guest agents."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET

from nova import errors
from nova.model.server.states import PowerState
from nova.virt.libvirt.hypervisor import CopyState

OFF = frozenset({PowerState.SHUTDOWN, PowerState.CRASHED, PowerState.NOSTATE})


class Actions:
    """Actions on guests. ``agent`` False: no agent answers. ``copy_fails``: reason of the next copies' failure;
    ``copy_hangs``: they never end. ``saved_broken``: saved memory is unreadable. ``frozen``, ``saved``,
    ``interrupted``: uuids of guests; ``passwords``: uuid -> (user, password); ``calls``: freezes, copies and thaws, in
    order."""

    xml: dict[str, str]
    power: dict[str, PowerState]

    def __init__(self) -> None:
        self.agent, self.saved_broken, self.copy_hangs, self.copy_fails = True, False, False, ""
        self.saved: set[str] = set()
        self.frozen: set[str] = set()
        self.passwords: dict[str, tuple[str, str]] = {}
        self.interrupted: list[str] = []
        self.calls: list[str] = []
        self.copying: dict[str, str] = {}
        self._ended: dict[str, CopyState] = {}

    def definition(self, server_uuid: str) -> str:
        self._known(server_uuid)  # type: ignore[attr-defined]
        return self.shown(server_uuid)  # type: ignore[attr-defined]

    def pause(self, server_uuid: str) -> None:
        self._needs(server_uuid, PowerState.RUNNING, PowerState.PAUSED)
        self._turn(server_uuid, PowerState.PAUSED)

    def unpause(self, server_uuid: str) -> None:
        self._needs(server_uuid, PowerState.RUNNING, PowerState.PAUSED)
        self._turn(server_uuid, PowerState.RUNNING)

    def save(self, server_uuid: str) -> None:
        if self._known(server_uuid) not in OFF:  # type: ignore[attr-defined]
            self.saved.add(server_uuid)
            self._turn(server_uuid, PowerState.SHUTDOWN)

    def has_saved(self, server_uuid: str) -> bool:
        return server_uuid in self.saved

    def restore(self, server_uuid: str, held: bool = False) -> None:
        if self.saved_broken:
            raise errors.guest.BrokenSave(uuid=server_uuid, reason="load of migration failed")
        self.start(server_uuid, held)  # type: ignore[attr-defined]

    def drop_saved(self, server_uuid: str) -> None:
        self._known(server_uuid)  # type: ignore[attr-defined]
        self.saved.discard(server_uuid)

    def interrupt(self, server_uuid: str) -> None:
        self._needs(server_uuid, PowerState.RUNNING, PowerState.PAUSED)
        self.interrupted.append(server_uuid)

    def set_password(self, server_uuid: str, user: str, password: str, timeout_s: int) -> None:
        self._ask_agent(server_uuid)
        self.passwords[server_uuid] = (user, password)

    def freeze(self, server_uuid: str, timeout_s: int) -> None:
        self._ask_agent(server_uuid)
        self.calls.append("freeze")
        self.frozen.add(server_uuid)

    def thaw(self, server_uuid: str, timeout_s: int) -> None:
        self._ask_agent(server_uuid)
        self.calls.append("thaw")
        self.frozen.discard(server_uuid)

    def begin_copy(self, server_uuid: str, xml: str) -> None:
        self._needs(server_uuid, PowerState.RUNNING, PowerState.PAUSED)
        if server_uuid in self.copying:
            raise errors.host.LibvirtRefused(task="copy the guest's disk", reason="another job is active")
        self.calls.append("copy")
        source, target, formats = self._files(server_uuid, xml)
        if self.copy_hangs:
            self.copying[server_uuid] = xml
            with open(target, "wb") as begun:
                begun.write(b"half")
            return
        if not self.copy_fails:
            subprocess.run(["qemu-img", "convert", "-U", *formats, source, target], check=True)
        self._ended[server_uuid] = CopyState(ended=True, failure=self.copy_fails)

    def copy_under_way(self, server_uuid: str) -> str | None:
        return self.copying.get(server_uuid)

    def copy_state(self, server_uuid: str) -> CopyState:
        if self._known(server_uuid) in OFF:  # type: ignore[attr-defined]
            return CopyState(ended=True, failure="the guest stopped")
        if server_uuid in self.copying:
            return CopyState(done_bytes=1)
        return self._ended[server_uuid]

    def stop_copy(self, server_uuid: str) -> None:
        if self.copying.pop(server_uuid, None):
            self._ended[server_uuid] = CopyState(ended=True, failure="stopped")

    def _files(self, server_uuid: str, xml: str) -> tuple[str, str, list[str]]:
        """Return the file of the only disk that a backup copies, the target file, and their given formats (without a
        format, a hypervisor probes the file)."""
        copied = ET.fromstring(xml).find("disks/disk[@backup='yes']")
        assert copied is not None
        disk = ET.fromstring(self.xml[server_uuid]).find(f"devices/disk/target[@dev='{copied.get('name')}']/..")
        source, target, driver = disk.find("source"), copied.find("target"), copied.find("driver")  # type: ignore
        told = disk.find("driver").get("type")  # type: ignore[union-attr]
        formats = [*(("-f", told) if told else ()), "-O", driver.get("type")]  # type: ignore[union-attr]
        return source.get("file"), target.get("file"), formats  # type: ignore[union-attr,return-value]

    def _ask_agent(self, server_uuid: str) -> None:
        self._needs(server_uuid, PowerState.RUNNING)
        if not self.agent:
            raise errors.guest.AgentSilent(uuid=server_uuid, reason="it is not connected")

    def _needs(self, server_uuid: str, *states: PowerState) -> None:
        if self._known(server_uuid) not in states:  # type: ignore[attr-defined]
            raise errors.host.LibvirtRefused(task="do that", reason="domain is not running")

    def _turn(self, server_uuid: str, state: PowerState) -> None:
        if self.power[server_uuid] != state:
            self.turn(server_uuid, state)  # type: ignore[attr-defined]
