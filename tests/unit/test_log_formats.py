"""Lines in oslo.log's forms, in the journal, and by a file of Python's logging.config."""

from __future__ import annotations

import logging
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, context, errors, log_config, log_formats, logs
from nova.log_formats import ContextFormat, Formats
from nova.log_journal import JournalHandler

WHO = context.RequestContext(request_id="req-1", user_id="u1", user_name="ann", project_id="p1", project_name="demo")
#: As devstack writes them: names of user and project, colours, a prefix for tracebacks.
DEVSTACK = {
    "logging_context_format_string": "%(color)s%(levelname)s %(name)s [%(global_request_id)s %(request_id)s "
                                     "%(project_name)s %(user_name)s] %(instance)s%(color)s%(message)s",
    "logging_default_format_string": "%(color)s%(levelname)s %(name)s [-] %(instance)s%(message)s",
    "logging_debug_format_suffix": "{{%(funcName)s %(pathname)s:%(lineno)d}}",
    "logging_exception_prefix": "ERROR %(name)s %(instance)s", "log_color": True}


@pytest.fixture(autouse=True)
def root_logger_as_before():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ContextFormat.formats = Formats()


def options(**values: object) -> cfg.ConfigOpts:
    found = conf.register(cfg.ConfigOpts())
    found.register_cli_opts(conf.logs.CLI_OPTS)
    found([], default_config_files=[])
    for name, value in values.items():
        found.set_override(name, value)
    return found


def record(**more: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": "event %s", "args": ("one",), "name": "nova.x", "levelname": "INFO",
                                  "levelno": logging.INFO, **more})


def formatted(made: logging.LogRecord, **values: object) -> str:
    ContextFormat.formats = Formats.of(options(**values))
    return ContextFormat().format(made)


def test_line_of_a_request_when_the_format_is_oslos_own_then_fluentd_finds_who_asks() -> None:
    """kolla's pattern takes: time, process, level, module, and in the brackets ids, user and project."""
    with context.entered(WHO):
        line = formatted(record(server="s1"))
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ INFO nova\.x \[(\S+) (req-1) (u1) (p1) (\S+) (\S+) "
                    r"(\S+) (\S+)\] \[instance: s1\] event one$", line), line


def test_line_when_the_formats_are_devstacks_then_its_names_are_filled_in() -> None:
    assert formatted(record(), **DEVSTACK) == "INFO nova.x [-] event one"
    with context.entered(WHO):
        assert formatted(record(), **DEVSTACK) == "INFO nova.x [None req-1 demo ann] event one"
        debug = formatted(record(levelno=logging.DEBUG, funcName="f", pathname="/x.py", lineno=3), **DEVSTACK)
    assert debug.endswith("event one {{f /x.py:3}}")


def test_traceback_when_a_prefix_is_set_then_each_line_of_it_begins_so_and_else_it_is_in_the_line() -> None:
    try:
        raise ValueError("bad")
    except ValueError:
        made = record(exc_info=sys.exc_info())
    first, *others = formatted(made, **DEVSTACK).splitlines()
    assert first.endswith("event one") and all(line.startswith("ERROR nova.x ") for line in others)
    assert others[-1] == "ERROR nova.x ValueError: bad"
    assert len(formatted(made, logging_default_format_string="%(message)s").splitlines()) == 1


def test_line_when_a_client_chose_its_words_then_it_stays_one_line_in_oslos_form_too() -> None:
    assert formatted(record(args=("two\nlines\x1b[2J",))).endswith("event two | lines\\x1b[2J")


def test_colors_when_lines_go_to_a_file_then_there_are_none(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    logs.set_up(options(**DEVSTACK, log_file=str(file), use_stderr=True), "nova-x")
    logging.getLogger("nova.x").warning("red")
    to_file, to_stderr = logging.getLogger().handlers
    assert file.read_text() == "WARNING nova.x [-] red\n"
    assert to_stderr.format(record()).startswith("\x1b[00;36mINFO")


@pytest.mark.parametrize(("option", "value"), [
    ("logging_context_format_string", "%(message"), ("logging_default_format_string", "%(levelname)d"),
    ("logging_user_identity_format", "%s %s"), ("instance_uuid_format", "%(uuid)q")])
def test_format_when_no_line_can_be_made_of_it_then_one_sentence_names_the_option(option: str, value: str) -> None:
    with pytest.raises(errors.config.Unusable, match=rf"\[DEFAULT\]{option} cannot be used: it must be a format"):
        log_formats.check(options(**{option: value}))


def test_syslog_facility_when_it_is_none_then_one_sentence_names_the_known_ones(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(logs, "SYSLOG", str(tmp_path / "log"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        with pytest.raises(errors.config.Choice, match="syslog_log_facility .*local7"):
            logs.set_up(options(use_syslog=True, syslog_log_facility="kitchen"), "nova-x")
        logs.set_up(options(use_syslog=True, syslog_log_facility="LOG_LOCAL0"), "nova-x")
        logging.getLogger("nova.x").error("found")
        assert server.recv(999).startswith(b"<131>nova-x[")  # 16 * 8 + 3


def journal_fields(entry: bytes) -> dict[str, str]:
    """As journald takes an entry apart."""
    found = {}
    while entry:
        line, _, rest = entry.partition(b"\n")
        if b"=" in line:
            name, _, value = line.partition(b"=")
        else:
            name, size = line, struct.unpack("<Q", rest[:8])[0]
            value, rest = rest[8:8 + size], rest[8 + size + 1:]
        found[name.decode()], entry = value.decode(), rest
    return found


def test_journal_when_an_error_is_logged_then_the_entry_has_oslos_fields(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(path)
        handler = JournalHandler("nova-x", path)
        handler.setFormatter(logs.OneLine())
        try:
            raise ValueError("two\nlines")
        except ValueError:
            made = record(levelno=logging.ERROR, levelname="ERROR", exc_info=sys.exc_info(), server="s1")
        with context.entered(WHO):
            handler.handle(made)
        found = journal_fields(server.recv(65536))
        handler.close()
    assert found["PRIORITY"] == "3" and found["SYSLOG_IDENTIFIER"] == "nova-x" and found["LOGGER_NAME"] == "nova.x"
    assert found["REQUEST_ID"] == "req-1" and found["INSTANCE_UUID"] == "s1"
    assert "\n" not in found["MESSAGE"] and found["EXCEPTION_TEXT"].endswith("two\nlines")


def test_journal_when_journald_was_started_anew_then_it_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as first:
        first.bind(str(path))
        handler = JournalHandler("nova-x", str(path))
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as second:
        second.bind(str(path))
        handler.handle(record())
        assert journal_fields(second.recv(65536))["PRIORITY"] == "6"
    handler.close()


#: As openstack-helm renders it.
HELM = """[loggers]
keys = root,nova
[handlers]
keys = file,null
[formatters]
keys = context,default
[logger_root]
level = WARNING
handlers = null
[logger_nova]
level = INFO
handlers = file
qualname = nova
[handler_file]
class = logging.FileHandler
args = ("{file}",)
formatter = context
[handler_null]
class = logging.NullHandler
args = ()
formatter = default
[formatter_context]
class = oslo_log.formatters.ContextFormatter
datefmt = %Y-%m-%d %H:%M:%S
[formatter_default]
format = %(message)s
datefmt = %Y
"""


def test_log_config_append_when_it_names_oslos_formatter_then_levels_handlers_and_form_are_the_files(tmp_path: Path
                                                                                                    ) -> None:
    file = tmp_path / "x.log"
    (tmp_path / "logging.conf").write_text(HELM.format(file=file))
    (tmp_path / "nova.conf").write_text(f"[DEFAULT]\nlog_config_append = {tmp_path}/logging.conf\ndebug = true\n")
    code = ("import logging, sys\nfrom nova import configuration, context\nfrom nova.cmd import common\n"
            "options = configuration.read('nova-x', sys.argv[1:])\ncommon.open_log(options, 'nova-x')\n"
            "log = logging.getLogger('nova.x')\nlog.debug('not this')\n"
            "with context.entered(context.RequestContext(request_id='req-1')):\n    log.info('but this')\n")
    done = subprocess.run([sys.executable, "-c", code, "--config-file", str(tmp_path / "nova.conf")],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\S+ \S+ \d+ INFO nova\.x \[None req-1 - - - - - -\] but this\n", file.read_text())


@pytest.mark.parametrize("text", [None, "", "[loggers]\nkeys = root\n", "no section",
                                  HELM.replace("logging.FileHandler", "nosuch.Handler")])
def test_log_config_append_when_it_cannot_be_used_then_one_sentence_names_option_and_file(tmp_path: Path,
                                                                                          text: str | None) -> None:
    path = tmp_path / "logging.conf"
    if text is not None:
        path.write_text(text)
    with pytest.raises(errors.config.Unusable, match=rf"log_config_append cannot be used: {path} is not valid") as said:
        log_config.load(options(), str(path))
    assert "\n" not in said.value.message
