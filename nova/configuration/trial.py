"""Reads every option on trial, ours and libraries', and says which one cannot be read.

Libraries declare the same options in their own ways, and read them when they like. So the trial has options of its own,
from the same files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from oslo_config import cfg

from nova import conf, errors
from nova.conf.base import Options
from nova.configuration import database_urls, libraries
from nova.configuration.origin import literal, place
from nova.configuration.sources import Sources, Values, normal, unreadable
from nova.configuration.wanted import problem

REFERENCE = ("a $ in it refers to another option by its name, and no option of that name can be read. Write $$ for a "
             "dollar sign that belongs to the value")
#: What oslo.config raises where a value refers to what is no option, or to itself.
UNREADABLE = (cfg.Error, RecursionError)

def ours() -> list[tuple[str, cfg.Opt]]:
    """Section and option, of all that nova itself declares."""
    return [(section.GROUP, option) for section in conf.sections() for option in section.OPTS]


def refuse(options: cfg.ConfigOpts, declared: Iterable[tuple[str, cfg.Opt]], sources: Sources,
           on_command_line: frozenset[str] = frozenset()) -> None:
    """Read them all. config.Unusable for the first that cannot be read. ``on_command_line``: options (by attribute)
    that the command line sets, which stands above the files."""
    for group, option in declared:
        holder = options if group == "DEFAULT" else options[group]
        try:
            getattr(holder, option.dest)
        except ValueError:
            raise unusable(group, option, sources, on_command_line, reference=False) from None
        except UNREADABLE:
            raise unusable(group, option, sources, on_command_line, reference=True) from None


def unusable(group: str, option: cfg.Opt, sources: Sources, on_command_line: frozenset[str], reference: bool
             ) -> errors.Invalid:
    """The error about an option: where it was set, what is wrong, what to write."""
    read = literal([(group, option)], *sources)
    value = (read if group == "DEFAULT" else read[group])[option.dest]
    by_hand = group == "DEFAULT" and option.dest in on_command_line
    where = "the command line" if by_hand else place(read, group, option.dest)
    name = f"[{group}]{option.dest}" + (f" in {where}" if where else "")
    return errors.config.Unusable(option=name, reason=REFERENCE if reference else problem(option, value))


def check_libraries(options: Options, thorough: bool = False) -> None:
    """config.Unusable for an option of a library that cannot be read. Without ``thorough``: of the usual ones, and of
    libraries that are imported already. An import has its price, and keystonemiddleware's declares options that
    keystoneauth's are in the way of."""
    sources = Sources.of(options)
    values = sources.values()
    declared = [*libraries.usual(), *libraries.declared(set(values) if thorough else libraries.in_use() & set(values))]
    if thorough:
        declared += libraries.credentials({section: found[name][-1:] for section, found in values.items()
                                           for name in libraries.AUTH_TYPES if name in found})
    _try(declared, sources, values)


def _try(declared: Sequence[tuple[str, cfg.Opt]], sources: Sources, values: Values) -> None:
    """Those of them that are set, each in its first declaration."""
    trial, kept = _fresh(sources), []
    for group, option in declared:
        with contextlib.suppress(cfg.DuplicateOptError):  # another library's, or ours: of the same name and meaning
            trial.register_opt(option, group=None if group == "DEFAULT" else group)
            if is_set(group, option, values):
                kept.append((group, option))
    refuse(trial, kept, sources)


def _fresh(sources: Sources) -> cfg.ConfigOpts:
    """Our options, read anew. config.Wrong."""
    made = conf.register(cfg.ConfigOpts())
    try:
        made([], project="nova", default_config_files=list(sources.files), default_config_dirs=list(sources.folders))
    except (cfg.Error, OSError, UnicodeError) as error:
        raise errors.config.Wrong(reason=unreadable(error, sources.files)) from None
    return made


def is_set(group: str, option: cfg.Opt, values: Values) -> bool:
    """Whether a file or the environment names it, also by an old name."""
    names = [(group, option.dest), *((old.group or group, (old.name or option.dest).replace("-", "_"))
                                     for old in option.deprecated_opts)]
    return any(name in values.get(normal(section), {}) for section, name in names) \
        or f"OS_{group}__{option.dest}".upper() in os.environ


def check_again(options: Options) -> None:
    """Before files are read again while a program runs. config.Wrong."""
    sources = Sources.of(options)
    fresh = _fresh(sources)
    database_urls.forget(fresh, options.prog)
    refuse(fresh, ours(), sources)


def explained(options: Options, error: BaseException) -> errors.Invalid | None:
    """The option that stands behind an error of oslo.config, which names another one or repeats a value; None: it is
    none of its errors."""
    if not isinstance(error, (*UNREADABLE, cfg.ConfigSourceValueError)):
        return None
    try:
        check_again(options)
        check_libraries(options, thorough=True)
    except errors.config.Wrong as found:
        return found
    return None
