"""Host settings of the helper, from its own configuration, never from its callers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from nova import errors
from nova.conf._options import Options
from nova.privileged.brick import HostWords
from nova.privileged.iptables import Foreign
from nova.privileged.lvm import Clearing

#: Root's directory for files that no other user may write: radvd's pid files, disk exports.
OWN_FOLDER = Path("/run/nova-privileged")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HelperSettings:
    """Settings with their names in nova.conf, where they are explained. ``user``: the user whose daemons may call."""

    instances_path: Path
    state_path: Path
    networks_path: Path
    mount_base: Path
    tpm_path: Path = Path("/var/lib/libvirt/swtpm")
    own_folder: Path = OWN_FOLDER
    volume_group: str = ""
    clearing: Clearing = Clearing()
    ceph_pools: tuple[str, ...] = ()
    foreign: Foreign = Foreign()
    drop: str = "DROP"
    user: str = "nova"
    dhcpbridge: str = "nova-dhcpbridge"
    dhcpbridge_flagfile: tuple[str, ...] = ()
    dnsmasq_config_file: str = ""
    dhcp_lease_time: int = 86400
    dhcp_domain: str = ""
    export_address: str = "127.0.0.1"
    export_ports: tuple[int, int] = (49216, 49279)
    brick: HostWords = HostWords("/run/nova-privileged/locks")

    @property
    def roots(self) -> tuple[Path, ...]:
        """Directories that must contain a path: guests' directories with the image cache, and mounted exports."""
        return (self.instances_path, self.mount_base)


def settings_of(conf: Options) -> HelperSettings:
    """Return the settings of nova.conf. Raises Invalid, which names an invalid option."""
    libvirt = conf.libvirt
    for option in ("iptables_top_regex", "iptables_bottom_regex"):
        try:
            re.compile(getattr(conf, option))
        except re.error as error:
            raise errors.network.Option(option=option, value=getattr(conf, option), reason=str(error)) from None
    return HelperSettings(
        instances_path=Path(conf.instances_path).absolute(), state_path=Path(conf.state_path).absolute(),
        networks_path=Path(conf.networks_path).absolute(), mount_base=Path(libvirt.nfs_mount_point_base).absolute(),
        volume_group=libvirt.images_volume_group or "",
        clearing=Clearing(libvirt.volume_clear, libvirt.volume_clear_size << 20),
        ceph_pools=tuple(filter(None, (libvirt.images_rbd_pool, libvirt.images_rbd_snapshot_pool))),
        foreign=Foreign(conf.iptables_top_regex, conf.iptables_bottom_regex), drop=conf.iptables_drop_action,
        user=conf.privileged.user, dhcpbridge=conf.dhcpbridge, dhcpbridge_flagfile=tuple(conf.dhcpbridge_flagfile),
        dnsmasq_config_file=conf.dnsmasq_config_file, dhcp_lease_time=conf.dhcp_lease_time,
        dhcp_domain=conf.api.dhcp_domain or "",
        export_address=str(libvirt.live_migration_inbound_addr or conf.my_ip or "127.0.0.1"),
        export_ports=_ports(libvirt.disk_export_ports), brick=_brick(conf))


def _brick(conf: Options) -> HostWords:
    """Return os-brick's settings. Locks in a directory of nova's are replaced with the helper's own: root must not open
    files there, because they may be links."""
    libvirt, locks = conf.libvirt, Path(conf.os_brick.lock_path)
    if locks.is_relative_to(Path(conf.state_path)):
        locks = OWN_FOLDER / "locks"
    return HostWords(str(locks), libvirt.volume_use_multipath, libvirt.volume_enforce_multipath, conf.cinder.debug,
                     str(conf.my_block_storage_ip or ""))


def _ports(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)
