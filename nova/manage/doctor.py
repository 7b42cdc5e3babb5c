"""nova-manage doctor: one line a check, and what to do about what is wrong."""

from __future__ import annotations

import collections
import datetime
import ipaddress
import os
import shutil
import socket
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from nova import errors
from nova.conf.base import Options
from nova.manage.doctor_filter import packet_filter
from nova.manage.doctor_networks import networks
from nova.manage.doctor_neutron import neutron
from nova.manage.finding import BAD, NAMED, OK, WARN, Check, Finding, asked, is_compute, some, told
from nova.model.base import Library
from nova.privileged.runner import SYSTEM_PATH, SystemRunner

FREE_GB = 5
SKEW_S = 5.0
STILL_MIN, LATELY_H = 30, 24
#: Where a compute host's consoles are and are found: section to options.
CONSOLE_PLACES = {
    "vnc": ("server_listen", "server_proxyclient_address", "novncproxy_base_url"),
    "spice": ("server_listen", "server_proxyclient_address", "html5proxy_base_url"),
    "serial_console": ("proxyclient_address", "base_url"),
}
TOOLS = ("dnsmasq", "iptables-save", "iptables-restore", "dhcp_release")
OPTIONAL_TOOLS = {"use_ipv6": ("radvd", "radvd"), "send_arp_for_ha": ("arping", "iputils-arping"),
                  "share_dhcp_address": ("ebtables-restore", "iptables")}  # by option: the program, its package


def config(options: Options) -> Finding:
    files = [os.fspath(path) for path in options.config_file]
    open_files = [path for path in files if os.path.basename(path) == "nova-conductor.conf"
                  and os.stat(path).st_mode & 0o077]
    if open_files:
        return Finding(BAD, f"{open_files[0]} can be read by others", f"chmod 600 {open_files[0]}")
    return Finding(OK, f"every option of {', '.join(files) or 'the defaults'} is valid; this host is {options.host}")


def broker(options: Options) -> Finding:
    from nova.rpc import host_secret
    from nova.rpc.transport import Bus

    secret = host_secret.peek(Path(options.state_path))
    bus = Bus(options, options.host, secret=secret)  # it declares transport_url, too
    host, port = _broker_address(options.transport_url or "rabbit://")
    try:
        socket.create_connection((host, port), 5).close()
    except OSError as error:
        return Finding(BAD, f"no broker at {host}:{port} ({error.strerror or error})",
                       "start RabbitMQ, or correct [DEFAULT]transport_url")
    started = time.monotonic()
    try:
        answer = round_trip(options, bus)
    except errors.NovaError as error:
        return Finding(BAD, f"the broker is there, but no conductor answers: {error.message}",
                       "start nova-conductor and look at its log; check the user and vhost in transport_url")
    return Finding(OK, f"a conductor answered over the broker in {1000 * (time.monotonic() - started):.0f} ms{answer}")


def round_trip(options: Options, bus: Library) -> str:
    """Over the bus and through the database, by the contract that this host may use; more to say of it, or nothing."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

    if is_compute(options):
        bus.client(ConductorHostRPC).may_proceed(options.host, ())
        return ""
    return f" (database: {bus.client(ConductorRPC).ping(options.host)})"


def _broker_address(url: str) -> tuple[str, int]:
    place = url.split("://", 1)[-1].split("/", 1)[0].split(",")[0].rsplit("@", 1)[-1]
    host, _, port = place.partition(":")
    return host or "127.0.0.1", int(port or 5672)


def databases(options: Options) -> Finding:
    from nova.cmd.conductor import databases as both
    from nova.db import migrate

    if not (options.database.connection and options.api_database.connection):
        return Finding(WARN, "no database URL here (right on a compute host)",
                       "on a conductor's host: put both connections into nova-conductor.conf")
    api, cell = both(options)
    try:
        for schema, database in (("api", api), ("cell", cell)):
            migrate.check(schema, database)
        return Finding(OK, f"both schemas are current on {migrate.product(cell)}")
    except errors.daemon.DbSchemaBehind as error:
        return Finding(BAD, error.message, "nova-manage api_db sync; nova-manage db sync")
    except errors.NovaError as error:
        return Finding(BAD, told(error), "check [database]connection and [api_database]connection, and the server")


def keystone(options: Options) -> Finding:
    if options.api.auth_strategy == "noauth2":
        return Finding(WARN, "[api]auth_strategy = noauth2: everybody is believed", "use keystone but for tests")
    from keystoneauth1 import exceptions

    from nova.clients import session

    try:
        credentials = session.load(options, "keystone_authtoken")
        if credentials.auth is None:
            return Finding(BAD, "[keystone_authtoken] has no credentials",
                           "set auth_type, auth_url, username, password, project_name and the domains there")
        credentials.auth.get_token(credentials.session)
    except exceptions.Unauthorized:
        return Finding(BAD, "Keystone refuses our credentials",
                       "correct [keystone_authtoken]username, password, project_name")
    except errors.NovaError as error:
        return Finding(BAD, error.message, "correct [keystone_authtoken]")
    except Exception as error:
        return Finding(BAD, f"Keystone does not answer: {type(error).__name__}",
                       "check [keystone_authtoken]auth_url and that Keystone runs")
    return Finding(OK, "Keystone gives us a token")


def glance(options: Options) -> Finding:
    from nova.clients import glance as client
    from nova.clients import session
    from nova.model.images import ImageQuery

    try:
        images = client.of_groups(options.glance, session.load(options, "glance")).list(ImageQuery(limit=1))
    except errors.NovaError as error:
        return Finding(BAD, error.message,
                       "check that Glance runs, and its endpoint in the catalog or [glance]api_servers")
    return Finding(OK if images else WARN, "Glance answers" + ("" if images else ", but has no image"),
                   "" if images else "openstack image create --file FILE --disk-format qcow2 NAME")


def placement(options: Options) -> Finding:
    """Whether Placement's API, where it runs here, answers; nothing of ours needs it."""
    import requests

    group = options.placement_api
    address = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(group.listen, group.listen)
    url = f"{'https' if options.wsgi.ssl_cert_file else 'http'}://{address}:{group.listen_port}/"
    try:
        versions = requests.get(url, timeout=5, verify=False).json()["versions"]
        return Finding(OK, f"nova-placement-api answers at {url}, up to version {versions[0]['max_version']}")
    except requests.ConnectionError:
        return Finding(OK, "nova-placement-api does not run here: only clients of Placement's API need it")
    except (requests.RequestException, ValueError, LookupError, TypeError):
        return Finding(BAD, f"what listens at {url} is no Placement API",
                       "end what has the port, or choose another by [placement_api]listen_port")


def libvirt(options: Options) -> Finding:
    if not (options.compute_driver or "").endswith("LibvirtDriver"):
        return Finding(OK, f"libvirt is not used (compute_driver = {options.compute_driver})")
    uri = options.libvirt.connection_uri or "qemu:///system"
    if shutil.which("virsh", path=SYSTEM_PATH) is None:
        return Finding(WARN, "virsh is not installed here", "on a compute host: apt install libvirt-clients")
    try:
        done = SystemRunner(15).run(["virsh", "-c", uri, "version", "--daemon"])
    except errors.host.CommandFailed as error:
        return Finding(BAD, f"libvirt at {uri} does not answer: {str(error.data['reason']).splitlines()[-1]}",
                       "start libvirtd, or correct [libvirt]connection_uri")
    return Finding(OK, done.stdout.strip().splitlines()[-1])


def bridge_tools(options: Options) -> Finding:
    from nova.conf.network import neutron_in_use

    if neutron_in_use(options):
        return Finding(OK, "networks are Neutron's, whose agents have tools of their own")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing:
        return Finding(BAD, f"missing: {', '.join(missing)}", "apt install dnsmasq-base dnsmasq-utils iptables")
    for option, (tool, package) in OPTIONAL_TOOLS.items():
        if getattr(options, option) and shutil.which(tool, path=path) is None:
            return Finding(BAD, f"missing: {tool}, which {option} = true needs", f"apt install {package}")
    return Finding(OK, "dnsmasq and iptables are installed")


def clock(options: Options) -> Finding:
    """Against the conductor's database, which decides who is up."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    if is_compute(options):
        return Finding(WARN, "a compute host can not compare its clock with the database's",
                       "run an NTP client here; orders that seem to come too late are refused")
    try:
        states = Bus(options, options.host).client(ConductorRPC).get_host_states((), True)
    except errors.NovaError:
        return Finding(WARN, "the clock can not be compared: no conductor answers", "see the broker's line")
    if states.now is None:
        return Finding(WARN, "the clock can not be compared: no compute host has registered", "start nova-compute")
    from nova.model.base import utcnow

    skew = abs((utcnow() - states.now).total_seconds())
    if skew > SKEW_S:
        return Finding(BAD, f"this clock is {skew:.1f} s away from the database's", "run an NTP client on both")
    return Finding(OK, f"this clock agrees with the database's ({skew:.1f} s)")


def cleanups(options: Options) -> Finding:
    """What is to be cleaned up on hosts that could not be reached: it blocks nothing, but resources stay claimed."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.transport import Bus

    if is_compute(options):
        return Finding(OK, "a compute host learns of its pending cleanups when it registers")
    try:
        found = Bus(options, options.host).client(ConductorRPC).list_debts(None)
    except errors.NovaError:
        return Finding(WARN, "pending cleanups can not be read: no conductor answers", "see the broker's line")
    if not found:
        return Finding(OK, "no cleanup is pending")
    owing = collections.Counter(one.host for one in found)
    named = ", ".join(f"{host} ({count})" for host, count in sorted(owing.items())[:NAMED])
    more = f" and {len(owing) - NAMED} more" if len(owing) > NAMED else ""
    return Finding(WARN, f"{len(found)} cleanups wait for hosts that could not be reached: {named}{more}",
                   "start nova-compute there; for a host that is gone for good: nova-manage cleanup list")


def hosts(options: Options) -> Finding:
    """Compute hosts that are down, or out of use: a drain that nobody took back is easily forgotten."""
    from nova.model.services import ServiceQuery

    found = asked(options, lambda conductor: conductor.list_services(ServiceQuery(binary="nova-compute")))
    if isinstance(found, Finding):
        return found
    down = [one.host for one in found if not one.up]
    unused = [f"{one.host} ({one.disabled_reason or 'no reason given'})" for one in found if one.disabled]
    if len(down) == len(found):
        return Finding(BAD, f"no compute host is up: {some(down) if down else 'none has registered'}",
                       "start nova-compute there, and look at the last line of its log")
    said = [f"{len(named)} {what}: {some(named)}" for named, what in ((down, "down"), (unused, "disabled")) if named]
    if not said:
        return Finding(OK, f"all {len(found)} compute hosts are up and enabled")
    cures = (["start nova-compute there, or evacuate its servers"] if down else []) + \
        (["nova-manage host undrain HOST when its maintenance is over"] if unused else [])
    return Finding(WARN, f"of {len(found)} compute hosts " + "; ".join(said), "; ".join(cures))


def tasks(options: Options) -> Finding:
    """Operations that have come no further for long: their servers' rows are written with each step."""
    from nova.model.base import utcnow
    from nova.model.servers import Condition, ServerListQuery
    from nova.model.states import TaskState

    busy = Condition(column="task_state", op="in", values=tuple(task.value for task in TaskState))
    found = asked(options, lambda conductor: conductor.list_servers(ServerListQuery(
        conditions=(busy,), soft_deleted=True, sort=(("updated_at", "asc"),),
        changes_before=utcnow() - datetime.timedelta(minutes=STILL_MIN))).servers)
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, f"no operation stands still for more than {STILL_MIN} minutes")
    named = some([f"{one.uuid} ({one.task_state}{' on ' + one.host if one.host else ''})" for one in found])
    return Finding(WARN, f"{len(found)} operations came no further for {STILL_MIN} minutes: {named}",
                   "large disks may take that long; else look at the host's log, and openstack server event list ID")


def failures(options: Options) -> Finding:
    from nova.model.base import utcnow
    from nova.model.servers import Condition, ServerListQuery

    found = asked(options, lambda conductor: conductor.list_servers(ServerListQuery(
        conditions=(Condition(column="vm_state", value="error"),), sort=(("updated_at", "desc"),),
        changes_since=utcnow() - datetime.timedelta(hours=LATELY_H))).servers)
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, f"no server turned to ERROR in the last {LATELY_H} hours")
    why = next((one.fault.message for one in found if one.fault), "")
    return Finding(WARN, f"{len(found)} servers turned to ERROR in the last {LATELY_H} hours: "
                         f"{some([one.uuid for one in found])}" + (f"; the newest: {why}" if why else ""),
                   "openstack server show ID, and nova-manage request show REQ_ID, say why")


def capacity(options: Options) -> Finding:
    """Hosts that gave more than they have by now: they shrank, or their ratio did."""
    from nova.cmd.conductor import databases as both
    from nova.db import audits

    if not (options.database.connection and options.api_database.connection):
        return Finding(OK, "what hosts gave is looked at on a conductor's host")
    try:
        with both(options)[0].reading() as tx:
            found = audits.overused(tx)
    except errors.NovaError as error:
        return Finding(WARN, f"what hosts gave can not be read: {told(error)}", "see the database's line")
    if not found:
        return Finding(OK, "no host gave more than it has")
    named = some([f"{one.host} ({one.used} of {one.capacity} {one.resource_class})" for one in found])
    return Finding(WARN, f"these gave more than they have, and take no more: {named}",
                   "nova-manage host drain HOST, or a larger allocation ratio there")


def consoles(options: Options) -> Finding:
    """Whether users can come to consoles, as far as this machine knows it."""
    from nova.model.services import ServiceQuery

    if is_compute(options):
        return console_addresses(options)
    found = asked(options, lambda conductor: conductor.list_services(ServiceQuery(binary="nova-consoleauth")))
    if isinstance(found, Finding):
        return found
    up = [one.host for one in found if one.up]
    if up:
        return Finding(OK, f"nova-consoleauth is up on {some(up)}")
    down = f" (down: {some([one.host for one in found])})" if found else ""
    return Finding(WARN, f"no nova-consoleauth is up{down}: no console opens",
                   "start nova-consoleauth; only a cloud without consoles needs none")


def console_addresses(options: Options) -> Finding:
    """A compute host's: those that lead nowhere from another machine, where the controller is one."""
    from nova.rpc import transport

    transport.open_transport(options)  # declares transport_url, and connects to nothing
    places = [(f"[{section}]{name}", options[section][name]) for section, names in CONSOLE_PLACES.items()
              if options[section].enabled for name in names]
    if not places:
        return Finding(OK, "guests of this host have no consoles")
    broker_host, _ = _broker_address(options.transport_url or "rabbit://")
    local = [name for name, place in places if _is_local(place)]
    if not local or _is_local(broker_host):
        return Finding(OK, "consoles are at " + ", ".join(sorted({str(place) for _, place in places})))
    return Finding(WARN, f"the broker is at {broker_host}, and these name this machine alone: {', '.join(local)}",
                   "set them as doc/consoles.rst says, unless proxies and browsers are on this very machine")


def _is_local(place: str) -> bool:
    """Whether an address, a name or a URL is loopback's."""
    host = urllib.parse.urlsplit(place).hostname if "://" in place else place
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"


def disk(options: Options) -> Finding:
    path = options.instances_path if os.path.isdir(options.instances_path) else options.state_path
    if not os.path.isdir(path):
        return Finding(WARN, f"{path} does not exist yet", "it is made when nova-compute starts")
    free = shutil.disk_usage(path).free / 1024**3
    return Finding(OK if free > FREE_GB else BAD, f"{free:.0f} GB are free at {path}",
                   "" if free > FREE_GB else "make room: guests' disks and the image cache are there")


def kvm(options: Options) -> Finding:
    """As nova-compute found it, or as it would."""
    if not (options.compute_driver or "").endswith("LibvirtDriver"):
        return Finding(OK, "KVM is not used")
    from nova.privileged import kvm as probe

    found = probe.answer("x86_64", Path(options.state_path), SystemRunner(options.libvirt.kvm_probe_timeout))
    chosen = options.libvirt.virt_type
    if found is probe.KvmState.WORKS:
        return Finding(OK, probe.SENTENCES[found])
    if chosen == "qemu":
        return Finding(OK, "KVM is not used ([libvirt]virt_type = qemu)")
    if chosen == "kvm":
        return Finding(BAD, f"[libvirt]virt_type = kvm, and {probe.SENTENCES[found]}", "set it to auto, or mend KVM")
    return Finding(WARN, probe.SENTENCES[found],
                   "switch virtualisation on in the firmware, or nest it in the outer hypervisor")


CHECKS: tuple[tuple[str, Check], ...] = (
    ("configuration", config), ("broker", broker), ("database", databases), ("keystone", keystone),
    ("glance", glance), ("neutron", neutron), ("networks", networks), ("placement", placement), ("libvirt", libvirt),
    ("bridge tools", bridge_tools), ("packet filter", packet_filter),
    ("clock", clock), ("cleanups", cleanups),
    ("hosts", hosts), ("capacity", capacity), ("tasks", tasks), ("failures", failures),
    ("consoles", consoles),
    ("disk", disk), ("kvm", kvm))


def run(options: Options, say: Callable[[str], None]) -> int:
    """Print every check's line; 1 when one failed."""
    worst = 0
    for name, check in CHECKS:
        try:
            finding = check(options)
        except Exception as error:  # one check's accident must not hide the others
            finding = Finding(BAD, f"the check itself failed: {type(error).__name__}: {error}", "report this")
        cure = f"  -> {finding.cure}" if finding.cure else ""
        say(f"{name:14} {finding.state:8} {finding.what}{cure}")
        worst |= finding.state == BAD
    return int(worst)


__all__ = ["CHECKS", "Finding", "run"]
