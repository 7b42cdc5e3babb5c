"""tempest.conf of a sandbox: its accounts, what a server is made of, and which of Nova's features are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Settings = Mapping[str, Mapping[str, object]]

#: What we serve, by tempest's names for it. A test of a feature that is off here would be skipped, not failed.
FEATURES = {
    "disk_config": True,
    "console_output": True,
    "config_drive": True,
    "enable_instance_password": True,
    "hostname_fqdn_sanitization": True,
    "metadata_service": True,
    "personality": True,
    "block_migration_for_live_migration": True,
    "change_password": True,
    "cold_migration": True,
    "live_migration": True,
    "pause": True,
    "rescue": True,
    "resize": True,
    "shelve": True,
    "snapshot": True,
    "stable_rescue": True,
    "suspend": True,
    "interface_attach": False,
    "serial_console": False,  # its one test passes nowhere
    "spice_console": True,
    "vnc_console": True,
    "nova_policy_roles": "admin,manager,member,reader,service",
}
SERVICES = {"nova": True, "glance": True, "cinder": False, "swift": False, "horizon": False}
#: Tempest skips all tests with a server in them unless there is a Neutron, though most need no more than a network that
#: servers get without asking, which nova-network gives them. So it is told that there is one, and given no network to
#: look for; of the catalogue's entry it needs no more than that it answers 404. Without the lie it finds nova-network's
#: network by name, but at microversions that still have the API for it only.
PRETENDED = {"service_available": {"neutron": True}}
#: What tempest says in a guest before each command: the small guest has no sudo, and no lsblk to list its disks.
PROLOGUE = """set -eu -o pipefail; PATH=$PATH:/sbin:/usr/sbin; sudo() { "$@"; }; \
lsblk() { printf '%-8s TYPE\\n' NAME; for disk in /sys/block/vd*; do printf '%-8s disk\\n' "${disk##*/}"; done; };"""
#: For a sandbox whose guests run: tempest logs in to them, at their own addresses, and sees what they say.
LOG_IN = {
    "run_validation": True, "connect_method": "fixed", "security_group": False, "security_group_rules": False,
    "image_ssh_user": "root", "image_alt_ssh_user": "root", "ssh_timeout": 180,
    "ssh_shell_prologue": PROLOGUE,
}
#: For a sandbox with Cinder. Its NFS driver lets no volume grow while a server has it.
VOLUMES: Settings = {
    "service_available": {"cinder": True},
    "compute-feature-enabled": {"volume_backed_live_migration": True, "volume_multiattach": True, "swap_volume": True},
    "volume": {"catalog_type": "volumev3", "min_microversion": "3.0", "max_microversion": "latest",
               "build_timeout": 120, "volume_size": 1,
               "storage_protocol": "nfs", "volume_type_multiattach": "multiattach"},
    "volume-feature-enabled": {"backup": False, "snapshot": True, "clone": True, "extend_attached_volume": False},
}
#: Tests that look for nova-network's network themselves.
BY_NAME = ("tempest.api.compute.admin.test_networks",)


@dataclass(frozen=True)
class Facts:
    """What a sandbox has. ``images`` and ``flavors``: two ids each, the second flavor the larger one."""

    keystone: str  # its URL, with /v3
    region: str
    password: str  # admin's
    images: tuple[str, str]
    flavors: tuple[str, str]
    network: str  # the label of the one that guests get
    computes: int
    folder: str  # where tempest writes
    driver: str = "fake"
    outside: str = ""  # of a sandbox with Neutron: the id of its external network
    extensions: tuple[str, ...] = ()  # and what its API has
    volumes: str = ""  # of a sandbox with Cinder: its back end


def settings(facts: Facts, by_name: bool) -> Settings:
    """For the tests of :data:`BY_NAME`, or for all others."""
    if facts.outside:
        return _with_neutron(facts)
    network = {"compute": {"fixed_network_name": facts.network}, "service_available": {"neutron": False}}
    guests = {} if facts.driver == "fake" else {"validation": {**LOG_IN, "network_for_ssh": facts.network}}
    volumes = VOLUMES if facts.volumes else {}
    return _with(_common(facts), network if by_name else PRETENDED, guests, volumes)


def _with(sections: Settings, *more: Settings) -> Settings:
    """These sections, with more options or with others in them."""
    found = dict(sections)
    for section, options in (pair for one in more for pair in one.items()):
        found[section] = {**found.get(section, {}), **options}
    return found


def _with_neutron(facts: Facts) -> Settings:
    """Tempest makes a network, a router and addresses for each of its projects."""
    return _with(_common(facts), {
        "auth": {"create_isolated_networks": True}, "compute-feature-enabled": {"interface_attach": True},
        "service_available": {"neutron": True},
        "network": {"public_network_id": facts.outside, "floating_network_name": "public"},
        "network-feature-enabled": {"api_extensions": ",".join(facts.extensions)}})


def _common(facts: Facts) -> Settings:
    return {
        "DEFAULT": {"log_dir": facts.folder, "log_file": "tempest.log", "debug": False},
        "oslo_concurrency": {"lock_path": f"{facts.folder}/lock"},
        "auth": {
            "use_dynamic_credentials": True, "create_isolated_networks": False, "tempest_roles": "member",
            "admin_username": "admin", "admin_project_name": "admin", "admin_domain_name": "Default",
            "admin_password": facts.password,
        },
        "identity": {"uri_v3": facts.keystone, "auth_version": "v3", "region": facts.region},
        "compute": {
            "image_ref": facts.images[0], "image_ref_alt": facts.images[1],
            "flavor_ref": facts.flavors[0], "flavor_ref_alt": facts.flavors[1],
            "min_compute_nodes": facts.computes,
            "hypervisor_type": facts.driver, "min_microversion": "2.1", "max_microversion": "latest",
            "build_interval": 1, "build_timeout": 60 if facts.driver == "fake" else 180,
        },
        "compute-feature-enabled": FEATURES,
        "enforce_scope": {"nova": True},
        "image": {"container_formats": "bare", "disk_formats": "raw,qcow2"},
        "service_available": SERVICES,
        "validation": {"run_validation": False},
    }


def text(sections: Settings) -> str:
    """As oslo.config reads it: a ``$`` would refer to another option."""
    lines = []
    for section, options in sections.items():
        lines += [f"[{section}]", *(f"{name} = {str(value).replace('$', '$$')}" for name, value in options.items()), ""]
    return "\n".join(lines)
