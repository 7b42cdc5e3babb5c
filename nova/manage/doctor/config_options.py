"""Doctor check that the options in nova.conf and in the files next to it are known and have an effect."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from oslo_config import cfg

from nova import conf
from nova.conf import logs, proxies
from nova.conf._options import Options, oslo_conf
from nova.conf._without_effect import WithoutEffect, table
from nova.configuration import libraries
from nova.configuration.sources import normal, paths
from nova.manage.doctor.finding import BAD, OK, WARN, Detail, Finding

ACCEPTED = "Accepted"  # start of the help of an option without effect
LIKE = 0.75  # similarity from which a name counts as a misspelling of another one
MOST_REASONS = 5  # reasons in a line; --json has all
MISSPELT = "correct the names, or remove the options from the file"
NEEDLESS = "remove them from the file when convenient"


class WrittenOption(NamedTuple):
    """An option in a file. ``auth_type``: its value, if the option is auth_type. ``without_effect``: its row in the
    table of options without effect. ``unprotected``: its value relies on a missing protection. Other values are not
    kept."""

    section: str
    name: str
    file: str
    auth_type: str = ""
    without_effect: WithoutEffect | None = None
    unprotected: bool = False

    def __str__(self) -> str:
        return f"[{self.section}]{self.name}"


Known = Mapping[str, Mapping[str, cfg.Opt]]


def written(options: Options) -> list[WrittenOption]:
    """Return all options in the files that ``options`` were read from, and in other services' files next to them."""
    source = oslo_conf(options)
    named = [Path(path) for path in paths(source.config_file)]
    named += [found for folder in paths(source.config_dir) for found in sorted(Path(folder).glob("*.conf"))]
    folders = sorted({path.parent for path in named})
    beside = [found for folder in folders for found in sorted(folder.glob("nova-*.conf"))]
    return [one for path in dict.fromkeys([*named, *beside]) if os.access(path, os.R_OK) for one in _of(path)]


def _of(path: Path) -> list[WrittenOption]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(os.fspath(path), sections).parse()
    return [_option(normal(section), name.replace("-", "_"), os.fspath(path), values)
            for section, names in sections.items() for name, values in names.items()]


def _option(section: str, name: str, file: str, values: Sequence[str]) -> WrittenOption:
    row = table().find(section, name)
    return WrittenOption(section, name, file, values[-1] if name in libraries.AUTH_TYPES else "", row,
                         row is not None and row.removes_protection(values))


def known(found: Sequence[WrittenOption]) -> Known:
    """Return section -> name -> the option of nova or of a library, under current and deprecated names."""
    every = {section for sections in libraries.LISTS.values() for section in sections} | set(libraries.PRIVSEP)
    declared = [*((group, option) for group, options in conf.list_opts() for option in options),
                *(("DEFAULT", option) for option in (*logs.CLI_OPTS, *proxies.CLI_OPTS, *proxies.CLI_ONLY)),
                *libraries.declared(every), *libraries.credentials(_with_credentials(found))]
    names: dict[str, dict[str, cfg.Opt]] = {}
    for group, option in declared:
        for section, name in _names(normal(group), option):
            names.setdefault(section, {}).setdefault(name, option)
    return names


def _names(section: str, option: cfg.Opt) -> list[tuple[str, str]]:
    old = [(normal(one.group or section), one.name or option.name) for one in option.deprecated_opts]
    return [(place, name.replace("-", "_")) for place, name in [(section, option.name), (section, option.dest), *old]]


def _with_credentials(found: Sequence[WrittenOption]) -> Mapping[str, set[str]]:
    """Return the sections with credentials (``auth_section`` may name others) -> their ``auth_type`` in all files."""
    sections: dict[str, set[str]] = {section: set() for section in libraries.WITH_CREDENTIALS}
    for one in found:
        if one.auth_type and one.without_effect is None:
            sections.setdefault(one.section, set()).add(one.auth_type)
    return sections


def unread(options: Options) -> Finding:
    """Report all unknown options, and all options without effect; the list is not shortened."""
    found = written(options)
    names = known(found)
    idle = {one: why for one in found if (why := _idle(one, names))}
    strange = {one: _described(one, names) for one in found
               if one not in idle and one.name not in names.get(one.section, {})}
    relied_on = [one for one in idle if one.unprotected]
    without = [one for one in idle if not one.unprotected]
    if not strange and not idle:
        return Finding(OK, f"all {len(found)} options in files are read")
    said = [f"{len(strange)} unknown options: {', '.join(strange.values())}"] if strange else []
    said += [f"{len(relied_on)} without the expected protection: {_with_reasons(relied_on, idle)}"] if relied_on else []
    said += [f"{len(without)} without effect: {_with_reasons(without, idle)}"] if without else []
    details = (*(_detail(one, BAD, "unknown option") for one in strange),
               *(_detail(one, BAD if one.unprotected else WARN, why) for one, why in idle.items()))
    return Finding(BAD if strange or relied_on else WARN, "; ".join(said), _cure(bool(strange), relied_on), details)


def _idle(one: WrittenOption, names: Known) -> str:
    """Return why a valid option has no effect here; empty if it has an effect, or is unknown."""
    if option := names.get(one.section, {}).get(one.name):
        return _first_sentence(option.help) if (option.help or "").startswith(ACCEPTED) else ""
    return one.without_effect.reason.rstrip(".") if one.without_effect else ""


def _with_reasons(listed: Sequence[WrittenOption], idle: Mapping[WrittenOption, str]) -> str:
    """Return the options by name, with their reasons if these are few."""
    by_reason: dict[str, list[str]] = {}
    for one in listed:
        by_reason.setdefault(idle[one], []).append(str(one))
    if len(by_reason) > MOST_REASONS:
        return f"{', '.join(map(str, listed))} (--json has the reasons)"
    return ", ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())


def _cure(strange: bool, relied_on: Sequence[WrittenOption]) -> str:
    cures = dict.fromkeys(one.without_effect.cure for one in relied_on if one.without_effect)
    return "; ".join([*([MISSPELT] if strange else []), *cures]) or NEEDLESS


def _detail(one: WrittenOption, state: str, reason: str) -> Detail:
    return {"option": str(one), "file": one.file, "state": state.lower(), "reason": reason}


def _described(one: WrittenOption, names: Known) -> str:
    close = difflib.get_close_matches(one.name, names.get(one.section, ()), 1, LIKE)
    elsewhere = sorted(section for section, declared in names.items() if one.name in declared)
    hint = f", is it {close[0]}?" if close else f", is it [{elsewhere[0]}]{one.name}?" if elsewhere else ""
    return f"{one} (in {one.file}{hint})"


def _first_sentence(text: str | None) -> str:
    return (text or "").split(". ")[0].rstrip(".")
