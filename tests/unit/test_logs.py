"""Log lines: one event is one line, whatever a client put into it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, context, logs, service
from nova.conf._options import Options
from nova.logs import LONGEST, OneLine, OneObject


@pytest.mark.parametrize(("said", "shown"), [
    ("two\nlines", "two | lines"), ("back\rto the start", "back\\x0dto the start"), ("\x1b[2J", "\\x1b[2J"),
    ("next\x85line", "next\\x85line"), ("line\u2028and paragraph\u2029", "line\\u2028and paragraph\\u2029"),
    ("tab\tand ä \N{SNOWMAN}", "tab\tand ä \N{SNOWMAN}")])
def test_line_when_a_client_chose_its_words_then_it_stays_one_line(said: str, shown: str) -> None:
    line = OneLine().format(logging.makeLogRecord({"msg": "event %s", "args": (said,), "name": "nova.x"}))
    assert line.endswith(f"nova.x [-] event {shown}") and len(line.splitlines()) == 1


def test_line_when_it_is_huge_then_its_beginning_and_its_end_are_kept() -> None:
    record = logging.makeLogRecord({"msg": "begins %s ends", "args": ("x" * 100_000,), "name": "nova.x"})
    line = OneLine().format(record)
    assert "begins x" in line and line.endswith("x ends") and "characters omitted" in line
    assert len(line) < LONGEST + 200 and len(OneObject().format(record)) < LONGEST + 400


def test_object_when_a_step_is_done_for_a_request_then_all_that_is_known_is_a_member_of_its_own() -> None:
    who = context.RequestContext(request_id="req-0c5f0000-0000-4000-8000-00000000000a", user_id="u", project_id="p")
    record = logging.makeLogRecord({"msg": "built in %d ms", "args": (12,), "name": "nova.x", "levelname": "INFO",
                                    "server": "s1", "host_": "cn1", "duration_ms": 12, "error_code": "host.refused"})
    with context.entered(who), context.doing(action="create", step="BuildGuests"):
        found = json.loads(OneObject("nova-conductor", "ctl").format(record))
    assert found.pop("time").endswith("+00:00") and found.pop("process")
    assert found == {
        "service": "nova-conductor", "hostname": "ctl", "level": "INFO", "module": "nova.x",
        "request": who.request_id, "user": "u", "project": "p", "server": "s1", "host": "cn1", "action": "create",
        "step": "BuildGuests", "duration_ms": 12, "error_code": "host.refused",
        "trace": "0c5f000000004000800000000000000a", "message": "built in 12 ms"}


def test_object_when_nothing_is_known_then_it_has_no_empty_members() -> None:
    found = json.loads(OneObject("nova-api", "ctl").format(logging.makeLogRecord({"msg": "ready", "name": "nova.x"})))
    assert set(found) == {"time", "service", "hostname", "process", "level", "module", "message"}


def options(tmp_path: Path, **values: object) -> cfg.ConfigOpts:
    found = conf.register(cfg.ConfigOpts())
    found.register_cli_opts(conf.logs.CLI_OPTS)
    found([], default_config_files=[])
    for name, value in values.items():
        found.set_override(name, value)
    return found


def test_levels_when_single_loggers_have_their_own_then_those_change_and_no_other(tmp_path: Path) -> None:
    before = {name: logging.getLogger(name).level for name in ("", "nova.rpc.server", "amqp")}
    try:
        logs.set_levels(options(tmp_path, default_log_levels=["nova.rpc.server=debug", "amqp=WARN"]))
        assert logging.getLogger("nova.rpc.server").level == logging.DEBUG
        assert logging.getLogger("amqp").level == logging.WARNING
        assert logging.getLogger("nova.rpc.client").getEffectiveLevel() == logging.INFO
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def test_levels_when_the_files_are_read_again_then_they_are_the_files_and_the_options_are_unchanged(tmp_path: Path
                                                                                                    ) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\n")
    source = conf.register(cfg.ConfigOpts())
    source(["--config-file", str(file)], project="nova", prog="nova-x", default_config_dirs=[])
    made = Options.of(source)
    before = {name: logging.getLogger(name).level for name in ("", "nova.rpc.server", *logs.QUIET)}
    try:
        file.write_text("[DEFAULT]\ndebug = true\ndefault_log_levels = nova.rpc.server=ERROR\n")
        service.reload_levels(made)
        assert logging.getLogger().level == logging.DEBUG
        assert logging.getLogger("nova.rpc.server").level == logging.ERROR
        assert made.debug is False and made.default_log_levels == []
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize("wrong", ["nova.rpc", "nova.rpc=LOUD", "=DEBUG"])
def test_levels_when_one_is_malformed_then_the_option_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ValueError):
        options(tmp_path, default_log_levels=[wrong])


def test_broker_client_when_a_channel_is_being_closed_then_its_warning_is_no_news_and_all_others_are(
        tmp_path: Path) -> None:
    from amqp import abstract_channel

    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    made.set_override("log_file", str(tmp_path / "log"))
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        logs.set_up(made, "nova-x")
        abstract_channel.AMQP_LOGGER.warning(abstract_channel.IGNORED_METHOD_DURING_CHANNEL_CLOSE, (60, 30), 1)
        abstract_channel.AMQP_LOGGER.warning("Connection lost")
    finally:
        for handler in [one for one in root.handlers if one not in before]:
            root.removeHandler(handler)
            handler.close()
        for handler in before:
            root.addHandler(handler)
        root.setLevel(level)
    written = (tmp_path / "log").read_text()
    assert "Connection lost" in written and "during closing channel" not in written
