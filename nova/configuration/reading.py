"""Loading of a program's files and command line; on an error it exits with one sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from oslo_config import cfg

from nova import conf, errors
from nova.conf import logs as log_section
from nova.conf._options import Options, oslo_conf
from nova.configuration import database_urls
from nova.configuration.command_line import spelt, typed
from nova.configuration.sources import Sources, unreadable
from nova.configuration.validation import check_libraries, ours, refuse
from nova.version import RELEASE


def fail(message: str) -> NoReturn:
    """Exit with status 2 and one sentence on standard error."""
    sys.stderr.write(f"{program(sys.argv[0])}: {message}\n")
    raise SystemExit(2)


def program(path: str) -> str:
    """Return the program's name as operators type it, also if its module was run (``python -m nova.cmd.api``)."""
    folder, name = os.path.split(path)
    is_module = name.endswith(".py") and os.path.basename(folder) == "cmd"
    return f"nova-{name.removesuffix('.py').replace('_', '-')}" if is_module else name


def load(binary: str, args: Sequence[str] | None = None) -> Options:
    """Load and check the configuration of a program other than a daemon: :func:`read`, and the options of libraries."""
    options = read(binary, args)
    try:
        check_libraries(oslo_conf(options))
    except errors.config.Wrong as error:
        fail(error.message)
    return options


def read(binary: str, args: Sequence[str] | None = None, extra_cli: Sequence[cfg.Opt] = (),
         about: str | None = None, epilog: str | None = None) -> Options:
    """Load the configuration of a program from its files and command line, and check nova's own options. On an error it
    exits with status 2 and a sentence. Imports no library that must not be imported before eventlet has patched the
    standard library.

    Files: ``--config-file``, otherwise /etc/nova/nova.conf (or the one in OS_NOVA_CONFIG_DIR) and <program>.conf next
    to it. ``about`` and ``epilog`` appear before and after the options in ``--help``.
    """
    source = cfg.CONF  # oslo.messaging declares its tracing group only on the global object
    cli = [*log_section.CLI_OPTS, *extra_cli]
    source.register_cli_opts(cli)
    conf.register(source)
    given = each_file_once(spelt(sys.argv[1:] if args is None else args, cli))
    files = _files(binary, given)
    try:
        by_hand = typed(given, cli)
        source(given, project="nova", prog=binary, version=RELEASE, default_config_files=files,
               description=about, epilog=epilog)
        database_urls.forget(source, binary)
        refuse(source, ours(), Sources.of(source), by_hand)
    except errors.config.Wrong as error:
        fail(error.message)
    except (cfg.Error, OSError, ValueError) as error:
        fail(unreadable(error, files_of(given) or files))
    return Options.of(source)


def files_of(args: Sequence[str]) -> list[str]:
    """Return the files named on a command line, in order."""
    return [path for _index, path in _named(args)]


def _named(args: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (index of the argument with the file, file) of each ``--config-file``."""
    for index, word in enumerate(args):
        if word == "--config-file" and index + 1 < len(args):
            yield index + 1, args[index + 1]
        elif word.startswith("--config-file="):
            yield index, word.split("=", 1)[1]


def each_file_once(args: Sequence[str]) -> list[str]:
    """Return the arguments without repeated ``--config-file`` options for one file: multi-valued options would count
    twice."""
    words, named = list(args), list(_named(args))
    for index, path in reversed(named):
        if any(_same(path, other) for place, other in named if place < index):
            del words[index if words[index].startswith("--") else index - 1:index + 1]
    return words


def _same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _files(binary: str, given: Sequence[str]) -> list[str]:
    """Return the default files. The program's own file is read in addition to an explicit --config-file, too."""
    if files_of(given):
        return []  # oslo.config reads the named ones; beside() adds the program's own
    folder = os.environ.get("OS_NOVA_CONFIG_DIR", "/etc/nova")
    found = [path for path in (f"{folder}/nova.conf", f"{folder}/{binary}.conf") if os.path.exists(path)]
    return [path for at, path in enumerate(found) if not any(_same(path, other) for other in found[:at])]


def beside(args: Sequence[str], binary: str) -> list[str]:
    """Return the command line with ``<binary>.conf`` from the directory of the first named file added, if it exists."""
    given = list(args)
    for path in files_of(given)[:1]:
        own = os.path.join(os.path.dirname(path), f"{binary}.conf")
        if os.path.exists(own) and not any(_same(own, named) for named in files_of(given)):
            return [*given, "--config-file", own]
    return given


def own_files() -> list[str]:
    """Return arguments for nova-manage and nova-status: nova.conf, and the conductor's own file if it is readable."""
    folder = os.environ.get("OS_NOVA_CONFIG_DIR", "/etc/nova")
    found = [f"{folder}/{name}" for name in ("nova.conf", "nova-conductor.conf")
             if os.access(f"{folder}/{name}", os.R_OK)]
    return [word for path in found for word in ("--config-file", path)]
