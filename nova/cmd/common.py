"""What every daemon's ``main`` does first: configuration, concurrency, logs, and the rule about database URLs."""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence

from oslo_config import cfg

from nova import concurrency, conf, logs, service
from nova.conf import logs as log_section
from nova.monitoring import counting
from nova.version import RELEASE

LOG = logging.getLogger(__name__)

_LOCATED = re.compile(r": Value for option \S+ from LocationInfo\(.*detail='([^']*)'\) is not valid: ")

#: Programs that may know a database's URL.
MAY_KNOW_DATABASE = ("nova-conductor", "nova-manage", "nova-all")


def fail(message: str) -> object:
    """End with exit code 2 and one sentence on standard error."""
    sys.stderr.write(f"{program(sys.argv[0])}: {message}\n")
    raise SystemExit(2)


def program(path: str) -> str:
    """The program's name as operators type it, also where its module was run (``python -m nova.cmd.api``)."""
    folder, name = os.path.split(path)
    is_module = name.endswith(".py") and os.path.basename(folder) == "cmd"
    return f"nova-{name.removesuffix('.py').replace('_', '-')}" if is_module else name


def load(binary: str, args: Sequence[str] | None = None, extra_cli: Sequence[cfg.Opt] = (),
         about: str | None = None, epilog: str | None = None) -> cfg.ConfigOpts:
    """The configuration of a program: its files and command line, checked. Exits with 2 and a sentence when wrong.

    Files: ``--config-file``, else /etc/nova/nova.conf (or OS_NOVA_CONFIG_DIR's) and <program>.conf beside it.
    ``about`` and ``epilog`` stand before and after the options in ``--help``.
    """
    options = cfg.CONF  # oslo.messaging's own tracing group is on the global object only
    options.register_cli_opts([*log_section.CLI_OPTS, *extra_cli])
    conf.register(options)
    given = list(sys.argv[1:] if args is None else args)
    try:
        options(given, project="nova", prog=binary, version=RELEASE, default_config_files=_files(binary, given),
                description=about, epilog=epilog)
        _touch(options)
    except (cfg.ConfigFilesNotFoundError, cfg.ConfigFileParseError, cfg.ConfigFileValueError, ValueError) as error:
        fail(str(error).replace("\n", " "))
    _refuse_database(options, binary)
    return options


def _files(binary: str, given: Sequence[str]) -> list[str]:
    """Default files; a program of its own name's file is read beside an explicit --config-file too."""
    folder = os.environ.get("OS_NOVA_CONFIG_DIR", "/etc/nova")
    named = [given[index + 1] for index, word in enumerate(given[:-1]) if word == "--config-file"]
    named += [word.split("=", 1)[1] for word in given if word.startswith("--config-file=")]
    if named:
        return []  # oslo.config takes the named ones; ours is added by beside()
    return [path for path in (f"{folder}/nova.conf", f"{folder}/{binary}.conf") if os.path.exists(path)]


def beside(args: Sequence[str], binary: str) -> list[str]:
    """The command line with ``<binary>.conf`` beside the first named file added, where there is one."""
    given = list(args)
    for index, word in enumerate(given):
        path = given[index + 1] if word == "--config-file" and index + 1 < len(given) else \
            word.split("=", 1)[1] if word.startswith("--config-file=") else None
        if path is not None:
            own = os.path.join(os.path.dirname(path), f"{binary}.conf")
            return [*given, "--config-file", own] if os.path.exists(own) and own not in given else given
    return given


def own_files() -> list[str]:
    """For nova-manage and nova-status, as words of a command line: nova.conf, and the conductor's own file when we may
    read it."""
    folder = os.environ.get("OS_NOVA_CONFIG_DIR", "/etc/nova")
    found = [f"{folder}/{name}" for name in ("nova.conf", "nova-conductor.conf")
             if os.access(f"{folder}/{name}", os.R_OK)]
    return [word for path in found for word in ("--config-file", path)]


def _touch(options: cfg.ConfigOpts) -> None:
    """Read every option once, so that a wrong value is found now and named, not at 3 a.m."""
    for section in conf.sections():
        group = options if section.GROUP == "DEFAULT" else options[section.GROUP]
        for option in section.OPTS:
            try:
                getattr(group, option.dest)
            except cfg.ConfigFileValueError as error:
                raise ValueError(f"[{section.GROUP}]{option.name}{_plain(error)}") from None
            except cfg.TemplateSubstitutionError:
                continue


def _plain(error: Exception) -> str:
    """oslo.config's words for a wrong value: where it stands and what is wrong, without its objects."""
    return _LOCATED.sub(r" in \1: ", f": {error}")


def _refuse_database(options: cfg.ConfigOpts, binary: str) -> None:
    if binary in MAY_KNOW_DATABASE:
        return
    for group in ("database", "api_database"):
        if options[group].connection:
            fail(f"{binary} must not know a database: move [{group}]connection from its configuration to "
                 f"nova-conductor.conf beside it (mode 0600), which only nova-conductor and nova-manage read.")


def begin(options: cfg.ConfigOpts, binary: str, mode: str = "eventlet") -> None:
    """What comes after the configuration, and before anything that counts or connects is imported."""
    concurrency.patch(mode)
    try:
        logs.set_up(options, binary)
    except OSError as error:
        fail(f"the log can not be written: {error}. Look at [DEFAULT]log_dir and log_file: the folder must be there, "
             "and writable for this daemon's user (install -d -m 0770 -g nova /var/log/nova)")
    try:
        counting.make_folder(binary)
    except OSError as error:
        LOG.warning("no folder to count in could be made, so metrics are one worker's alone: %s", error)


def preload(modules: Sequence[str]) -> None:
    """Import before the fork what every worker needs: pages are shared, and workers start at once."""
    for module in modules:
        importlib.import_module(module)


def run(binary: str, make: Callable[[cfg.ConfigOpts, int], service.DaemonService],
        workers: Callable[[cfg.ConfigOpts], int] = lambda _options: 1,
        prefer: Callable[[cfg.ConfigOpts], str] = lambda _options: "eventlet",
        modules: Sequence[str] = ("nova.rpc.transport",)) -> int:
    """A daemon, whole: from the command line to its exit code."""
    options = load(binary, beside(sys.argv[1:], binary))
    begin(options, binary, prefer(options))
    preload(modules)
    return service.run(options, binary, lambda index: make(options, index), workers(options))


def cpus() -> int:
    """Processors that this process may run on (sched_getaffinity(2)): the number of workers where none is
    configured."""
    return len(os.sched_getaffinity(0))
