"""Pages of the manual: one for each program, with all its options, in roff that formatters take without a warning."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.cmd import api, console_proxy
from nova.conf import logs, proxies
from nova.console.kinds import KINDS
from nova.manage import main
from tests.docs_parts import commands, man, roff
from tests.docs_parts import programs as words

TOP = Path(__file__).resolve().parents[2]
PAGES = sorted((TOP / "etc" / "man").iterdir())
DAEMONS = sorted(set(man.programs()) - {*man.PARSERS, man.BRIDGE})
HEADINGS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "SIGNALS", "EXIT STATUS", "FILES", "SEE ALSO"]
#: Where oslo.config has it: not in the oldest release that we take.
OF_NEWER_LIBRARIES = {"--shell_completion"}

page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))


def plain(name: str) -> str:
    """A page's text without roff's spelling of hyphens."""
    return (TOP / man.file_of(name)).read_text().replace("\\-", "-")


def terms(text: str) -> set[str]:
    """What the items of a page without hyphens' spelling name."""
    return {flag for line in re.findall(r"^\.TP\n(.+)$", text, re.M) for flag in flags(re.sub(r"\\f[BIR]", " ", line))}


def run(*command: str) -> str:
    """What it printed; it has to succeed, and to complain of nothing."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                            env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANROFFOPT": ""})
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


# -- what the pages say

def test_pages_then_each_program_has_one_and_nothing_else_has() -> None:
    assert {str(path.relative_to(TOP)) for path in PAGES} == {man.file_of(name) for name in man.programs()}
    assert set(words.ABOUT) == set(words.SEE) == set(man.programs())
    assert set(words.OWN_FILES) | set(words.EXIT) <= {*man.programs(), "daemon", "proxy"}


@page
def test_page_then_its_parts_stand_in_the_order_of_all_pages(page: Path) -> None:
    found = [line.strip('"') for line in re.findall(r"^\.SH (.+)$", page.read_text(), re.M)]
    assert found == [name for name in HEADINGS if name in found]
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "FILES", "SEE ALSO"} <= set(found)
    assert page.stem == "nova-dhcpbridge" or "OPTIONS" in found


@page
def test_page_then_the_pages_that_it_names_are_there(page: Path) -> None:
    named = re.findall(r"\\fB(nova[\w\\-]+)\\fR\((\d)\)", page.read_text())
    found = {f"{name}.{section}".replace("\\", "") for name, section in named}
    assert found and found <= {path.name for path in PAGES} - {page.name}


@page
def test_page_then_the_options_that_it_names_are_there(page: Path) -> None:
    known = {(group, option.dest) for group, listed in conf.list_opts() for option in listed}
    known |= {("DEFAULT", "transport_url"), ("oslo_policy", "policy_file")}
    assert set(re.findall(r"\[(\w+)\](\w+)", page.read_text())) <= known


@pytest.mark.parametrize("name", DAEMONS)
def test_page_of_a_daemon_then_it_has_the_options_of_its_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = cfg.ConfigOpts()
    options.register_cli_opts(logs.CLI_OPTS)
    if name in KINDS:
        options.register_cli_opts([*proxies.CLI_OPTS, *proxies.CLI_ONLY])
    with pytest.raises(SystemExit):
        options(["--help"], prog=name, version="1", default_config_files=[])
    lines = [line for line in capsys.readouterr().out.splitlines() if re.match(" {2}-", line)]
    wanted = {flag for line in lines for flag in flags(re.split(r" {3,}", line.strip())[0])}
    assert wanted - OF_NEWER_LIBRARIES == terms(plain(name))


def test_page_of_nova_manage_then_it_has_all_commands_and_arguments() -> None:
    parts = dict(re.findall(r'^\.SS "(.+)"\n((?:(?!\.S[SH]).*\n)*)', plain("nova-manage"), re.M))
    rows = {(name,): make() for name, make in main.SINGLE.items()}
    rows |= {(category, action): row for category, make in main.COMMANDS.items() for action, row in make().items()}
    assert set(parts) == {" ".join(names) for names in rows}
    for names, row in rows.items():
        wanted = {flag for argument in row.arguments for flag in argument.flags if flag.startswith("-")}
        assert terms(parts[" ".join(names)]) == wanted, names


@pytest.mark.parametrize(("name", "command"), [("nova-policy", "policy check"), ("nova-policy", "sample"),
                                               ("nova-status", "upgrade check"), ("nova-status", "health")])
def test_page_of_few_commands_then_the_synopsis_has_each(name: str, command: str) -> None:
    synopsis = plain(name).partition(".SH SYNOPSIS\n")[2].partition(".SH")[0]
    assert f"\\fB{command}\\fR" in synopsis


@pytest.mark.parametrize(("name", "api_name"), [
    ("nova-api", api.OSAPI), ("nova-api", api.METADATA), ("nova-api-os-compute", api.OSAPI),
    ("nova-api-metadata", api.METADATA), ("nova-placement-api", api.PLACEMENT)])
def test_page_of_an_api_then_its_port_is_the_default(name: str, api_name: str) -> None:
    options = conf.register(cfg.ConfigOpts())
    options([], default_config_files=[])
    assert f"port {api.ALL[api_name].address(options)[1]}" in " ".join(plain(name).split())


def test_page_of_a_proxy_then_it_ends_as_the_proxies_do() -> None:
    assert str(console_proxy.REFUSED) in words.EXIT["proxy"]


# -- how they are made

@pytest.mark.parametrize(("text", "spelt"), [
    (".TH is no macro here", "\\&.TH is no macro here"), ("'quoted'", "\\(aqquoted\\(aq"), ("a\\b", "a\\(rsb"),
    ("--host", "\\-\\-host"), ('say "no"', "say \\(dqno\\(dq")])
def test_escape_when_roff_would_take_it_for_something_else_then_it_is_spelt_out(text: str, spelt: str) -> None:
    assert roff.escape(text) == spelt


def test_prose_when_it_has_sentences_and_literals_then_lines_and_bold() -> None:
    assert roff.prose("It ends. It says `no`.\n  .hidden") == "It ends.\nIt says \\fBno\\fR. .hidden\n"
    assert roff.prose(".hidden files") == "\\&.hidden files\n"


def test_commands_when_a_parser_has_options_that_its_commands_have_then_they_are_told_once() -> None:
    top = argparse.ArgumentParser(prog="thing", description="Things.")
    top.add_argument("--where", metavar="PLACE")
    actions = top.add_subparsers()
    one = actions.add_parser("thing").add_subparsers().add_parser("make", description="make one")
    one.add_argument("--where")
    one.add_argument("--kind", required=True, choices=["a", "b"], help="50 %% of %(dest)ss")
    one.add_argument("names", nargs="+", metavar="NAME")
    (found,) = commands.commands(top)
    assert (found.words, found.help) == (("thing", "make"), "make one")
    assert found.arguments == (commands.Argument(("--kind",), "KIND", "50 % of kinds", True, ("a", "b")),
                               commands.Argument((), "NAME [NAME ...]", ""))


# -- what formatters say of them

@page
def test_page_when_formatted_then_nothing_is_complained_of(page: Path) -> None:
    assert page.read_text().isascii()
    if not shutil.which("groff"):
        pytest.skip("groff is not installed here")
    run("groff", "-ww", "-man", "-Tutf8", "-z", str(page))


def test_page_when_read_with_man_then_options_stand_as_they_are_typed() -> None:
    if not shutil.which("man"):
        pytest.skip("man is not installed here")
    for path in (TOP / "etc/man/nova-api.1", TOP / "etc/man/nova-manage.1"):
        text = run("man", "--warnings", "-E", "UTF-8", "-l", str(path))
        if "minimized" in text:
            pytest.skip("man is a placeholder here")
        assert re.search("^ +--config-file ", text, re.M)
    assert re.search("^ +db purge$", text, re.M)
