"""Domains: define, start, stop, inspect, and call the guest agent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import libvirt

from nova import errors
from nova.model.server.states import PowerState
from nova.virt.libvirt.connection.link import Link, coded, reason_of, unless
from nova.virt.libvirt.connection.objects import Connect, Domain
from nova.virt.libvirt.hypervisor import Definitions

P = PowerState
STOP_TRIES = 3
LIVE, CONFIG = libvirt.VIR_DOMAIN_AFFECT_LIVE, libvirt.VIR_DOMAIN_AFFECT_CONFIG
DETACHED = frozenset({libvirt.VIR_ERR_DEVICE_MISSING})

STATES = {
    libvirt.VIR_DOMAIN_NOSTATE: P.NOSTATE, libvirt.VIR_DOMAIN_RUNNING: P.RUNNING, libvirt.VIR_DOMAIN_BLOCKED: P.RUNNING,
    libvirt.VIR_DOMAIN_PAUSED: P.PAUSED, libvirt.VIR_DOMAIN_SHUTDOWN: P.RUNNING,  # shutting down: not off yet
    libvirt.VIR_DOMAIN_SHUTOFF: P.SHUTDOWN, libvirt.VIR_DOMAIN_CRASHED: P.CRASHED,
    libvirt.VIR_DOMAIN_PMSUSPENDED: P.SUSPENDED,
}
CRASHES = frozenset({libvirt.VIR_DOMAIN_SHUTOFF_CRASHED})
UNDEFINE = (libvirt.VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
            | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
            | libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM)  # stored with the guest's disks and removed with them
STATS = (libvirt.VIR_DOMAIN_STATS_BALLOON | libvirt.VIR_DOMAIN_STATS_VCPU | libvirt.VIR_DOMAIN_STATS_INTERFACE
         | libvirt.VIR_DOMAIN_STATS_BLOCK)
SILENT = frozenset({libvirt.VIR_ERR_AGENT_UNRESPONSIVE, libvirt.VIR_ERR_AGENT_UNSYNCED})
ANSWERED = "QEMU agent command"  # in libvirt's message when the agent returns an error (it has no error code)


class Domains(Link):
    def states(self) -> Mapping[str, PowerState]:
        return self.call("list its guests", _states)

    def state(self, server_uuid: str) -> PowerState | None:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("read a guest's state", server_uuid, _state)
        return None

    def noted(self, server_uuid: str, namespace: str) -> bool:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("read a guest's metadata", server_uuid, lambda domain: _noted(domain, namespace))
        return False

    def stats(self, server_uuid: str) -> Mapping[str, int | str]:
        return self.on_domain("read a guest's statistics", server_uuid, _stats)

    def definition(self, server_uuid: str) -> str:
        return self.on_domain("read the guest's definition", server_uuid, lambda domain: domain.XMLDesc())

    def definitions(self) -> Mapping[str, Definitions]:
        return self.call("read the definitions of its guests", _definitions)

    def define(self, xml: str) -> None:
        self.call("define the guest", lambda connection: connection.defineXML(xml))

    def definitions_of(self, server_uuid: str) -> Definitions:
        return self.on_domain("read the guest's definitions", server_uuid, _definitions_of)

    def attach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        self.on_domain("attach the device", server_uuid,
                       lambda domain: domain.attachDeviceFlags(xml, LIVE if running else CONFIG))

    def detach_device(self, server_uuid: str, xml: str, running: bool) -> None:
        self.on_domain("detach the device", server_uuid, lambda domain: _detach(domain, xml, running))

    def resize_disk(self, server_uuid: str, target: str, size_bytes: int) -> None:
        self.on_domain("resize the guest's disk", server_uuid,
                       lambda domain: domain.blockResize(target, size_bytes, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES))

    def start(self, server_uuid: str, held: bool = False) -> None:
        self.on_domain("start the guest", server_uuid, lambda domain: _start(domain, held))

    def request_shutdown(self, server_uuid: str) -> None:
        self.on_domain("ask the guest to shut down", server_uuid, _ask_to_stop)

    def power_off(self, server_uuid: str) -> None:
        with contextlib.suppress(errors.guest.NotDefined):
            self.on_domain("power the guest off", server_uuid, _stop)

    def undefine(self, server_uuid: str) -> None:
        with contextlib.suppress(errors.guest.NotDefined):
            self.on_domain("undefine the guest", server_uuid, lambda domain: domain.undefineFlags(UNDEFINE))

    def interrupt(self, server_uuid: str) -> None:
        self.on_domain("inject an NMI into the guest", server_uuid, lambda domain: domain.injectNMI())

    # --- the agent

    def set_password(self, server_uuid: str, user: str, password: str, timeout_s: int) -> None:
        self._ask("set the password", server_uuid, timeout_s, lambda domain: domain.setUserPassword(user, password))

    def freeze(self, server_uuid: str, timeout_s: int) -> None:
        self._ask("freeze the guest's file systems", server_uuid, timeout_s, lambda domain: domain.fsFreeze())

    def thaw(self, server_uuid: str, timeout_s: int) -> None:
        self._ask("thaw the guest's file systems", server_uuid, timeout_s, lambda domain: domain.fsThaw())

    def _ask(self, task: str, server_uuid: str, timeout_s: int, question: Callable[[Domain], object]) -> None:
        def asked(domain: Domain) -> None:
            try:
                domain.agentSetResponseTimeout(timeout_s)
                question(domain)
            except libvirt.libvirtError as error:
                if error.get_error_code() in SILENT:
                    raise errors.guest.AgentSilent(uuid=server_uuid, reason=reason_of(error)) from None
                if ANSWERED in reason_of(error):
                    raise errors.guest.AgentFailed(uuid=server_uuid, task=task, reason=reason_of(error)) from None
                raise
        self.on_domain(task, server_uuid, asked, lasts=True)  # the agent may use the whole timeout


# --- run in a native thread: only libvirt calls

def _state(domain: Domain) -> PowerState:
    state, reason = domain.state()
    if state == libvirt.VIR_DOMAIN_SHUTOFF and reason in CRASHES:
        return P.CRASHED
    return STATES.get(state, P.NOSTATE)


def _states(connection: Connect) -> dict[str, PowerState]:
    found = {}
    for domain in connection.listAllDomains():
        with coded(libvirt.VIR_ERR_NO_DOMAIN):  # removed since the list was made
            found[domain.UUIDString()] = _state(domain)
    return found


def _definitions(connection: Connect) -> dict[str, Definitions]:
    found = {}
    for domain in connection.listAllDomains():
        with coded(libvirt.VIR_ERR_NO_DOMAIN):  # removed since the list was made
            found[domain.UUIDString()] = _definitions_of(domain)
    return found


def _noted(domain: Domain, namespace: str) -> bool:
    with coded(libvirt.VIR_ERR_NO_DOMAIN_METADATA):
        return bool(domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, namespace))
    return False


def _stats(domain: Domain) -> dict[str, int | str]:
    """Return the domain's statistics; empty if the domain disappeared during the call."""
    found = domain.connect().domainListGetStats([domain], STATS, 0)
    return dict(found[0][1]) if found else {}


def _start(domain: Domain, held: bool) -> None:
    if not domain.isActive():
        unless(lambda: domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED if held else 0), domain.isActive)


def _definitions_of(domain: Domain) -> Definitions:
    running = domain.XMLDesc() if domain.isActive() else None
    return Definitions(running, domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE) if domain.isPersistent() else None)


def _detach(domain: Domain, xml: str, running: bool) -> None:
    with coded(*DETACHED):
        domain.detachDeviceFlags(xml, LIVE if running else CONFIG)


def _ask_to_stop(domain: Domain) -> None:
    if domain.isActive():
        unless(lambda: domain.shutdownFlags(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN),
               lambda: not domain.isActive())


def _stop(domain: Domain) -> None:
    """Power the domain off. Retries, because a QEMU that waits for a disk may survive the first SIGKILL for a while."""
    for attempt in range(STOP_TRIES):
        if not domain.isActive():
            return
        try:
            domain.destroy()
        except libvirt.libvirtError:
            if domain.isActive() and attempt == STOP_TRIES - 1:
                raise
