"""Command lines of all programs: oslo.log's names in both spellings, --version and --help."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import errors
from nova.cmd import policy
from nova.conf import logs, proxies
from nova.configuration.command_line import spelt, typed
from nova.manage import main, status
from nova.version import RELEASE
from tests.unit.configuration.rejected import CANARY

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

TOP = Path(__file__).parents[3]
CLI = [*logs.CLI_OPTS, *proxies.CLI_OPTS, *proxies.CLI_ONLY]
#: Of oslo.log's documented command line, with the names that it deprecates: (word, whether a value follows).
OSLO_LOG = [("--debug", False), ("--nodebug", False), ("-d", False), ("--log-config-append", True),
            ("--log-config", True), ("--log_config", True), ("--log-date-format", True), ("--log-file", True),
            ("--logfile", True), ("--log-dir", True), ("--logdir", True), ("--watch-log-file", False),
            ("--nowatch-log-file", False), ("--use-syslog", False), ("--nouse-syslog", False), ("--use-journal", False),
            ("--nouse-journal", False), ("--syslog-log-facility", True), ("--use-json", False), ("--nouse-json", False)]
#: As this release's own pages had them before.
OLD = [("--log_file", True), ("--log_dir", True), ("--use_syslog", False), ("--nouse_syslog", False),
       ("--use_json", False), ("--default_log_levels", True)]


def scripts() -> dict[str, str]:
    """Name -> module:function, of every program of ours that is installed."""
    setup = configparser.ConfigParser()
    setup.read(TOP / "setup.cfg")
    lines = setup["options.entry_points"]["console_scripts"].split("\n")
    found = dict(line.replace(" ", "").split("=") for line in lines if line)
    return {name: entry for name, entry in found.items() if entry.startswith("nova.")}


def call(entry: str, *words: str) -> subprocess.CompletedProcess[str]:
    module, function = entry.split(":")
    code = f"import sys; from {module} import {function} as main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], cwd=TOP, capture_output=True, text=True, timeout=120,
                          check=False)


@pytest.mark.parametrize("name", scripts())
def test_program_when_asked_for_its_version_or_help_then_it_says_it_and_nothing_else(name: str) -> None:
    version, usage = call(scripts()[name], "--version"), call(scripts()[name], "--help")
    assert (version.returncode, version.stdout.strip(), version.stderr) == (0, RELEASE, "")
    assert (usage.returncode, usage.stderr) == (0, "") and "usage" in usage.stdout.lower()


@pytest.mark.parametrize(("word", "has_value"), [*OSLO_LOG, *OLD])
def test_log_option_when_it_is_given_then_daemons_and_tools_take_it(word: str, has_value: bool) -> None:
    words = [word, *(["a=DEBUG"] if has_value else [])]
    daemon = cfg.ConfigOpts()
    daemon.register_cli_opts(logs.CLI_OPTS)
    daemon(spelt(words, logs.CLI_OPTS), default_config_files=[], default_config_dirs=[])
    changed = [option.dest for option in logs.CLI_OPTS if daemon.get_location(option.dest) is not None
               and daemon.get_location(option.dest).location is cfg.Locations.command_line]
    for parser, command in ((main.parser(), ["version"]), (status.parser(), ["upgrade", "check"]),
                            (policy.parser(), ["policy", "check"])):
        kept = parser.parse_args([*words, *command]).log_words
        again = cfg.ConfigOpts()
        again.register_cli_opts(logs.CLI_OPTS)
        again(spelt(kept, logs.CLI_OPTS), default_config_files=[], default_config_dirs=[])
        assert len(changed) == 1 and again[changed[0]] == daemon[changed[0]]


def test_log_folder_when_it_is_missing_then_daemons_and_tools_end_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "nova.conf").write_text("")
    for entry, command in (("nova.cmd.imageproxy:main", []), ("nova.manage.main:main", ["version"])):
        done = call(entry, "--config-file", str(tmp_path / "nova.conf"), f"--log-dir={tmp_path}/nosuch", *command)
        assert done.returncode == 2 and "the log cannot be written: No such file or directory" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", CLI, ids=lambda option: option.name)
def test_spelling_when_it_has_dashes_or_underscores_then_it_is_the_declared_one(option) -> None:
    for name in (option.name, option.name.replace("-", "_"), option.name.replace("_", "-")):
        assert spelt([f"--{name}", f"--{name}=a_b-c"], CLI) == [f"--{option.name}", f"--{option.name}=a_b-c"]


def test_value_on_the_command_line_when_its_type_rejects_it_then_it_is_not_shown() -> None:
    for words in (["--default_log_levels", CANARY], [f"--default_log_levels={CANARY}"]):
        with pytest.raises(errors.config.Unusable, match="the command line's --default_log_levels") as caught:
            typed(words, CLI)
        assert CANARY not in caught.value.message
    assert typed(["--log-file", "x", "--debug", "--log-dir"], CLI) == {"log_file"}
