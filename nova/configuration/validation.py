"""A trial read of every option, of nova and libraries, that finds the unreadable one.

Libraries declare the same options in different ways, and read them at different times. So the trial has its own options
object, loaded from the same files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence

from oslo_config import cfg

from nova import conf, errors, failures
from nova.configuration import database_urls, libraries
from nova.configuration.origin import literal, place
from nova.configuration.sources import Sources, Values, normal, unreadable
from nova.configuration.value_descriptions import problem

REFERENCE = ("a $ in it refers to another option by name, but no option of that name can be read. Write $$ for a "
             "literal dollar sign")
#: The errors of oslo.config for a value that refers to an unknown option, or to itself.
UNREADABLE = (cfg.Error, RecursionError)

def ours() -> list[tuple[str, cfg.Opt]]:
    """Return (section, option) of all options that nova declares."""
    return [(section.GROUP, option) for section in conf.sections() for option in section.OPTS]


def refuse(options: cfg.ConfigOpts, declared: Iterable[tuple[str, cfg.Opt]], sources: Sources,
           on_command_line: frozenset[str] = frozenset()) -> None:
    """Read all options. Raises config.Unusable for the first that cannot be read. ``on_command_line``: options (by
    attribute) set on the command line, which overrides the files."""
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
    """Return the error about an option: its origin, the problem, and a valid form."""
    read = literal([(group, option)], *sources)
    value = (read if group == "DEFAULT" else read[group])[option.dest]
    by_hand = group == "DEFAULT" and option.dest in on_command_line
    where = "the command line" if by_hand else place(read, group, option.dest)
    name = f"[{group}]{option.dest}" + (f" in {where}" if where else "")
    return errors.config.Unusable(option=name, reason=REFERENCE if reference else problem(option, value))


def check_libraries(options: cfg.ConfigOpts, thorough: bool = False) -> None:
    """Check the options of libraries. Raises config.Unusable for the first that cannot be read. Without ``thorough``,
    checks the usual ones and those of imported libraries: imports take time, and keystonemiddleware's list declares
    options that conflict with keystoneauth's."""
    sources = Sources.of(options)
    values = sources.values()
    declared = [*libraries.usual(), *libraries.declared(set(values) if thorough else libraries.in_use() & set(values))]
    if thorough:
        declared += libraries.credentials({section: found[name][-1:] for section, found in values.items()
                                           for name in libraries.AUTH_TYPES if name in found})
    _try(declared, sources, values)


def _try(declared: Sequence[tuple[str, cfg.Opt]], sources: Sources, values: Values) -> None:
    """Read the options that are set, each in its first declaration."""
    trial, kept = _fresh(sources), []
    for group, option in declared:
        with contextlib.suppress(cfg.DuplicateOptError):  # declared by another library or by nova with the same meaning
            trial.register_opt(option, group=None if group == "DEFAULT" else group)
            if is_set(group, option, values):
                kept.append((group, option))
    refuse(trial, kept, sources)


def _fresh(sources: Sources) -> cfg.ConfigOpts:
    """Load nova's options again. Raises config.Wrong."""
    made = conf.register(cfg.ConfigOpts())
    with failures.replaced((cfg.Error, OSError, UnicodeError),
            lambda error: errors.config.Wrong(reason=unreadable(error, sources.files))):
        made([], project="nova", default_config_files=list(sources.files), default_config_dirs=list(sources.folders))
    return made


def is_set(group: str, option: cfg.Opt, values: Values) -> bool:
    """Return whether a file or the environment sets the option, also by a deprecated name."""
    names = [(group, option.dest), *((old.group or group, (old.name or option.dest).replace("-", "_"))
                                     for old in option.deprecated_opts)]
    return any(name in values.get(normal(section), {}) for section, name in names) \
        or f"OS_{group}__{option.dest}".upper() in os.environ


def check_again(options: cfg.ConfigOpts) -> None:
    """Check the files before a running program reloads them. Raises config.Wrong."""
    sources = Sources.of(options)
    fresh = _fresh(sources)
    database_urls.forget(fresh, options.prog)
    refuse(fresh, ours(), sources)


def explained(options: cfg.ConfigOpts, error: BaseException) -> errors.Invalid | None:
    """Return the config error that names the option behind an error of oslo.config, which may name another option or
    repeat a value. None if oslo.config did not raise it."""
    if not isinstance(error, (*UNREADABLE, cfg.ConfigSourceValueError)):
        return None
    try:
        check_again(options)
        check_libraries(options, thorough=True)
    except errors.config.Wrong as found:
        return found
    return None
