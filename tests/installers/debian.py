"""Debian: apt, debconf and dbconfig configure and start our programs by the scripts, units and init scripts of Debian's
own nova packages; then our packages take their place."""

from __future__ import annotations

import json
import re

from tests.installers import debian_packaging as packaging
from tests.installers.debian_packaging import APT_S, BETWEEN, OURS, THEIRS, Mixed
from tests.installers.site import Site, rendered

PACKAGES = ("nova-common", "nova-api", "nova-conductor", "nova-scheduler", "nova-compute", "nova-compute-qemu",
            "nova-consoleproxy")
#: The nova.conf of Debian's package is Nova's sample: debconf fills lines that are there, behind a # or not.
ASKED_FOR = {
    "DEFAULT": ("transport_url", "my_ip"), "api_database": ("connection",), "database": ("connection",),
    "cinder": ("os_region_name",),
    "keystone_authtoken": ("www_authenticate_uri", "auth_uri", "auth_url", "region_name", "username", "project_name",
                           "password"),
    "neutron": ("endpoint_override", "auth_url", "project_name", "username", "password",
                "metadata_proxy_shared_secret"),
    "placement": ("auth_url", "project_name", "username", "password", "region_name"),
}
PASSWORD = {"auth_type": "password", "user_domain_name": "Default", "project_domain_name": "Default"}
BESIDE = {
    "DEFAULT": {"state_path": "/var/lib/nova", "log_dir": "/var/log/nova", "enabled_apis": "osapi_compute,metadata"},
    "api": {"auth_strategy": "keystone"},
    "keystone_authtoken": PASSWORD,
    "neutron": {**PASSWORD, "region_name": "RegionOne", "service_metadata_proxy": "true"},
    "placement": PASSWORD,
    "oslo_concurrency": {"lock_path": "/var/lock/nova"},
    "vnc": {"enabled": "true", "server_listen": "127.0.0.1",
            "novncproxy_base_url": "http://127.0.0.1:6080/vnc_auto.html"},
    "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"},
}
#: In the files of uWSGI that Debian's package has: our libraries are not the system's.
UWSGI = r"s|^plugins = python3|&\nvirtualenv = /usr/lib/nova|; s|^processes = .*|processes = 2|"
LOGGING = "[loggers]\nkeys = root\n[handlers]\nkeys = stderr\n[formatters]\nkeys = plain\n" \
          "[logger_root]\nlevel = INFO\nhandlers = stderr\n[handler_stderr]\nclass = StreamHandler\nargs = ()\n" \
          "formatter = plain\n[formatter_plain]\nformat = %(message)s\n"
CONSOLES = "NOVA_CONSOLE_PROXY_TYPE=novnc\n"
HYPERVISOR = "Depends: nova-common, nova-compute\nProvides: nova-compute-hypervisor\n"
VIRT_TYPE = {"DEFAULT": {"compute_driver": "libvirt.LibvirtDriver"}, "libvirt": {"virt_type": "qemu"}}
FILTERS = "rootwrap.d/compute.filters"
UNITS = ("nova-api", "nova-api-metadata", "nova-conductor", "nova-scheduler", "nova-compute", "nova-novncproxy")
#: Of ours, nova-api serves metadata, too.
OURS_THEN = ("nova-common", "nova-api", "nova-conductor", "nova-scheduler", "nova-privileged", "nova-compute",
             "nova-novncproxy")
UNITS_THEN = ("nova-api", "nova-conductor", "nova-scheduler", "nova-compute", "nova-novncproxy")
PORTS = (8774, 8775, 6080)
DB_ADMIN, DB_ADMIN_PASSWORD = "dbconfig", "of-the-admin"


def story(site: Site) -> str:
    packaged(site)
    installed(site)
    healthy(site, UNITS)
    site.boot("vm1")
    again(site)
    upgraded(site)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    return "Debian's packaging starts our programs; our packages take its place, and a server lives on"


def packaged(site: Site) -> None:
    """Debian's packaging around our programs, in ``BETWEEN``."""
    packaging.fetch(site, PACKAGES)
    site.machine.ok(f"sed -i '{UWSGI}' {THEIRS}/nova-api/files/etc/nova/*-uwsgi.ini")
    for mixed in mixtures(site):
        packaging.mix(site, mixed)
    packaging.make(site, "nova-compute-qemu", HYPERVISOR, {"etc/nova/nova-compute.conf": rendered(VIRT_TYPE)})


def installed(site: Site) -> None:
    """What debconf asks is answered before; one apt then makes databases, tables and cells, and starts all."""
    answered(site)
    said = packaging.apt_install(site, f"{BETWEEN}/*.deb")
    assert re.search(r"^The api database is at schema \d+ \(was empty\)\.$", said, re.M), said[-4000:]
    assert re.search(r"^The cell database is at schema \d+ \(was empty\)\.$", said, re.M), said[-4000:]


def mixtures(site: Site) -> tuple[Mixed, ...]:
    """What is of Nova's tree lies where Debian has it."""
    share = "usr/share/nova-common"
    paste, filters = (site.machine.ok(f"cat etc/nova/{name}") for name in ("api-paste.ini", FILTERS))
    return (
        Mixed("nova-common", "nova-common", {f"{share}/nova.conf": template(), f"{share}/logging.conf": LOGGING,
                                             f"{share}/api-paste.ini": paste},
              programs=("nova-api-wsgi", "nova-metadata-wsgi")),
        Mixed("nova-api", "nova-api"),
        Mixed("nova-conductor", "nova-conductor"),
        Mixed("nova-scheduler", "nova-scheduler"),
        Mixed("nova-compute", "nova-compute", {f"etc/nova/{FILTERS}": filters},
              depends="nova-compute-kvm | nova-compute-hypervisor, "),
        Mixed("nova-consoleproxy", "nova-novncproxy", {"usr/share/nova-consoleproxy/default": CONSOLES}),
    )


def template() -> str:
    """Lines for all that debconf may set, and what is set beside it."""
    text = ""
    for section in {**ASKED_FOR, **BESIDE}:
        text += rendered({section: BESIDE.get(section, {})})
        text += "".join(f"#{name} = <None>\n" for name in ASKED_FOR.get(section, ()))
    return text


def answered(site: Site) -> None:
    site.sql(f"CREATE USER IF NOT EXISTS '{DB_ADMIN}'@'%' IDENTIFIED BY '{DB_ADMIN_PASSWORD}';"
             f"GRANT ALL PRIVILEGES ON *.* TO '{DB_ADMIN}'@'%' WITH GRANT OPTION;")
    host, port = site.database_address.split(":")
    # for mysql without a port, by which the database of cell0 is made
    site.write("/root/.my.cnf", f"[client]\nhost = {host}\nport = {port}\n", mode="0600")
    questions = {**asked(site), **databases("nova-common", "nova", site), **databases("nova-api", "novaapi", site)}
    lines = "".join(f"{package} {question} {kind} {value}\n" for (package, question, kind), value in questions.items())
    site.write("/root/answers", lines, mode="0600")
    site.machine.ok("debconf-set-selections /root/answers")


def asked(site: Site) -> dict[tuple[str, str, str], str]:
    """Of nova-common's own templates, and the console's kind."""
    words = {
        "rabbit-host": f"{site.broker_address}/nova", "rabbit-userid": "nova", "ksat-public-url": site.url("keystone"),
        "ksat-region": "RegionOne", "ksat-service-username": "nova", "ksat-service-project-name": "service",
        "ksat-admin-username": "admin", "ksat-admin-project-name": "admin", "neutron_url": site.url("neutron"),
        "neutron_admin_tenant_name": "service", "neutron_admin_username": "neutron",
        "placement_admin_tenant_name": "service", "placement_admin_username": "nova",
        "placement_os_region_name": "RegionOne", "cinder_os_region_name": "RegionOne",
    }
    secrets = {
        "rabbit-password": site.password("rabbit-nova"), "ksat-service-password": site.password("nova"),
        "ksat-admin-password": site.password("admin"), "neutron_admin_password": "of-neutron",
        "metadata_secret": "of-the-proxy", "placement_admin_password": site.password("nova"),
    }
    yes = ("configure_rabbit", "configure_ksat", "configure_neutron", "configure_placement", "configure_db")
    return {**{("nova-common", f"nova/{name}", "string"): value for name, value in words.items()},
            **{("nova-common", f"nova/{name}", "password"): value for name, value in secrets.items()},
            **{("nova-common", f"nova/{name}", "boolean"): "true" for name in yes},
            ("nova-common", "nova/ksat-create-service-user", "boolean"): "false",
            ("nova-api", "novaapi/configure_db", "boolean"): "true",
            ("nova-consoleproxy", "nova-consoleproxy/daemon_type", "select"): "novnc"}


def databases(package: str, name: str, site: Site) -> dict[tuple[str, str, str], str]:
    """What dbconfig asks for a database of that name."""
    host, port = site.database_address.split(":")
    return {
        (package, f"{package}/dbconfig-install", "boolean"): "true",
        (package, f"{package}/database-type", "select"): "mysql",
        (package, f"{package}/mysql/method", "select"): "TCP/IP",
        (package, f"{package}/remote/host", "select"): host,
        (package, f"{package}/remote/newhost", "string"): host,
        (package, f"{package}/remote/port", "string"): port,
        (package, f"{package}/mysql/admin-user", "string"): DB_ADMIN,
        (package, f"{package}/mysql/admin-pass", "password"): DB_ADMIN_PASSWORD,
        (package, f"{package}/mysql/app-pass", "password"): "of-the-database",
        (package, f"{package}/password-confirm", "password"): "of-the-database",
        (package, f"{package}/app-password-confirm", "password"): "of-the-database",
        (package, f"{package}/db/app-user", "string"): f"{name}@{host}",
        (package, f"{package}/db/dbname", "string"): name,
    }


def healthy(site: Site, units: tuple[str, ...]) -> None:
    """As `service --status-all` and an administrator see it: each unit runs by its script's word, ports answer, all
    services are up; sudo starts no shell."""
    site.wait_for("nova-manage service list", r"nova-compute .*:-\)")
    for unit in units:
        site.machine.ok(f"service {unit} status")
    for port in PORTS:
        site.machine.ok(f"python3 -c \"import urllib.request as it; it.urlopen('http://127.0.0.1:{port}/')\"")
    listed = json.loads(site.openstack("compute service list -f json"))
    assert {(one["Binary"], one["State"]) for one in listed} >= {
        (name, "up") for name in ("nova-conductor", "nova-scheduler", "nova-compute")}, listed
    site.machine.ok("su nova -s /bin/sh -c 'nova-status upgrade check'")


def again(site: Site) -> None:
    """apt finds nothing to do. `dpkg-reconfigure` runs all scripts once more, with the same answers (debconf has
    forgotten passwords): the same files, the same cells."""
    before, running = made(site), pids(site, UNITS)
    assert "0 upgraded, 0 newly installed" in packaging.apt_install(site, f"{BETWEEN}/*.deb")
    assert pids(site, UNITS) == running
    answered(site)
    site.machine.ok("DEBIAN_FRONTEND=noninteractive dpkg-reconfigure nova-common nova-api", APT_S)
    assert made(site) == before
    healthy(site, UNITS)
    assert site.status("vm1") == "ACTIVE"


def made(site: Site) -> str:
    """What the scripts make."""
    return site.machine.ok("cd /etc/nova && sha256sum nova.conf *.ini && stat -c '%n %U:%G %a' * && "
                           "nova-manage cell_v2 list_cells --verbose")


def pids(site: Site, units: tuple[str, ...]) -> list[str]:
    found = [site.machine.ok(f"systemctl show -P MainPID {unit}").strip() for unit in units]
    assert "0" not in found, dict(zip(units, found, strict=True))
    return found


def upgraded(site: Site) -> None:
    """Our packages bring units and users of their own; nova.conf stays. apt takes away nova-consoleproxy, whose place a
    new package takes: new ones are started by hand."""
    kept = site.machine.ok("sha256sum /etc/nova/nova.conf /etc/nova/nova-compute.conf /etc/nova/api-paste.ini")
    said = packaging.apt_install(site, " ".join(f"{OURS}/{name}_*.deb" for name in OURS_THEN))
    assert "does not start" not in said and "not restarted" not in said, said[-4000:]
    site.machine.ok("systemctl enable --now nova-novncproxy")
    assert site.machine.ok("sha256sum /etc/nova/nova.conf /etc/nova/nova-compute.conf /etc/nova/api-paste.ini") == kept
    healthy(site, UNITS_THEN)
    users = {unit: site.machine.ok(f"ps -o user= -p {pid}").strip()
             for unit, pid in zip(UNITS_THEN, pids(site, UNITS_THEN), strict=True)}
    assert users["nova-conductor"] != "nova" == users["nova-api"] == users["nova-compute"], users
    site.machine.ok("systemctl is-active nova-privileged.socket && "
                    "test ! -e /etc/sudoers.d/nova-common && test ! -e /etc/logrotate.d/nova-common")
