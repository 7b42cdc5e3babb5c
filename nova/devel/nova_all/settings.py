"""The nova.conf of a ``nova-all``: what differs from the defaults, as an operator would write it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from nova.console import kinds
from nova.devel.nova_all.console_pages import ConsolePages
from nova.devel.nova_all.home import Home, write
from nova.devel.nova_all.plan import LIBVIRT, NEUTRON, Plan
from nova.rpc.buses import IN_PROCESS

CONTROLLER = "controller"
FILE, LOG_FILE = "nova.conf", "nova-all.log"
REGION = "RegionOne"
EC2_PATH = "/services/Cloud"
PUBLIC = "public"  # Neutron's external network, where floating addresses come from
REPORT_S, DOWN_S = 2, 10  # a host that dies is seen soon: its time is somebody's who waits for a test
LEASE_S = 4  # after which a cloud that was killed goes on with what it did
#: Of what a cloud leaves behind that a CI uses for months; doc/nova-all.rst says how much it is.
LOG_BOUND = {"log_rotation_type": "size", "max_logfile_size_mb": 10, "max_logfile_count": 3}
#: No message outlives the process, and hardly one a minute within it: an hour is enough for fences, too.
RETENTION = {"deleted_retention": "1h", "instance_actions_retention": 1, "fence_retention": "1h"}
BOOT_S, MOVE_S = 2.0, 5.0  # what they take at --speed 1

Settings = dict[str, dict[str, object]]


class CloudAddresses(NamedTuple):
    """Where the cloud is found: URLs without a slash at the end. ``consoles``: noVNC's."""

    apis: str
    metadata_port: int
    consoles: str
    serial: str
    image_proxy_port: int
    networking: str
    s3: str

    @property
    def catalog(self) -> Mapping[str, str]:
        """Service type -> address, as Keystone's catalog has them."""
        network = {"network": f"{self.apis}/network"} if self.networking == NEUTRON else {}
        return {"compute": f"{self.apis}/v2.1", "identity": f"{self.apis}/identity", "image": f"{self.apis}/image",
                "placement": f"{self.apis}/placement", "ec2": f"{self.apis}{EC2_PATH}", "s3": self.s3, **network}


def write_conf(plan: Plan, home: Home, addresses: CloudAddresses, pages: ConsolePages) -> str:
    """Write it into the home; its path."""
    path = home.path / FILE
    chosen = _settings(plan, home, addresses)
    if pages.web:
        chosen["DEFAULT"]["web"] = pages.web
    if pages.xterm_path:
        chosen["console"]["xterm_path"] = pages.xterm_path
    write(path, render(chosen))
    return os.fspath(path)


def render(settings: Mapping[str, Mapping[str, object]]) -> str:
    """As oslo.config reads it; a `$` in a value would be a reference and is doubled."""
    lines = ["# Made by nova-all at each start. Name changes in a file of your own, with --config-file."]
    for section, options in settings.items():
        lines += ["", f"[{section}]", *(f"{name} = {str(value).replace('$', '$$')}" for name, value in options.items())]
    return "\n".join(lines) + "\n"


def _settings(plan: Plan, home: Home, addresses: CloudAddresses) -> Settings:
    local = {"listen": plan.listen}
    return {
        "DEFAULT": {
            "host": CONTROLLER, "state_path": home.path / CONTROLLER, "my_ip": "127.0.0.1",
            "hosts_transport_url": f"{IN_PROCESS}{home.path}", "log_file": home.path / LOG_FILE,
            **LOG_BOUND, **RETENTION,
            "long_rpc_silence": DOWN_S,
            "report_interval": REPORT_S, "service_down_time": DOWN_S, "graceful_shutdown_timeout": 1,
            "metadata_port": addresses.metadata_port, "metadata_listen_port": addresses.metadata_port,
            "compute_driver": "libvirt.LibvirtDriver" if plan.driver == LIBVIRT else "fake.FakeDriver",
            **_networking(plan), "fake_network": True, **_ec2(addresses),
            "force_config_drive": plan.driver == LIBVIRT,  # no guest reaches the metadata service
            "default_log_levels": "keystonemiddleware.auth_token=ERROR"},  # it warns of tokens in memory: as wanted
        "api": {"project_requests_at_once": 1},  # all daemons share one interpreter
        "api_database": {"connection": f"sqlite:///{home.path}/nova_api.db"},
        "database": {"connection": f"sqlite:///{home.path}/nova.db"},
        "keystone_authtoken": {
            "auth_type": "password", "auth_url": addresses.catalog["identity"],
            "www_authenticate_uri": addresses.catalog["identity"], "username": "nova",
            "password": home.secret("password"), "project_name": "service", "default_domain_id": "default",
            "region_name": REGION},
        **_neutron(plan, home, addresses),
        "glance": {"num_retries": 0},
        "conductor": {"workers": 1, "lease_seconds": LEASE_S, "host_secret_key": home.secret("host-secret-key")},
        "scheduler": {"workers": 1},
        "image_proxy": {"key": home.secret("image-proxy-key"), "listen_port": addresses.image_proxy_port, **local},
        "fake": {"boot_delay": BOOT_S * plan.speed, "live_migration_time": MOVE_S * plan.speed,
                 "vcpus": 64, "memory_mb": 262144, "local_gb": 4096},
        "libvirt": {"connection_uri": "qemu:///session"},
        "consoleauth": {"workers": 1},
        **_consoles(plan, addresses),
        "monitoring": {"enabled": False},
    }


def _ec2(addresses: CloudAddresses) -> dict[str, object]:
    """How clients reach it, as DescribeRegions says it."""
    where = urlsplit(addresses.apis)
    return {"ec2_host": where.hostname, "ec2_port": where.port, "ec2_path": EC2_PATH}


def _networking(plan: Plan) -> dict[str, object]:
    if plan.networking == NEUTRON:
        return {"use_neutron": True}
    return {"network_manager": "nova.network.manager.FlatDHCPManager", "flat_network_bridge": "br100"}


def _neutron(plan: Plan, home: Home, addresses: CloudAddresses) -> Settings:
    """For the conductor, which alone calls it."""
    if plan.networking != NEUTRON:
        return {}
    return {"neutron": {"auth_type": "password", "auth_url": addresses.catalog["identity"], "username": "nova",
                        "password": home.secret("password"), "project_name": "service", "user_domain_id": "default",
                        "project_domain_id": "default", "region_name": REGION, "default_floating_pool": PUBLIC}}


def _consoles(plan: Plan, addresses: CloudAddresses) -> Settings:
    return {"console": {"reachable_networks": "127.0.0.0/8", "local_hosts": ",".join(plan.host_names)},
            "vnc": {"enabled": True, "novncproxy_base_url": f"{addresses.consoles}/{kinds.NOVNC.entries[0]}"},
            "serial_console": {"enabled": True, "base_url": f"{addresses.serial}/"}}
