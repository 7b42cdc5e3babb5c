"""Doctor checks of this machine: its tools, disks, KVM, libvirt, and console addresses."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import urllib.parse
from pathlib import Path

from nova import errors
from nova.conf._drivers import is_libvirt
from nova.conf._options import Options, oslo_conf
from nova.conf._security_mode import asked_mode
from nova.manage.doctor.daemons import runs_network
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, asked, is_host, some
from nova.manage.doctor.services import broker_address
from nova.model.security.security_modes import SecurityMode
from nova.privileged import sandbox
from nova.privileged.runner import SYSTEM_PATH, SystemRunner

FREE_GIB = 5
#: Section -> options with the listen and proxy client addresses of a compute host's consoles.
CONSOLE_PLACES = {
    "vnc": ("server_listen", "server_proxyclient_address"),
    "spice": ("server_listen", "server_proxyclient_address"),
    "serial_console": ("proxyclient_address",),
}
TOOLS = ("dnsmasq", "iptables-save", "iptables-restore", "dhcp_release")
OPTIONAL_TOOLS = {"use_ipv6": ("radvd", "radvd"), "send_arp_for_ha": ("arping", "iputils-arping"),
                  "share_dhcp_address": ("ebtables-restore", "iptables")}  # option -> (program, its package)


def libvirt(options: Options) -> Finding:
    """Check that libvirt answers, and report its version; skipped with another driver."""
    if not is_libvirt(options.compute_driver):
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


def image_sandbox(options: Options) -> Finding:
    """Check that the tools that read images can run in a sandbox on this compute host."""
    if not is_libvirt(options.compute_driver):
        return Finding(OK, "no image tools run here")
    try:
        sandbox.check(SystemRunner(15))
    except errors.host.NoSandbox as error:
        return Finding(BAD, error.message, "apt install bubblewrap; in a container, allow it to create namespaces")
    return Finding(OK, "tools that read images run in a sandbox")


def credentials(options: Options) -> Finding:
    """Check that a compute host has no credentials except its own broker user and secret."""
    from nova.cmd import host_credentials

    if not is_host(options):
        return Finding(OK, "not the configuration of a compute host: control plane services have credentials")
    names = host_credentials.found(options)
    if names:
        return Finding(BAD, f"this compute host has {', '.join(names)}", host_credentials.CURE)
    return Finding(OK, "this compute host has no credentials of the cloud")


def bridge_tools(options: Options) -> Finding:
    """Check that the programs that nova-network runs on its hosts are installed."""
    from nova.conf.network import neutron_in_use

    if neutron_in_use(options):
        return Finding(OK, "networks are Neutron's, whose agents have their own tools")
    is_network_host = runs_network(options)
    if is_network_host is False:
        return Finding(OK, "nova-network does not run here: its tools are not needed")
    state, certainly = (BAD, "") if is_network_host else (WARN, "; needed if nova-network will run here")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing:
        return Finding(state, f"missing: {', '.join(missing)}{certainly}",
                       "apt install dnsmasq-base dnsmasq-utils iptables")
    for option, (tool, package) in OPTIONAL_TOOLS.items():
        if getattr(options, option) and shutil.which(tool, path=path) is None:
            return Finding(state, f"missing: {tool}, which {option} = true needs{certainly}", f"apt install {package}")
    return Finding(OK, "dnsmasq and iptables are installed")


def consoles(options: Options) -> Finding:
    """Check that users can open consoles, as far as this machine can tell."""
    from nova.model.host.services import ServiceQuery

    if is_host(options):
        return console_addresses(options)
    if asked_mode(options) is SecurityMode.UPSTREAM:
        return Finding(OK, "conductors check the tokens of consoles")
    found = asked(options, lambda conductor: conductor.list_services(ServiceQuery(binary="nova-consoleauth")))
    if isinstance(found, Finding):
        return found
    up = [one.host for one in found if one.up]
    if up:
        return Finding(OK, f"nova-consoleauth is up on {some(up)}")
    down = f" (down: {some([one.host for one in found])})" if found else ""
    return Finding(WARN, f"no nova-consoleauth is up{down}: consoles cannot be opened",
                   "start nova-consoleauth, unless the cloud has no consoles")


def console_addresses(options: Options) -> Finding:
    """Find console addresses of a compute host that other machines cannot reach, if the controller is another one."""
    from nova.rpc import transport

    if not options.compute_driver:
        return Finding(OK, "no guests run here")
    source = oslo_conf(options)
    transport.open_transport(source)  # only declares transport_url, without a connection
    groups = {section: getattr(options, section) for section in CONSOLE_PLACES}
    places = [(f"[{section}]{name}", getattr(groups[section], name)) for section, names in CONSOLE_PLACES.items()
              if groups[section].enabled for name in names]
    if not places:
        return Finding(OK, "no consoles are enabled on this host")
    broker_host, _ = broker_address(options.hosts_transport_url or source.transport_url)
    local = [name for name, place in places if _is_local(place)]
    if not local or _is_local(broker_host):
        return Finding(OK, "consoles are at " + ", ".join(sorted({str(place) for _, place in places})))
    return Finding(WARN, f"the broker is at {broker_host}, but these are loopback addresses: {', '.join(local)}",
                   "set them as described in doc/consoles.rst, unless the console proxies run on this machine")


def _is_local(place: str) -> bool:
    """True if an address, a name or a URL is a loopback address."""
    host = urllib.parse.urlsplit(place).hostname if "://" in place else place
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host or "").is_loopback
    return host == "localhost"


def disk(options: Options) -> Finding:
    """Check the free disk space, in GiB: for guest disks and the image cache on a compute host, on other hosts for the
    services' state."""
    path = options.instances_path if os.path.isdir(options.instances_path) else options.state_path
    maker, content = (("nova-compute", "guest disks and the image cache") if options.compute_driver else
                      ("a service", "the services' state"))
    if not os.path.isdir(path):
        return Finding(WARN, f"{path} does not exist yet", f"no action needed: it is created when {maker} starts")
    free = shutil.disk_usage(path).free / 1024**3
    return Finding(OK if free > FREE_GIB else BAD, f"{free:.0f} GiB are free at {path}",
                   "" if free > FREE_GIB else f"free up space: {content} are stored there")


def kvm(options: Options) -> Finding:
    """Report whether KVM works, as nova-compute found or would find it; the result is not saved."""
    if not is_libvirt(options.compute_driver):
        return Finding(OK, "KVM is not used")
    from nova.privileged import kvm as probe

    found = probe.answer("x86_64", Path(options.state_path), SystemRunner(options.libvirt.kvm_probe_timeout),
                         keep=False)
    chosen = options.libvirt.virt_type
    if found is probe.KvmState.WORKS:
        return Finding(OK, probe.SENTENCES[found])
    if chosen == "qemu":
        return Finding(OK, "KVM is not used ([libvirt]virt_type = qemu)")
    if chosen == "kvm":
        return Finding(BAD, f"[libvirt]virt_type = kvm, but {probe.SENTENCES[found]}", "set it to auto, or repair KVM")
    return Finding(WARN, probe.SENTENCES[found],
                   "enable virtualisation in the firmware, or nested virtualisation in the outer hypervisor")
