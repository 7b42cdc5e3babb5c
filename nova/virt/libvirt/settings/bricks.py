"""Operators' settings for volumes that os-brick connects."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from nova import errors, failures
from nova.conf._options import Options


@dataclass(frozen=True, kw_only=True)
class BrickSettings:
    """Settings of os-brick. ``lock_path``: below the state path unless absolute. ``scan_tries``, ``nvme_tries``,
    ``iser_tries``: the number of scans for a device. ``iscsi_iface`` empty: the initiator's default."""

    lock_path: Path = Path("locks")
    multipath: bool = False
    enforce_multipath: bool = False
    scan_tries: int = 5
    nvme_tries: int = 5
    iser_tries: int = 5
    iscsi_iface: str = ""
    debug: bool = False


def check_locks(path: Path) -> None:
    """Create the lock directory and check that it is writable. Raises config.Libvirt if it is not."""
    with failures.translated(OSError, lambda error: errors.config.Libvirt(option="[os_brick]lock_path",
            reason=error.strerror or str(error))):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass


def brick_settings_of(conf: Options) -> BrickSettings:
    """Return the settings from ``[libvirt]``, ``[os_brick]`` and ``[cinder]``. Raises config.Libvirt with the
    option."""
    libvirt, lock_path = conf.libvirt, Path(conf.os_brick.lock_path)
    if libvirt.volume_enforce_multipath and not libvirt.volume_use_multipath:
        raise errors.config.Libvirt(option="[libvirt]volume_enforce_multipath", reason="it needs volume_use_multipath")
    if not lock_path.is_absolute():
        raise errors.config.Libvirt(option="[os_brick]lock_path", reason="it must be an absolute path")
    return BrickSettings(
        lock_path=lock_path, multipath=libvirt.volume_use_multipath,
        enforce_multipath=libvirt.volume_enforce_multipath, scan_tries=libvirt.num_volume_scan_tries,
        nvme_tries=libvirt.num_nvme_discover_tries, iser_tries=libvirt.num_iser_scan_tries,
        iscsi_iface=libvirt.iscsi_iface or "", debug=conf.cinder.debug)
