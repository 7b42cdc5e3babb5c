"""Which options stand in nova.conf and in the files beside it, and whether anybody reads them."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

from keystoneauth1 import exceptions, loading
from oslo_config import cfg

from nova import conf
from nova.conf import logs, proxies
from nova.conf.base import Options
from nova.configuration.sources import paths
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, some

#: Libraries that read nova.conf, by the names under which they list their options.
LIBRARIES = ("oslo.messaging", "oslo.middleware", "oslo.middleware.cors", "oslo.middleware.healthcheck",
             "oslo.middleware.http_proxy_to_wsgi", "oslo.middleware.sizelimit", "oslo.policy", "oslo.concurrency",
             "oslo.config", "keystonemiddleware.auth_token", "os_vif")
PRIVSEP = ("vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged")
#: Sections whose credentials are keystoneauth's to read.
WITH_CREDENTIALS = ("keystone_authtoken", "service_user", "glance", "cinder", "barbican", "neutron", "oslo_limit",
                    "vendordata_dynamic_auth", "keystone")
#: Sections of Nova's that mean nothing here, and why.
NOT_READ = {
    "placement": "conductors claim resources in their own database",
    "barbican_service_user": "our credentials for Barbican are those of [barbican] or [service_user]",
    "privsep_osbrick": "os-brick runs with nova-compute's own rights", "vault": "this release reads keys of Barbican",
    "cyborg": "this release has no accelerators", "ironic": "this release has no bare metal",
    "cache": "nothing is cached in memcached but tokens ([keystone_authtoken])",
    "oslo_reports": "there are no reports", "profiler": "there is no profiler"}
AUTH_TYPES = ("auth_type", "auth_plugin")
ACCEPTED = "Accepted"  # how the help of an option begins that does nothing


class WrittenOption(NamedTuple):
    """An option in a file. ``auth_type``: its value, where the option is that: no other value is looked at."""

    section: str
    name: str
    file: str
    auth_type: str = ""

    def __str__(self) -> str:
        return f"[{self.section}]{self.name}"


Known = Mapping[str, Mapping[str, cfg.Opt]]


def written(options: Options) -> list[WrittenOption]:
    """Every option in the files that ``options`` were read from, and in those of other daemons beside them."""
    named = [Path(path) for path in paths(options.config_file)]
    named += [found for folder in paths(options.config_dir) for found in sorted(Path(folder).glob("*.conf"))]
    folders = sorted({path.parent for path in named})
    beside = [found for folder in folders for found in sorted(folder.glob("nova-*.conf"))]
    return [one for path in dict.fromkeys([*named, *beside]) if os.access(path, os.R_OK) for one in _of(path)]


def _of(path: Path) -> list[WrittenOption]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(os.fspath(path), sections).parse()
    return [WrittenOption(_section(section), name.replace("-", "_"), os.fspath(path),
                          values[-1] if name in AUTH_TYPES else "")
            for section, names in sections.items() for name, values in names.items()]


def _section(name: str) -> str:
    """As oslo.config compares it."""
    return name if name.upper() == "DEFAULT" else name.lower()


def known(found: Sequence[WrittenOption]) -> Known:
    """Section -> name -> the option that it is for us or for a library, by old names too."""
    lists = [*conf.list_opts(), ("DEFAULT", [*logs.CLI_OPTS, *proxies.CLI_OPTS, *proxies.CLI_ONLY]), *_of_libraries()]
    lists += [(section, _credentials(auth_types)) for section, auth_types in _with_credentials(found).items()]
    names: dict[str, dict[str, cfg.Opt]] = {}
    for group, declared in lists:
        for option in declared:
            for section, name in _names(_section(group), option):
                names.setdefault(section, {}).setdefault(name, option)
    return names


def _names(section: str, option: cfg.Opt) -> list[tuple[str, str]]:
    old = [(_section(one.group or section), one.name or option.name) for one in option.deprecated_opts]
    return [(place, name.replace("-", "_")) for place, name in [(section, option.name), (section, option.dest), *old]]


def _of_libraries() -> list[tuple[str, list[cfg.Opt]]]:
    listed: list[tuple[str, list[cfg.Opt]]] = []
    for entry in entry_points(group="oslo.config.opts"):
        if entry.name in LIBRARIES:
            listed += [(getattr(group, "name", group) or "DEFAULT", list(declared))
                       for group, declared in entry.load()()]
        if entry.name == "oslo.privsep":
            listed += [(section, list(declared)) for _group, declared in entry.load()() for section in PRIVSEP]
    return listed


def _with_credentials(found: Sequence[WrittenOption]) -> Mapping[str, set[str]]:
    """Sections that have credentials, or may (``auth_section`` names others) -> the ``auth_type`` in any file."""
    sections: dict[str, set[str]] = {section: set() for section in WITH_CREDENTIALS}
    for one in found:
        if one.auth_type:
            sections.setdefault(one.section, set()).add(one.auth_type)
    return sections


def _credentials(auth_types: Iterable[str]) -> list[cfg.Opt]:
    """What keystoneauth reads in a section, for the ``auth_type`` that it names."""
    read = [*loading.get_auth_common_conf_options(), *loading.get_session_conf_options()]
    for auth_type in sorted(auth_types):
        with contextlib.suppress(exceptions.NoMatchingPlugin):  # which the checks of credentials tell
            read += loading.get_auth_plugin_conf_options(auth_type)
    return read


def unread(options: Options) -> Finding:
    """Options that nobody reads, and options that do nothing."""
    found = written(options)
    names = known(found)
    strange = [one for one in found if one.section not in NOT_READ and one.name not in names.get(one.section, {})]
    if strange:
        return Finding(BAD, f"nobody reads {some([_described(one, names) for one in strange])}",
                       "correct the names, or take the options out of the file")
    idle = [f"{one} (this section is not read: {NOT_READ[one.section]})" for one in found if one.section in NOT_READ]
    idle += [f"{one} ({_first_sentence(names[one.section][one.name].help)})" for one in found
             if one.section not in NOT_READ and _does_nothing(names[one.section][one.name])]
    if idle:
        return Finding(WARN, f"these options have no effect: {some(idle)}", "take them out of the file when you like")
    return Finding(OK, f"all {len(found)} options in files are read")


def _described(one: WrittenOption, names: Known) -> str:
    close = difflib.get_close_matches(one.name, names.get(one.section, ()), 1)
    elsewhere = sorted(section for section, declared in names.items() if one.name in declared)
    hint = f", is it {close[0]}?" if close else f", is it [{elsewhere[0]}]{one.name}?" if elsewhere else ""
    return f"{one} (in {one.file}{hint})"


def _does_nothing(option: cfg.Opt) -> bool:
    return (option.help or "").startswith(ACCEPTED)


def _first_sentence(text: str | None) -> str:
    return (text or "").split(". ")[0].rstrip(".")
