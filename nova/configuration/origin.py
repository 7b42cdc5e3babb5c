"""The origin of an option's value: a file, the command line, or the environment."""

from __future__ import annotations

import contextlib
import copy
import re
import string
from collections.abc import Iterable, Sequence

from oslo_config import cfg, types

from nova import errors

_NAMED = re.compile(r"\[(\w+)\](\w+)")


class Literal(cfg.ConfigOpts):
    """Options with the text as written in files, including ``$``: readable even if the value is not usable."""

    class Template(string.Template):
        delimiter = "\0"  # occurs in no text


def literal(options: Iterable[tuple[str, cfg.Opt]], files: Sequence[str], folders: Sequence[str]) -> Literal:
    """Return the options (group, option) of the files with every value as text."""
    made = Literal()
    for group, option in options:
        plain = copy.copy(option)
        plain.type = types.String()
        made.register_opt(plain, group=None if group == "DEFAULT" else group)
    made([], project="nova", default_config_files=list(files), default_config_dirs=list(folders))
    return made


def place(options: cfg.ConfigOpts, group: str, name: str) -> str:
    """Describe the origin of a readable option's value; empty if it is not set."""
    found = options.get_location(name, None if group == "DEFAULT" else group)
    if found is None or not found.location.is_user_controlled:
        return ""
    return _WORDS[found.location].format(found.detail)


_WORDS = {cfg.Locations.user: "{}", cfg.Locations.command_line: "the command line",
          cfg.Locations.environment: "the environment variable {}"}


def sentence(options: cfg.ConfigOpts, error: errors.NovaError) -> str:
    """Return the error's sentence; for a configuration error, with the origin of the option that it names."""
    named = _NAMED.search(error.message) if isinstance(error, errors.config.Wrong) else None
    where = _place_or_none(options, *named.groups()) if named else ""
    if not where or where in error.message:
        return error.message
    return f"{error.message.rstrip('.')} ({named[0] if named else ''} is set in {where})"


def _place_or_none(options: cfg.ConfigOpts, group: str, name: str) -> str:
    """Return the origin; empty also for an option that is unknown or unreadable."""
    with contextlib.suppress(cfg.Error, ValueError):
        return place(options, group, name)
    return ""
