"""Maintainer scripts, which dpkg runs before and after it changes files. Each may run twice, also without systemd.

A daemon is neither enabled nor started by the first installation, when it is not configured. An upgrade restarts it if
it runs.
"""

from __future__ import annotations

from .control import FIRST
from .table import COMMON, EXAMPLES, Package

SYSTEMD_RUNS = "[ -d /run/systemd/system ]"
#: A conductor does not start on tables of an older release. The running one continues until they are synced.
RESTART_CONDUCTOR = """\
if systemctl --quiet is-active nova-conductor.service; then
    if nova-status upgrade check 2>/dev/null | grep -A1 '| Check: Schemas ' | grep -q '| Result: Success '; then
        systemctl restart nova-conductor.service || echo "nova-conductor: does not start: journalctl -u nova-conductor"
    else
        echo "nova-conductor: not restarted, its tables are not those of this release. When you are ready:"
        echo "    nova-manage api_db sync && nova-manage db sync && systemctl restart nova-conductor"
    fi
fi
"""


def scripts(package: Package) -> dict[str, str]:
    """Return the scripts of a package by name."""
    drops = "".join(f'dpkg-maintscript-helper rm_conffile {path} {FIRST} {package.name} -- "$@"\n'
                    for path in package.drops)
    bodies = {"preinst": drops, "postinst": drops + _when("configure", _configured(package)),
              "prerm": _when("remove", _removing(package)),
              "postrm": drops + _when("remove", _removed(package)) + _when("purge", _purged(package))}
    return {name: f"#!/bin/sh\nset -e\n{body}" for name, body in bodies.items() if body}


def _configured(package: Package) -> str:
    """Return the body of ``postinst configure``: users are created before their folders. ``$2`` is the previous
    version: empty for a first installation."""
    made = "".join(f"systemd-sysusers {name}\n" for name in package.users)
    made += "".join(f"systemd-tmpfiles --create {name}\n" for name in package.folders)
    made += _example(package) + _handed_over(package) + _if('[ -z "$2" ]', _first(package))
    return made + _if(SYSTEMD_RUNS, _restarted(package))


def _handed_over(package: Package) -> str:
    """Return commands that give the configuration file to the daemon's own user, if a previous release or Debian's
    package ran the daemon as nova or root."""
    config = package.config
    if config is None or config.owner in ("root", "nova"):
        return ""
    path = f"/etc/nova/{config.name}"
    return _if(f"stat -c %U {path} 2>/dev/null | grep -qx 'nova\\|root'",
               f"chown {config.owner}:{config.group} {path}\n")


def _example(package: Package) -> str:
    """Return commands that install the example of a missing configuration file, which units name. A file that a
    deployment tool wrote is not changed."""
    config = package.config
    if config is None:
        return ""
    path = f"/etc/nova/{config.name}"
    return _if(f"[ ! -e {path} ]", f"install -o {config.owner} -g {config.group} -m {config.mode:04o} "
                                   f"/{EXAMPLES}/{config.name} {path}\n")


def _first(package: Package) -> str:
    if not package.unit:
        return ""
    name, config = package.name, package.config
    files = " and ".join(["nova.conf", *([config.name] if config else [])])
    return f'echo "{name}: not started. Write {files} in /etc/nova, then: systemctl enable --now {name}"\n'


def _restarted(package: Package) -> str:
    if not package.unit:
        return ""
    name = package.name
    modules = "systemctl restart systemd-modules-load.service || true\n" if package.modules else ""  # not in containers
    restart = RESTART_CONDUCTOR if name == "nova-conductor" else (
        f'systemctl try-restart {name}.service || echo "{name}: does not start: journalctl -u {name}"\n')
    return modules + "systemctl daemon-reload\n" + _if('[ -n "$2" ]', restart)


def _removing(package: Package) -> str:
    if package.name == COMMON:  # bytecode that Python has compiled later would prevent the removal of folders
        return "find /usr/lib/nova -name __pycache__ -type d -prune -exec rm -rf {} +\n"
    return _if(SYSTEMD_RUNS, f"systemctl --quiet disable --now {package.name}.service\n")


def _removed(package: Package) -> str:
    return _if(SYSTEMD_RUNS, "systemctl daemon-reload\n") if package.unit else ""


def _purged(package: Package) -> str:
    """Return commands that purge the files which dpkg does not know. The daemons' data in /var/lib is kept, and also
    the users who own it."""
    config = package.config
    edited = f"rm -f /etc/nova/{config.name}\nrmdir /etc/nova 2>/dev/null || true\n" if config else ""
    return edited + ("rm -rf /var/log/nova /run/nova /run/nova-migrations\n" if package.name == COMMON else "")


def _when(word: str, body: str) -> str:
    return _if(f'[ "$1" = {word} ]', body)


def _if(condition: str, body: str) -> str:
    """Return an `if` with these lines; empty if there are none."""
    return f"if {condition}; then\n{_indented(body)}fi\n" if body else ""


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
