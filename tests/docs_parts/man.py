"""``etc/man``: a manual page for each program, from its command line and its module's docstring."""

from __future__ import annotations

import argparse
import configparser
import functools
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nova.cmd import console_proxy, policy
from nova.conf import logs, proxies
from nova.console.kinds import KINDS
from nova.devel.nova_all import plan
from nova.manage import main, status
from tests.docs_parts import commands, roff
from tests.docs_parts.commands import Argument, CommandLine
from tests.docs_parts.programs import ABOUT, EXIT, FILES, OWN_FILES, SEE

SETUP = Path(__file__).resolve().parents[2] / "setup.cfg"
PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "nova-all": plan.parser, "nova-manage": main.parser, "nova-policy": policy.parser, "nova-status": status.parser}
BRIDGE = "nova-dhcpbridge"
FEW = 3  # maximum number of commands in a synopsis
#: Options that oslo.config adds to each daemon.
OF_THE_LIBRARY = (
    Argument(("--config-dir",), "DIR", "Read all files `*.conf` in this folder, sorted by name, after the files of "
                                       "preceding options."),
    Argument(("--config-file",), "PATH", "Read this file. Repeatable: later files override earlier ones. Default: "
                                         "`nova.conf`, and the program's own file next to it."),
    Argument(("--help", "-h"), "", "Print the options and exit."),
    Argument(("--version",), "", "Print the release and exit."))
#: Programs that users do not call: section 8.
SYSTEM = {BRIDGE, "nova-privileged"}


def programs() -> dict[str, str]:
    """Return nova's console scripts and their modules; scripts of other projects (nova-rootwrap) have no page here."""
    found = configparser.ConfigParser()
    found.read(SETUP)
    rows = found["options.entry_points"]["console_scripts"].strip().splitlines()
    scripts = [(name.strip(), target.strip().partition(":")[0]) for name, _, target in
               (row.partition("=") for row in rows)]
    return {name: module for name, module in scripts if module.startswith("nova.")}


def section(name: str) -> int:
    return 8 if name in SYSTEM else 1


def file_of(name: str) -> str:
    """Return a page's path within the repository."""
    return f"etc/man/{name}.{section(name)}"


def pages() -> dict[str, Callable[[], str]]:
    """Return the pages: file -> function that writes its text."""
    return {file_of(name): functools.partial(page, name) for name in programs()}


def page(name: str) -> str:
    parser = PARSERS[name]() if name in PARSERS else None
    parts = [roff.title(name, section(name)), roff.heading("NAME"),
             f"{roff.escape(name)} \\- {roff.escape(summary(name))}\n",
             roff.heading("SYNOPSIS"), roff.lines(_synopsis(name, parser)),
             roff.heading("DESCRIPTION"), *(roff.paragraph(text) for text in _description(name))]
    if name != BRIDGE:
        parts += [roff.heading("OPTIONS"), *map(_item, _options(name, parser))]
    if parser is not None:
        parts += [roff.heading("COMMANDS"), *map(_command, commands.commands(parser))]
    else:
        parts += _of_daemon(name) if name != BRIDGE else []
    return "".join([*parts, *_ending(name)])


def summary(name: str) -> str:
    """Return the first sentence of the module's docstring, without the program's name and the last period."""
    first = _docstring(name).split("\n\n")[0].removeprefix(f"{name}: ")
    return " ".join(first.split()).partition(". ")[0].rstrip(".").replace("`", "")


def _docstring(name: str) -> str:
    return importlib.import_module(programs()[name]).__doc__ or ""


def _synopsis(name: str, parser: argparse.ArgumentParser | None) -> Iterator[str]:
    if name == BRIDGE:
        for usage in re.findall(rf"^    {name} (.+)$", _docstring(name), re.M):
            yield f"{roff.bold(name)} {roff.escape(usage)}"
        return
    begin = f"{roff.bold(name)} [{roff.italic('OPTION')} ...]"
    found = list(commands.commands(parser)) if parser else []
    if not found:
        yield begin
    elif len(found) > FEW:
        yield f"{begin} {roff.italic('COMMAND')} [{roff.italic('ACTION')}] [{roff.italic('ARGUMENT')} ...]"
    else:
        yield from (" ".join([begin, roff.bold(" ".join(one.words)), *map(_use, one.arguments)]) for one in found)


def _use(argument: Argument) -> str:
    """Return an argument in the form of usage lines."""
    words = _term(argument._replace(flags=argument.flags[:1]))
    return words if argument.must or not argument.flags else f"[{words}]"


def _description(name: str) -> list[str]:
    """Return the paragraphs of a program's description. The first one names the program."""
    first, *others = ABOUT[name]
    if name not in KINDS:
        return [re.sub("^It ", f"`{name}` ", first), *others]
    kind = KINDS[name]
    return [f"`{name}` {kind.about[:1].lower()}{kind.about[1:]}", first, console_proxy.EPILOG.format(**kind._asdict())]


def _options(name: str, parser: argparse.ArgumentParser | None) -> Iterable[Argument]:
    if parser is not None:
        return commands.own(parser).arguments
    found = [*logs.CLI_OPTS, *([*proxies.CLI_OPTS, *proxies.CLI_ONLY] if name in KINDS else [])]
    return sorted([*commands.switches(found), *OF_THE_LIBRARY], key=lambda argument: argument.flags[0])


def _term(argument: Argument) -> str:
    flags = ", ".join(map(roff.bold, argument.flags))
    value = roff.italic(argument.value) if argument.value else ""
    return f"{flags} {value}".strip()


def _item(argument: Argument) -> str:
    return roff.item(_term(argument), commands.meaning(argument))


def _command(one: CommandLine) -> str:
    return "".join([roff.subheading(" ".join(one.words)), roff.prose(commands.sentence(one.help)),
                    *map(_item, one.arguments)])


def _of_daemon(name: str) -> list[str]:
    signals = (("SIGTERM, SIGINT", "Shut down: accept no new work, and wait for running work for at most "
                                   "`[DEFAULT]graceful_shutdown_timeout` seconds."),
               ("SIGHUP", "Read `debug` and `default_log_levels` again."))
    return [roff.heading("SIGNALS"), *(roff.item(roff.bold(term), text) for term, text in signals)]


def _ending(name: str) -> list[str]:
    """Return the sections at the end of all pages."""
    codes = EXIT.get(name, EXIT["proxy" if name in KINDS else "daemon"])
    files = OWN_FILES.get(name, FILES)
    see = [f"{roff.bold(other)}({section(other)})" for other in SEE[name]]
    return [roff.heading('"EXIT STATUS"'), *(roff.item(roff.bold(code), text) for code, text in codes.items()),
            roff.heading("FILES"),
            *(roff.item(roff.italic(path.format(name=name)), text) for path, text in files.items()),
            roff.heading('"SEE ALSO"'), ", ".join(see) + "\n"]
