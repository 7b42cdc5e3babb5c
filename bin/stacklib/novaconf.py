"""The configuration of nova's daemons, as tables: section to option to value.

All control daemons read `nova.conf`, which has no secret. Each daemon also has a file of its name with its secrets,
which only its user may read. `nova-conductor.conf` has the database URLs and the keys of image tickets and of hosts'
secrets; `nova-imageproxy.conf` has the first of these keys. `console-proxies.conf` sets the listen addresses, the URLs
and the reachable networks of the console proxies. Each compute host has its own `nova.conf`: with its own broker user,
and with no other password.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from . import ceph, cinder, databases, memcached, neutron, plain, rabbitmq
from .keystone import REGION
from .layout import BRIDGE, CHECKOUT, GUEST_GATEWAY, PROXIES, Cell, Compute, Layout
from .secrets import Secrets

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.manage.secret_files import readers  # noqa: E402
from nova.rpc import control_rights  # noqa: E402

Settings = dict[str, dict[str, str]]
DRIVERS = {"libvirt": "libvirt.LibvirtDriver", "fake": "fake.FakeDriver"}
FAKE_MONITORING_PORTS = 9900  # first port; each fake host uses the next one
CELL_MONITORING_PORTS = 9700  # the conductor of cell 2 uses 9702
# Sections of nova-conductor.conf that conductors of further cells need, too.
OF_EACH_CELL = ("conductor", "neutron", "cinder", "service_user", "keystone_authtoken", "glance")
# The interface that joins the guests' bridge. On the machine itself no interface joins: guests stay in the bridge.
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
                "flat_network_bridge": "",  # `nova-manage network create` sets it for each network
                **({} if layout.sandbox else _on_the_machine(layout)),
                **(_ec2(layout) if layout.choices.ec2 else {}),
                # there are no guests: networks exist only in the database
                "fake_network": "true" if layout.choices.driver == "fake" else "",
                # otherwise the first resize finds no host in the server's cell
                "allow_resize_to_same_host": "true" if _some_host_is_alone(layout) else "",
            },
            "api": _believing(layout),
            "placement_api": {"listen": "" if layout.sandbox else layout.address},
            "neutron": _neutron(layout, secrets),
            **_cinder(layout, secrets),
            **_services(layout, secrets, {"memcached_servers": memcached.address(layout)}),
        }
    )


def _some_host_is_alone(layout: Layout) -> bool:
    return any(len(layout.computes_of(cell)) == 1 for cell in layout.cells)


def as_upstream(layout: Layout, secrets: Secrets) -> Settings:
    """Return nova.conf of all control daemons, as deployment tools write it: one broker URL, databases, passwords."""
    found = {section: dict(options) for section, options in control(layout, secrets).items()}
    del found["DEFAULT"]["hosts_transport_url"]
    for section, options in (*_database_urls(layout, secrets).items(), *console_proxies(layout).items()):
        found.setdefault(section, {}).update(options)
    return found


def compute_as_upstream(layout: Layout, secrets: Secrets, host: Compute) -> Settings:
    """Return nova.conf of a compute host, as deployment tools write it: with the control daemons' broker URL and with
    passwords."""
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
    """Return the options that all control daemons may read: the control settings without secrets."""
    return _without_empty(
        {
            section: {name: value for name, value in options.items() if (section, name) not in readers.READERS}
            for section, options in control(layout, secrets).items()
        }
    )


def own(layout: Layout, secrets: Secrets, daemon: str, own_user: bool = True) -> Settings:
    """Return the secrets of a control daemon. `own_user`: with its own broker user instead of the privileged one."""
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
    """Return the options of noauth2, which trusts every caller. In a sandbox it may listen on any address: only this
    machine reaches the rooms."""
    if layout.choices.auth == "keystone":
        return {}
    return {"auth_strategy": layout.choices.auth, "noauth2_anywhere": "true" if layout.sandbox else ""}


def _on_the_machine(layout: Layout) -> dict[str, str]:
    """Return the addresses on the machine itself. No service listens on an address that other machines can reach;
    guests use the machine's default route."""
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
    """Return the address that EC2 clients use, and (on the machine itself) the listen addresses."""
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


def cell_conductor(layout: Layout, secrets: Secrets, cell: Cell) -> Settings:
    """Return the secrets of a further cell's conductor: without the api database and the key of image tickets, and with
    its own database, vhost, host name and monitoring port."""
    whole = own(layout, secrets, rabbitmq.CONDUCTOR)
    return {
        "DEFAULT": {
            "host": cell.own(layout.controller_host),
            "hosts_transport_url": rabbitmq.cell_url(layout, secrets, cell),
        },
        "database": {"connection": databases.url(layout, secrets, cell.own("nova", "_"))},
        "monitoring": {"port": str(CELL_MONITORING_PORTS + cell.number)},
        **{section: whole[section] for section in OF_EACH_CELL if section in whole},
    }


def image_proxy(layout: Layout, secrets: Secrets) -> Settings:
    """Return the options of nova-imageproxy; only the conductor has the key, too. Hosts are given `my_ip` as address
    of the proxy."""
    return {"image_proxy": {"key": secrets.ticket_key(), "listen": layout.address}}


def compute(layout: Layout, secrets: Secrets, host: Compute) -> Settings:
    return _without_empty(
        {
            "DEFAULT": {
                "host": host.name,
                "my_ip": host.address,
                "state_path": str(layout.nova_state(host.name)),
                "hosts_transport_url": rabbitmq.hosts_transport_url(layout, secrets, host.name, cell=host.cell),
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
    """Return a port of its own for each fake host: they share a machine, and only one daemon can use the default."""
    return str(FAKE_MONITORING_PORTS + layout.computes.index(host)) if layout.choices.driver == "fake" else ""


def _migrations(layout: Layout, host: Compute) -> dict[str, str]:
    """Return the live-migration options: between a sandbox's rooms over the management network, with post-copy where
    necessary."""
    if not layout.sandbox or layout.choices.driver != "libvirt":
        return {}
    return {
        "live_migration_inbound_addr": host.address,
        "live_migration_permit_post_copy": "true",
        "live_migration_permit_auto_converge": "true",
    }


PROXIES_WAIT_S = "5"


class Proxy(NamedTuple):
    """Names of a console proxy's options: of its section, of its listen address, and of its URL for users."""

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
    """Return the console proxies to run: all kinds in a sandbox, to try them; only VNC, the default, otherwise."""
    return PROXIES if layout.sandbox else PROXIES[:1]


def console_proxies(layout: Layout) -> Settings:
    """Return the options that only the proxies and nova-consoleauth read: listen addresses, URLs, reachable networks
    and the shutdown timeout. The timeout is short, so that an open console page does not delay the end of a stack."""
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
    """Return the console options of a host: QEMU listens, and the proxies connect, on the host's address."""
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
    """Return the options of the Neutron client, for the conductor: no other daemon calls Neutron."""
    if not layout.choices.neutron:
        return {}
    return {**neutron.credentials(layout, secrets, "nova"), "default_floating_pool": neutron.PUBLIC}


def _cinder(layout: Layout, secrets: Secrets) -> Settings:
    """Return the options of the Cinder client, for the conductor. Each call carries a service token: Cinder accepts
    the detach of a volume in use only from a service."""
    if not layout.choices.volumes:
        return {}
    ours = cinder.credentials(layout, secrets, "nova")
    return {
        "cinder": {**ours, "os_region_name": REGION},
        "service_user": {**ours, "send_service_user_token": "true"},
    }


def _services(layout: Layout, secrets: Secrets, checked_tokens: dict[str, str] | None = None) -> Settings:
    """Return the credentials that validate tokens and call other services; the catalog has their URLs.
    ``checked_tokens``: options of the token cache, for daemons that validate tokens."""
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
    """Return the settings without empty options and empty sections."""
    filled = {section: {name: value for name, value in rows.items() if value} for section, rows in settings.items()}
    return {section: rows for section, rows in filled.items() if rows}


def text(settings: Settings) -> str:
    """Return the text of a file for oslo.config; a `$` in a value is doubled, since it would start a reference."""
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


def cell_files(layout: Layout, cell: Cell) -> tuple[Path, Path]:
    """Return nova.conf and nova-conductor.conf of a further cell. They have a directory of their own: a daemon also
    reads the file of its name next to nova.conf."""
    folder = layout.etc / f"nova-{cell.name}"
    return folder / "nova.conf", folder / "nova-conductor.conf"


def proxies_file(layout: Layout) -> Path:
    return layout.etc / "nova" / "console-proxies.conf"


def compute_file(layout: Layout, host: Compute) -> Path:
    return layout.etc / f"nova-{host.name}" / "nova.conf"
