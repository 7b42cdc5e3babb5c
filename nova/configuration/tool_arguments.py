"""The words of a command line that nova-manage, nova-status and nova-policy take before a command: files, and the
options of logs that daemons take."""

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
    """Those before a command. What is given of logs is kept as words, which the configuration reads."""
    parser.set_defaults(**{LOG_WORDS: []})
    parser.add_argument("--config-file", action="append", default=[], metavar="FILE", help="read this file; repeatable")
    parser.add_argument("--config-dir", action="append", default=[], metavar="DIR",
                        help="read all *.conf files in it, after the other files; repeatable")
    parser.add_argument("--version", action="version", version=RELEASE, dest="print_release", help="print the release")
    parser.add_argument("--post-mortem", "--post_mortem", action="store_true",
                        help="open Python's debugger where an error is one of the program itself")
    for option in logs.CLI_OPTS:
        shown = argparse.SUPPRESS if option.name != "debug" else "log what helps developers"
        for prefix in ("", "no") if isinstance(option, cfg.BoolOpt) else ("",):
            flags = list(_flags(option, prefix))
            nargs = 0 if isinstance(option, cfg.BoolOpt) else None
            parser.add_argument(*flags, action=_Keep, nargs=nargs, dest=LOG_WORDS, default=argparse.SUPPRESS,
                                help=shown if not prefix else argparse.SUPPRESS)


def _flags(option: cfg.Opt, prefix: str) -> Iterator[str]:
    """In both spellings, by old names too."""
    yield from ([f"-{option.short}"] if option.short and not prefix else [])
    spelt = {one for name in names(option) for one in (name.replace("_", "-"), name.replace("-", "_"))}
    yield from sorted(f"--{prefix}{one}" for one in spelt)


class _Keep(argparse.Action):
    """Keep the word as it was given."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object,
                 option_string: str | None = None) -> None:
        word = option_string if self.nargs == 0 else f"{option_string}={values}"
        setattr(namespace, LOG_WORDS, [*getattr(namespace, LOG_WORDS), word])


def words_of(given: argparse.Namespace) -> list[str]:
    """The named files and folders, and what was given of logs, as words for the configuration."""
    return [*named(given), *given.log_words]


def words_with_databases(given: argparse.Namespace) -> list[str]:
    """The same for a program that reads the conductor's own file, too: beside the first named file, or where it
    usually is."""
    if given.config_file:
        return [*configuration.beside(named(given), "nova-conductor"), *given.log_words]
    return [*configuration.own_files(), *words_of(given)]


def named(given: argparse.Namespace) -> list[str]:
    """The named files and folders, as words for the configuration."""
    return [word for flag, paths in (("--config-file", given.config_file), ("--config-dir", given.config_dir))
            for path in paths for word in (flag, path)]
