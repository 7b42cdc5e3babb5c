"""The arguments of nova-manage, nova-status and nova-policy before a command: configuration files, and daemons' logging
options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from oslo_config import cfg

from nova import configuration
from nova.conf import logs
from nova.configuration.command_line import names
from nova.version import RELEASE

LOG_WORDS = "log_words"


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the arguments before a command. Logging options are kept as text, which the configuration parses."""
    parser.set_defaults(**{LOG_WORDS: []})
    parser.add_argument("--config-file", action="append", default=[], metavar="FILE", help="read this file; repeatable")
    parser.add_argument("--config-dir", action="append", default=[], metavar="DIR",
                        help="read all *.conf files in this directory, after the other files; repeatable")
    parser.add_argument("--version", action="version", version=RELEASE, dest="print_release", help="print the release")
    parser.add_argument("--post-mortem", "--post_mortem", action="store_true",
                        help="open Python's debugger on an internal error of the program")
    for option in logs.CLI_OPTS:
        shown = argparse.SUPPRESS if option.name != "debug" else "log debug messages"
        for prefix in ("", "no") if isinstance(option, cfg.BoolOpt) else ("",):
            flags = list(_flags(option, prefix))
            nargs = 0 if isinstance(option, cfg.BoolOpt) else None
            parser.add_argument(*flags, action=_Keep, nargs=nargs, dest=LOG_WORDS, default=argparse.SUPPRESS,
                                help=shown if not prefix else argparse.SUPPRESS)


def _flags(option: cfg.Opt, prefix: str) -> Iterator[str]:
    """Yield the option's flags with dashes and with underscores, including deprecated names."""
    yield from ([f"-{option.short}"] if option.short and not prefix else [])
    spelt = {one for name in names(option) for one in (name.replace("_", "-"), name.replace("-", "_"))}
    yield from sorted(f"--{prefix}{one}" for one in spelt)


class _Keep(argparse.Action):
    """Keep the argument as it was given."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object,
                 option_string: str | None = None) -> None:
        word = option_string if self.nargs == 0 else f"{option_string}={values}"
        setattr(namespace, LOG_WORDS, [*getattr(namespace, LOG_WORDS), word])


def words_of(given: argparse.Namespace) -> list[str]:
    """Return the named files and directories, and the logging options, as arguments for the configuration."""
    return [*named(given), *given.log_words]


def words_with_databases(given: argparse.Namespace) -> list[str]:
    """Return the same for a program that also reads the conductor's own file: next to the first named file, or in its
    usual place."""
    if given.config_file:
        return [*configuration.beside(named(given), "nova-conductor"), *given.log_words]
    return [*configuration.own_files(), *words_of(given)]


def named(given: argparse.Namespace) -> list[str]:
    """Return the named files and directories, as arguments for the configuration."""
    return [word for flag, paths in (("--config-file", given.config_file), ("--config-dir", given.config_dir))
            for path in paths for word in (flag, path)]
