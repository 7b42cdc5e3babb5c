"""The configuration of our own daemons, as tables: section to option to value.

`nova.conf` serves the control daemons and has no secret. Beside it each daemon has a file of its name with its secrets,
and its user alone may read it: `nova-conductor.conf` has the database URLs and the keys of image tickets and of hosts'
secrets, `nova-imageproxy.conf` the first of these keys. `console-proxies.conf` says where console proxies listen, are
found and may go. Each compute host has a `nova.conf` of its own: with its own broker user, and with no other password.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from . import ceph, cinder, databases, memcached, neutron, plain, rabbitmq
from .keystone import REGION
from .layout import BRIDGE, CHECKOUT, GUEST_GATEWAY, PROXIES, Compute, Layout
from .secrets import Secrets

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.manage.secret_files import readers  # noqa: E402
from nova.rpc import control_rights  # noqa: E402

Settings = dict[str, dict[str, str]]
DRIVERS = {"libvirt": "libvirt.LibvirtDriver", "fake": "fake.FakeDriver"}
# The interface whose wire the guests' bridge joins. On the machine itself no wire is joined: guests stay in the bridge.
FAKE_MONITORING_PORTS = 9900  # and those behind it
DATA_INTERFACE = "eth1"


def control(layout: Layout, secrets: Secrets) -> Settings:
    return _without_empty(
        {
            "DEFAULT": {
                "my_ip": layout.address,
                "state_path": str(layout.nova_state(layout.controller_host)),
                "transport_url": rabbitmq.transport_url(layout, secrets),
                "hosts_transport_url": rabbitmq.hosts_transport_url(layout, secrets, layout.controller_host),
                **_network(layout),
                "flat_network_bridge": "",  # `nova-manage network create` says it of each network
                **({} if layout.sandbox else _on_the_machine(layout)),
                **(_ec2(layout) if layout.choices.ec2 else {}),
                # no guests: networks are served in the records alone
                "fake_network": "true" if layout.choices.driver == "fake" else "",
                # else the first resize that somebody tries finds no host
                "allow_resize_to_same_host": "true" if len(layout.computes) == 1 else "",
            },
            "api": _believing(layout),
            "placement_api": {"listen": "" if layout.sandbox else layout.address},
            "neutron": _neutron(layout, secrets),
            **_cinder(layout, secrets),
            **_services(layout, secrets, {"memcached_servers": memcached.address(layout)}),
        }
    )


def as_upstream(layout: Layout, secrets: Secrets) -> Settings:
    """For all control daemons, as deployment tools write it: with one broker URL, the databases and all passwords."""
    found = {section: dict(options) for section, options in control(layout, secrets).items()}
    del found["DEFAULT"]["hosts_transport_url"]
    for section, options in (*_database_urls(layout, secrets).items(), *console_proxies(layout).items()):
        found.setdefault(section, {}).update(options)
    return found


def compute_as_upstream(layout: Layout, secrets: Secrets, host: Compute) -> Settings:
    """For a compute host, as deployment tools write it: with the control daemons' broker URL, and with passwords."""
    found = {section: dict(options) for section, options in compute(layout, secrets, host).items()}
    del found["DEFAULT"]["hosts_transport_url"]
    found["DEFAULT"]["transport_url"] = rabbitmq.transport_url(layout, secrets)
    more = {"neutron": _neutron(layout, secrets), **_cinder(layout, secrets), **_services(layout, secrets)}
    for section, options in more.items():
        found.setdefault(section, {}).update(options)
    for name in proxies(layout):
        proxy = CONSOLE_PROXIES[name]
        found.setdefault(proxy.section, {})[proxy.base_url] = layout.url(name, proxy.page, proxy.scheme)
    return _without_empty(found)


def shared(layout: Layout, secrets: Secrets) -> Settings:
    """What all control daemons may read: no secret."""
    return _without_empty(
        {
            section: {name: value for name, value in options.items() if (section, name) not in readers.READERS}
            for section, options in control(layout, secrets).items()
        }
    )


def own(layout: Layout, secrets: Secrets, daemon: str, own_user: bool = True) -> Settings:
    """The secrets of a control daemon. `own_user`: with its own broker user, and not the one that may do everything."""
    whole: dict[str, dict[str, str]] = {section: dict(options) for section, options in control(layout, secrets).items()}
    more = {"nova-conductor": conductor, "nova-imageproxy": image_proxy}.get(daemon)
    own_ones = more(layout, secrets) if more else {}
    found: Settings = {}
    for section, name in readers.secrets_of(daemon):
        if name in whole.get(section, {}):
            found.setdefault(section, {})[name] = whole[section][name]
    for section, options in own_ones.items():
        found.setdefault(section, {}).update(options)
    if own_user and daemon in control_rights.USERS:
        found["DEFAULT"]["transport_url"] = rabbitmq.transport_url(layout, secrets, daemon)
    if own_user and daemon == rabbitmq.CONDUCTOR:
        found["DEFAULT"]["hosts_transport_url"] = rabbitmq.hosts_transport_url(layout, secrets, user=daemon)
    return found


def _believing(layout: Layout) -> dict[str, str]:
    """Without Keystone every caller is believed; a sandbox's rooms are reached from this machine alone."""
    if layout.choices.auth == "keystone":
        return {}
    return {"auth_strategy": layout.choices.auth, "noauth2_anywhere": "true" if layout.sandbox else ""}


def _on_the_machine(layout: Layout) -> dict[str, str]:
    """Nothing listens where others could reach it; guests go out over the machine's own way to the outside."""
    outside = plain.outside()
    return {
        "host": layout.controller_host,
        "osapi_compute_listen": layout.address,
        "metadata_listen": layout.metadata_address,
        "metadata_host": layout.metadata_address,
        "public_interface": outside.interface if outside else "lo",
        "routing_source_ip": outside.address if outside else GUEST_GATEWAY,
    }


def _ec2(layout: Layout) -> dict[str, str]:
    """Where clients reach it, and (on the machine itself) where it listens."""
    listening = {} if layout.sandbox else {"ec2_listen": layout.address, "s3_listen": layout.address}
    return {"ec2_host": layout.address, **listening}


def _database_urls(layout: Layout, secrets: Secrets) -> Settings:
    return {
        "api_database": {"connection": databases.url(layout, secrets, "nova_api")},
        "database": {"connection": databases.url(layout, secrets, "nova")},
    }


def conductor(layout: Layout, secrets: Secrets) -> Settings:
    return {
        "DEFAULT": {"hosts_transport_url": rabbitmq.hosts_transport_url(layout, secrets)},
        **_database_urls(layout, secrets),
        "image_proxy": {"key": secrets.ticket_key()},
        "conductor": {"host_secret_key": secrets.host_secret_key()},
    }


def image_proxy(layout: Layout, secrets: Secrets) -> Settings:
    """What nova-imageproxy alone reads, beside the conductor's own copy of the key. Hosts are sent to `my_ip`."""
    return {"image_proxy": {"key": secrets.ticket_key(), "listen": layout.address}}


def compute(layout: Layout, secrets: Secrets, host: Compute) -> Settings:
    return _without_empty(
        {
            "DEFAULT": {
                "host": host.name,
                "my_ip": host.address,
                "state_path": str(layout.nova_state(host.name)),
                "hosts_transport_url": rabbitmq.hosts_transport_url(layout, secrets, host.name),
                "compute_driver": DRIVERS[layout.choices.driver],
                "instances_path": str(layout.instances(host.name)) if layout.choices.shared_storage else "",
                **_network(layout),
            },
            "libvirt": {**_migrations(layout, host), **ceph.on_host(layout, secrets, host)},
            "monitoring": {"port": _monitoring_port(layout, host)},
            **_consoles(layout, host),
        }
    )


def _monitoring_port(layout: Layout, host: Compute) -> str:
    """Pretended hosts share a machine, and the usual port is one daemon's."""
    return str(FAKE_MONITORING_PORTS + layout.computes.index(host)) if layout.choices.driver == "fake" else ""


def _migrations(layout: Layout, host: Compute) -> dict[str, str]:
    """Between a sandbox's rooms guests go over the management network, post-copy where it is called for."""
    if not layout.sandbox or layout.choices.driver != "libvirt":
        return {}
    return {
        "live_migration_inbound_addr": host.address,
        "live_migration_permit_post_copy": "true",
        "live_migration_permit_auto_converge": "true",
    }


PROXIES_WAIT_S = "5"


class Proxy(NamedTuple):
    """Options of a console proxy: for its address, and for where users' programs find it."""

    section: str
    listen: str
    base_url: str
    page: str
    scheme: str = "http"


CONSOLE_PROXIES = {
    "novncproxy": Proxy("vnc", "novncproxy_host", "novncproxy_base_url", "/vnc_auto.html"),
    "xvpvncproxy": Proxy("vnc", "xvpvncproxy_host", "xvpvncproxy_base_url", "/console"),
    "spicehtml5proxy": Proxy("spice", "html5proxy_host", "html5proxy_base_url", "/spice_auto.html"),
    "serialproxy": Proxy("serial_console", "serialproxy_host", "base_url", "/", "ws"),
}


def proxies(layout: Layout) -> tuple[str, ...]:
    """A sandbox has consoles of every kind, to try them; on the machine itself there is VNC, as by default."""
    return PROXIES if layout.sandbox else PROXIES[:1]


def console_proxies(layout: Layout) -> Settings:
    """What only the proxies and nova-consoleauth read: where they listen and are found, where they may go, how long
    they wait for open consoles at their end: a stack that is told to stop is not held up by a page that somebody left
    open."""
    settings: Settings = {
        "DEFAULT": {"graceful_shutdown_timeout": PROXIES_WAIT_S},
        "console": {"reachable_networks": layout.management_network},
    }
    if not layout.sandbox:  # in a sandbox no host shares an address with another
        settings["console"]["local_hosts"] = ",".join(host.name for host in layout.computes)
    for name in proxies(layout):
        proxy = CONSOLE_PROXIES[name]
        settings.setdefault(proxy.section, {}).update(
            {proxy.listen: layout.address, proxy.base_url: layout.url(name, proxy.page, proxy.scheme)}
        )
    return settings


def _consoles(layout: Layout, host: Compute) -> Settings:
    """Where QEMU listens and the proxies find it: this host's address."""
    served = proxies(layout)
    listening = {"server_listen": host.address, "server_proxyclient_address": host.address}
    settings: Settings = {"vnc": dict(listening)}
    if "spicehtml5proxy" in served:
        settings["spice"] = {"enabled": "true", **listening}
    if "serialproxy" in served:
        settings["serial_console"] = {"enabled": "true", "proxyclient_address": host.address}
    return settings


def _network(layout: Layout) -> dict[str, str]:
    if layout.choices.neutron:
        return {"use_neutron": "true"}
    return {
        "network_manager": "nova.network.manager.FlatDHCPManager",
        "flat_network_bridge": BRIDGE,
        "flat_interface": DATA_INTERFACE if layout.sandbox else "",
    }


def _neutron(layout: Layout, secrets: Secrets) -> dict[str, str]:
    """For the conductor, which alone calls it."""
    if not layout.choices.neutron:
        return {}
    return {**neutron.credentials(layout, secrets, "nova"), "default_floating_pool": neutron.PUBLIC}


def _cinder(layout: Layout, secrets: Secrets) -> Settings:
    """For the conductor. Cinder gives volumes that are in use back to a service alone: a token of ours goes with each
    call."""
    if not layout.choices.volumes:
        return {}
    ours = cinder.credentials(layout, secrets, "nova")
    return {
        "cinder": {**ours, "os_region_name": REGION},
        "service_user": {**ours, "send_service_user_token": "true"},
    }


def _services(layout: Layout, secrets: Secrets, checked_tokens: dict[str, str] | None = None) -> Settings:
    """The credentials with which tokens are checked and other services called; the catalog says where those are.
    ``checked_tokens``: where they are remembered, for those who check any."""
    if layout.choices.auth == "noauth2":
        return {"glance": {"endpoint_override": layout.url("glance")}}
    return {
        "keystone_authtoken": {
            "auth_type": "password",
            "auth_url": layout.url("keystone"),
            "www_authenticate_uri": layout.url("keystone"),
            "username": "nova",
            "password": secrets.password("nova"),
            "project_name": "service",
            "default_domain_id": "default",
            **(checked_tokens or {}),
        },
    }


def _without_empty(settings: Settings) -> Settings:
    """Less the options without a value, and the sections without an option."""
    filled = {section: {name: value for name, value in rows.items() if value} for section, rows in settings.items()}
    return {section: rows for section, rows in filled.items() if rows}


def text(settings: Settings) -> str:
    """As oslo.config reads it; a `$` in a value would be a reference and is doubled."""
    lines = []
    for section, options in settings.items():
        lines += [f"[{section}]", *(f"{name} = {value.replace('$', '$$')}" for name, value in options.items()), ""]
    return "\n".join(lines)


def control_file(layout: Layout) -> Path:
    return layout.etc / "nova" / "nova.conf"


def own_file(layout: Layout, daemon: str) -> Path:
    return layout.etc / "nova" / f"{daemon}.conf"


def conductor_file(layout: Layout) -> Path:
    return own_file(layout, "nova-conductor")


def proxies_file(layout: Layout) -> Path:
    return layout.etc / "nova" / "console-proxies.conf"


def compute_file(layout: Layout, host: Compute) -> Path:
    return layout.etc / f"nova-{host.name}" / "nova.conf"
