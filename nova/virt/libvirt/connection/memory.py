"""Guests held in memory (paused), and memory kept on disk (libvirt's managed save)."""

from __future__ import annotations

import libvirt

from nova import errors
from nova.model.base import Library
from nova.virt.libvirt.connection.domains import Domains
from nova.virt.libvirt.connection.link import unless

#: libvirt waits 30 s for another call of the same guest: a save whose caller died may still be under way.
SAVE_TRIES = 20
#: What libvirt and QEMU say of saved memory that can't be read, as against a host that can't run the guest now.
UNREADABLE = ("load of migration failed", "save image", "saved image", "savevm", "migration stream", "job 'restore'",
              "job 'migration in'", "failed to read qemu header", "magic is incorrect", "error while loading state")


class MemoryConnection(Domains):
    def pause(self, server_uuid: str) -> None:
        self.on_domain("pause the guest", server_uuid, _pause)

    def unpause(self, server_uuid: str) -> None:
        self.on_domain("let the guest go on", server_uuid, _unpause)

    def save(self, server_uuid: str) -> None:
        try:
            self.on_domain("keep the guest's memory", server_uuid, _save, lasts=True)
        except errors.host.LibvirtDown:  # it was restarted: what was begun goes on, or is begun again
            self.on_domain("keep the guest's memory", server_uuid, _save, lasts=True)

    def has_saved(self, server_uuid: str) -> bool:
        try:
            return self.on_domain("look for the guest's saved memory", server_uuid,
                                  lambda domain: bool(domain.hasManagedSaveImage()))
        except errors.guest.NotDefined:
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


# --- run in a real thread: nothing but libvirt's calls

def _is(domain: Library, *states: int) -> bool:
    return domain.state()[0] in states


def _pause(domain: Library) -> None:
    if not _is(domain, libvirt.VIR_DOMAIN_PAUSED):
        unless(domain.suspend, lambda: _is(domain, libvirt.VIR_DOMAIN_PAUSED))


def _unpause(domain: Library) -> None:
    if not _is(domain, libvirt.VIR_DOMAIN_RUNNING):
        unless(domain.resume, lambda: _is(domain, libvirt.VIR_DOMAIN_RUNNING))


def _save(domain: Library) -> None:
    for attempt in range(SAVE_TRIES):
        try:
            if domain.isActive():
                domain.managedSave(libvirt.VIR_DOMAIN_SAVE_RUNNING)
            return
        except libvirt.libvirtError as error:
            busy = error.get_error_code() == libvirt.VIR_ERR_OPERATION_TIMEOUT
            if domain.isActive() and (not busy or attempt == SAVE_TRIES - 1):
                raise


def _drop_saved(domain: Library) -> None:
    if domain.hasManagedSaveImage():
        unless(domain.managedSaveRemove, lambda: not domain.hasManagedSaveImage())
