"""What dpkg runs before and after it changes files. Each script may run twice, and does without a running systemd.

A daemon is neither enabled nor started when its package is installed first: it is not configured then. After an upgrade
it is restarted if it runs.
"""

from __future__ import annotations

from .control import FIRST
from .table import COMMON, EXAMPLES, Package

SYSTEMD_RUNS = "[ -d /run/systemd/system ]"
#: A conductor does not start on tables of an older release. The one that runs goes on until they are synced.
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
    """Name -> text of the scripts that this package has."""
    drops = "".join(f'dpkg-maintscript-helper rm_conffile {path} {FIRST} {package.name} -- "$@"\n'
                    for path in package.drops)
    bodies = {"preinst": drops, "postinst": drops + _when("configure", _configured(package)),
              "prerm": _when("remove", _removing(package)),
              "postrm": drops + _when("remove", _removed(package)) + _when("purge", _purged(package))}
    return {name: f"#!/bin/sh\nset -e\n{body}" for name, body in bodies.items() if body}


def _configured(package: Package) -> str:
    """Users before what they own. ``$2`` is the version before: empty when the package is new here."""
    made = "".join(f"systemd-sysusers {name}\n" for name in package.users)
    made += "".join(f"systemd-tmpfiles --create {name}\n" for name in package.folders)
    made += _example(package) + _handed_over(package) + _if('[ -z "$2" ]', _first(package))
    return made + _if(SYSTEMD_RUNS, _restarted(package))


def _handed_over(package: Package) -> str:
    """A daemon that ran as nova in the release before, or was Debian's, has a user of its own, who reads its file."""
    config = package.config
    if config is None or config.owner in ("root", "nova"):
        return ""
    path = f"/etc/nova/{config.name}"
    return _if(f"stat -c %U {path} 2>/dev/null | grep -qx 'nova\\|root'",
               f"chown {config.owner}:{config.group} {path}\n")


def _example(package: Package) -> str:
    """The file to edit, where there is none: units name it. What a deployment tool wrote is left alone."""
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
    if package.name == COMMON:  # what Python has compiled by itself would keep folders from being removed
        return "find /usr/lib/nova -name __pycache__ -type d -prune -exec rm -rf {} +\n"
    return _if(SYSTEMD_RUNS, f"systemctl --quiet disable --now {package.name}.service\n")


def _removed(package: Package) -> str:
    return _if(SYSTEMD_RUNS, "systemctl daemon-reload\n") if package.unit else ""


def _purged(package: Package) -> str:
    """dpkg removes the conffiles. What daemons keep in /var/lib stays, and so do the users who own it."""
    config = package.config
    edited = f"rm -f /etc/nova/{config.name}\nrmdir /etc/nova 2>/dev/null || true\n" if config else ""
    return edited + ("rm -rf /var/log/nova /run/nova /run/nova-migrations\n" if package.name == COMMON else "")


def _when(word: str, body: str) -> str:
    return _if(f'[ "$1" = {word} ]', body)


def _if(condition: str, body: str) -> str:
    """The lines behind the condition; nothing where there are none."""
    return f"if {condition}; then\n{_indented(body)}fi\n" if body else ""


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
