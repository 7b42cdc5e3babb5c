"""Which options stand in nova.conf and in the files beside it, and whether anybody reads them."""

from __future__ import annotations

import difflib
import functools
import json
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from nova import conf
from nova.conf import logs, proxies
from nova.conf.base import Options
from nova.configuration import libraries
from nova.configuration.sources import normal, paths
from nova.manage.doctor.finding import BAD, OK, WARN, Finding

#: Sections of Nova's that mean nothing here, and why.
NOT_READ = {
    "placement": "conductors claim resources in their own database",
    "barbican_service_user": "our credentials for Barbican are those of [barbican] or [service_user]",
    "privsep_osbrick": "os-brick runs with nova-compute's own rights", "vault": "this release reads keys of Barbican",
    "manila": "this release attaches no shares", "vmware": "this release has no vSphere driver",
    "zvm": "this release has no z/VM driver", "guestfs": "no file system is opened on the host",
    "cyborg": "this release has no accelerators", "ironic": "this release has no bare metal",
    "cache": "nothing is cached in memcached but tokens ([keystone_authtoken])",
    "oslo_reports": "there are no reports", "profiler": "there is no profiler"}
#: Sections whose names the operator completes, by how they begin.
NOT_READ_FAMILIES = {"mdev_": "this release has no mediated devices", "vgpu_": "this release has no virtual GPUs",
                     "neutron_physnet_": "ports have no affinity to NUMA cells by their network"}
ELSEWHERE = "of Nova or of its libraries, and not used here"
ACCEPTED = "Accepted"  # how the help of an option begins that does nothing
LIKE = 0.75  # how like a name must be to be a misspelling of another one


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
    return [WrittenOption(normal(section), name.replace("-", "_"), os.fspath(path),
                          values[-1] if name in libraries.AUTH_TYPES else "")
            for section, names in sections.items() for name, values in names.items()]


def known(found: Sequence[WrittenOption]) -> Known:
    """Section -> name -> the option that it is for us or for a library, by old names too."""
    every = {section for sections in libraries.LISTS.values() for section in sections} | set(libraries.PRIVSEP)
    declared = [*((group, option) for group, options in conf.list_opts() for option in options),
                *(("DEFAULT", option) for option in (*logs.CLI_OPTS, *proxies.CLI_OPTS, *proxies.CLI_ONLY)),
                *libraries.declared(every), *libraries.credentials(_with_credentials(found))]
    names: dict[str, dict[str, cfg.Opt]] = {}
    for group, option in declared:
        for section, name in _names(normal(group), option):
            names.setdefault(section, {}).setdefault(name, option)
    return names


@functools.cache
def without_effect() -> Mapping[str, frozenset[str]]:
    """Section -> options of Nova and of its libraries, of this and of older releases, that nobody reads here."""
    text = resources.files(__package__).joinpath("without_effect.json").read_text()
    return {section: frozenset(names) for section, names in json.loads(text).items()}


def _names(section: str, option: cfg.Opt) -> list[tuple[str, str]]:
    old = [(normal(one.group or section), one.name or option.name) for one in option.deprecated_opts]
    return [(place, name.replace("-", "_")) for place, name in [(section, option.name), (section, option.dest), *old]]


def _with_credentials(found: Sequence[WrittenOption]) -> Mapping[str, set[str]]:
    """Sections that have credentials, or may (``auth_section`` names others) -> the ``auth_type`` in any file."""
    sections: dict[str, set[str]] = {section: set() for section in libraries.WITH_CREDENTIALS}
    for one in found:
        if one.auth_type:
            sections.setdefault(one.section, set()).add(one.auth_type)
    return sections


def unread(options: Options) -> Finding:
    """Options that nobody reads, and options that do nothing: all of them, as the list is the result."""
    found = written(options)
    names = known(found)
    idle: dict[str, list[str]] = {}
    for one in found:
        if why := _idle(one, names):
            idle.setdefault(why, []).append(str(one))
    strange = [_described(one, names) for one in found
               if one.name not in names.get(one.section, {}) and not _idle(one, names)]
    said = [f"{len(strange)} that nobody reads: {', '.join(strange)}"] if strange else []
    if idle:
        said.append(f"{sum(map(len, idle.values()))} without effect: "
                    + ", ".join(f"{', '.join(listed)} ({why})" for why, listed in idle.items()))
    if not said:
        return Finding(OK, f"all {len(found)} options in files are read")
    cure = "correct the names, or take the options out of the file" if strange else "take them out of the file when " \
        "you like"
    return Finding(BAD if strange else WARN, "; ".join(said), cure)


def _idle(one: WrittenOption, names: Known) -> str:
    """Why an option that operators rightly know has no effect here; empty: it has one, or nobody knows it."""
    family = next((why for begin, why in NOT_READ_FAMILIES.items() if one.section.startswith(begin)), "")
    if why := NOT_READ.get(one.section, family):
        return f"this section is not read: {why}"
    if option := names.get(one.section, {}).get(one.name):
        return _first_sentence(option.help) if (option.help or "").startswith(ACCEPTED) else ""
    return ELSEWHERE if one.name in without_effect().get(one.section, ()) else ""


def _described(one: WrittenOption, names: Known) -> str:
    close = difflib.get_close_matches(one.name, names.get(one.section, ()), 1, LIKE)
    elsewhere = sorted(section for section, declared in names.items() if one.name in declared)
    hint = f", is it {close[0]}?" if close else f", is it [{elsewhere[0]}]{one.name}?" if elsewhere else ""
    return f"{one} (in {one.file}{hint})"


def _first_sentence(text: str | None) -> str:
    return (text or "").split(". ")[0].rstrip(".")
