"""Paused guests (held in memory), and guest memory saved on disk (libvirt's managed save)."""

from __future__ import annotations

import contextlib

import libvirt

from nova import errors
from nova.virt.libvirt.connection.domains import Domains
from nova.virt.libvirt.connection.link import unless
from nova.virt.libvirt.connection.objects import Domain

#: libvirt waits 30 s for another call on the same guest: a save may still run after its caller died.
SAVE_TRIES = 20
#: Messages of libvirt and QEMU about unreadable saved memory, as opposed to a host that cannot run the guest now.
UNREADABLE = ("load of migration failed", "save image", "saved image", "savevm", "migration stream", "job 'restore'",
              "job 'migration in'", "failed to read qemu header", "magic is incorrect", "error while loading state")


class MemoryConnection(Domains):
    def pause(self, server_uuid: str) -> None:
        self.on_domain("pause the guest", server_uuid, _pause)

    def unpause(self, server_uuid: str) -> None:
        self.on_domain("resume the guest", server_uuid, _unpause)

    def save(self, server_uuid: str) -> None:
        try:
            self.on_domain("save the guest's memory", server_uuid, _save, lasts=True)
        except errors.host.LibvirtDown:  # libvirtd was restarted: a save that has begun continues, or begins again
            self.on_domain("save the guest's memory", server_uuid, _save, lasts=True)

    def has_saved(self, server_uuid: str) -> bool:
        with contextlib.suppress(errors.guest.NotDefined):
            return self.on_domain("look for the guest's saved memory", server_uuid,
                                  lambda domain: bool(domain.hasManagedSaveImage()))
        return False

    def drop_saved(self, server_uuid: str) -> None:
        self.on_domain("remove the guest's saved memory", server_uuid, _drop_saved)

    def restore(self, server_uuid: str, held: bool = False) -> None:
        try:
            self.start(server_uuid, held)
        except errors.host.LibvirtRefused as error:
            if any(sign in str(error).lower() for sign in UNREADABLE):
                raise errors.guest.BrokenSave(uuid=server_uuid, reason=str(error)) from error
            raise


# --- run in a native thread: only libvirt calls

def _is(domain: Domain, *states: int) -> bool:
    return domain.state()[0] in states


def _pause(domain: Domain) -> None:
    if not _is(domain, libvirt.VIR_DOMAIN_PAUSED):
        unless(domain.suspend, lambda: _is(domain, libvirt.VIR_DOMAIN_PAUSED))


def _unpause(domain: Domain) -> None:
    if not _is(domain, libvirt.VIR_DOMAIN_RUNNING):
        unless(domain.resume, lambda: _is(domain, libvirt.VIR_DOMAIN_RUNNING))


def _save(domain: Domain) -> None:
    for attempt in range(SAVE_TRIES):
        try:
            if domain.isActive():
                domain.managedSave(libvirt.VIR_DOMAIN_SAVE_RUNNING)
            return
        except libvirt.libvirtError as error:
            busy = error.get_error_code() == libvirt.VIR_ERR_OPERATION_TIMEOUT
            if domain.isActive() and (not busy or attempt == SAVE_TRIES - 1):
                raise


def _drop_saved(domain: Domain) -> None:
    if domain.hasManagedSaveImage():
        unless(domain.managedSaveRemove, lambda: not domain.hasManagedSaveImage())
