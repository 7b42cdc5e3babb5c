"""The words of a command line that all tools of operators take: files, and oslo.log's options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from oslo_config import cfg

from nova.conf import logs
from nova.version import RELEASE

LOG_WORDS = "log_words"


def add_common(parser: argparse.ArgumentParser) -> None:
    """Those before a command. What is given of logs is kept as words, which the configuration reads."""
    parser.set_defaults(**{LOG_WORDS: []})
    parser.add_argument("--config-file", action="append", default=[], metavar="FILE", help="read this file; repeatable")
    parser.add_argument("--config-dir", metavar="DIR", help="all *.conf files in it")
    parser.add_argument("--version", action="version", version=RELEASE, dest="print_release", help="print the release")
    for option in logs.CLI_OPTS:
        shown = argparse.SUPPRESS if option.name != "debug" else "log what helps developers"
        for prefix in ("", "no") if isinstance(option, cfg.BoolOpt) else ("",):
            flags = list(_flags(option, prefix))
            nargs = 0 if isinstance(option, cfg.BoolOpt) else None
            parser.add_argument(*flags, action=_Keep, nargs=nargs, dest=LOG_WORDS, default=argparse.SUPPRESS,
                                help=shown if not prefix else argparse.SUPPRESS)


def _flags(option: cfg.Opt, prefix: str) -> Iterator[str]:
    """In both spellings, by old names too."""
    names = [option.name, *(old.name for old in option.deprecated_opts if old.name)]
    yield from ([f"-{option.short}"] if option.short and not prefix else [])
    spelt = {one for name in names for one in (name.replace("_", "-"), name.replace("-", "_"))}
    yield from sorted(f"--{prefix}{one}" for one in spelt)


class _Keep(argparse.Action):
    """Keep the word as it was given."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object,
                 option_string: str | None = None) -> None:
        word = option_string if self.nargs == 0 else f"{option_string}={values}"
        setattr(namespace, LOG_WORDS, [*getattr(namespace, LOG_WORDS), word])


def files_of(given: argparse.Namespace) -> list[str]:
    """The named files and folder, as words for the configuration."""
    named = [word for path in given.config_file for word in ("--config-file", path)]
    return [*named, *(["--config-dir", given.config_dir] if given.config_dir else [])]
