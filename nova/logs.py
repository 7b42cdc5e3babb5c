"""Logging of one line per event: time, process, level, module, [request, user, project, server, host], message."""

from __future__ import annotations

import datetime
import json
import logging
import logging.handlers
import os
import sys

from nova import context, errors, log_config, log_files, log_formats, log_journal, tracing
from nova.conf._options import Options
from nova.log_text import LONGEST, on_one_line, shortened

LOG = logging.getLogger(__name__)

SYSLOG = "/dev/log"

#: Libraries that log too much at INFO.
QUIET = {"amqp": logging.WARNING, "kombu": logging.WARNING, "oslo.messaging": logging.WARNING,
         "oslo_messaging": logging.WARNING, "sqlalchemy": logging.WARNING, "urllib3": logging.WARNING,
         "keystoneauth": logging.WARNING, "keystonemiddleware": logging.WARNING, "alembic": logging.WARNING,
         "eventlet.wsgi": logging.WARNING, "oslo.service": logging.WARNING, "oslo_service": logging.WARNING,
         "stevedore": logging.WARNING,
         "futurist": logging.WARNING, "py.warnings": logging.ERROR, "oslo_policy": logging.WARNING,
         "pyroute2": logging.WARNING,
         "oslo_messaging._drivers.amqpdriver": logging.ERROR}


def _is_news(record: logging.LogRecord) -> bool:
    """Drop a message of the AMQP client about the broker's last method on a closing channel, logged at every stop."""
    return not str(record.msg).startswith("Received method %s during closing channel")


def _facts(record: logging.LogRecord) -> dict[str, object]:
    """Return the known facts about a line: request, user, project, server and host."""
    who = context.current_or_none()
    facts = {"request": who.request_id, "global_request": who.global_request_id, "user": who.user_id,
             "project": who.project_id} if who else {}
    facts["server"] = getattr(record, "server", None)
    facts["host"] = getattr(record, "host_", None)
    return {name: value for name, value in facts.items() if value}


#: Additional facts for JSON: attributes of the record.
MORE = ("action", "step", "duration_ms", "error_code")


def _more_facts(record: logging.LogRecord) -> dict[str, object]:
    who = context.current_or_none()
    found: dict[str, object] = dict(context.what())
    found |= {name: getattr(record, name) for name in MORE if getattr(record, name, None) is not None}
    if who and (who.traceparent or who.request_id):
        found["trace"] = tracing.place_of(who).trace
    return found


class OneLine(logging.Formatter):
    """Formatter of text for people; a traceback is part of the line, so that every line has its context."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line with the time in UTC to the millisecond (or by ``log_date_format``); line ends and other
        control characters are escaped."""
        now = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        time = now.strftime(self.datefmt) if self.datefmt else now.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        facts = " ".join(f"{name}={value}" if name != "request" else str(value)
                         for name, value in _facts(record).items())
        text = record.getMessage()
        if record.exc_info:
            text += " | " + self.formatException(record.exc_info)
        return f"{time} {record.process} {record.levelname} {record.name} [{facts or '-'}] {on_one_line(text)}"


class OneObject(logging.Formatter):
    """Formatter of the same facts as one JSON object per line. ``service`` is the service, ``hostname`` its host;
    ``host`` is the compute host that a line concerns."""

    def __init__(self, service: str = "", hostname: str = "") -> None:
        super().__init__()
        self._service, self._hostname = service, hostname

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object with the time in UTC to the microsecond, and ``traceback`` if there is one."""
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat()
        found = {"time": time, "service": self._service, "hostname": self._hostname, "process": record.process,
                 "level": record.levelname, "module": record.name, **_facts(record), **_more_facts(record),
                 "message": shortened(record.getMessage())}
        if record.exc_info:
            found["traceback"] = shortened(self.formatException(record.exc_info))
        return json.dumps(found)


def set_up(conf: Options, binary: str) -> None:
    """Send the root logger's lines to the configured outputs. Raises config.Wrong for invalid options, and OSError."""
    if conf.log_config_append:
        log_config.load(conf, conf.log_config_append)
        return
    handlers = _handlers(conf, binary)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    for handler in handlers:
        handler.setFormatter(_formatter(conf, binary, handler))
        root.addHandler(handler)
    logging.getLogger("amqp").addFilter(_is_news)
    logging.captureWarnings(True)
    set_levels(conf)
    for option, path in (("use_syslog", SYSLOG), ("use_journal", log_journal.SOCKET)):
        if getattr(conf, option) and not os.path.exists(path):
            LOG.warning("%s has no effect: no socket at %s", option, path)


def _handlers(conf: Options, binary: str) -> list[logging.Handler]:
    """Return the configured handlers: a file, the journal, syslog; standard error if neither of the first two is set,
    or with ``use_stderr``."""
    made: list[logging.Handler] = []
    if path := conf.log_file or (f"{binary}.log" if conf.log_dir else None):
        made.append(log_files.opened(conf, os.path.join(conf.log_dir or "", path)))
    if conf.use_journal and os.path.exists(log_journal.SOCKET):
        made.append(log_journal.JournalHandler(binary))
    if conf.use_stderr or not made:
        made.append(logging.StreamHandler(sys.stderr))
    if conf.use_syslog and os.path.exists(SYSLOG):
        made.append(_syslog(conf, binary))
    return made


def _syslog(conf: Options, binary: str) -> logging.Handler:
    """Return the syslog handler. Raises config.Choice for an unknown ``syslog_log_facility``."""
    known = logging.handlers.SysLogHandler.facility_names
    facility = (conf.syslog_log_facility or "user").lower().removeprefix("log_")
    if facility not in known:
        raise errors.config.Choice(option="[DEFAULT]syslog_log_facility", known=", ".join(known))
    made = logging.handlers.SysLogHandler(SYSLOG, known[facility])
    made.ident = f"{binary}[{os.getpid()}]: "
    return made


def _formatter(conf: Options, binary: str, handler: logging.Handler) -> logging.Formatter:
    """Return the configured formatter. Raises config.Unusable for an invalid format string."""
    if conf.use_json:
        return OneObject(binary, conf.host)
    if not log_formats.wanted(conf):
        return OneLine(datefmt=conf.log_date_format)
    log_formats.check(conf)
    log_formats.ContextFormat.formats = log_formats.Formats.of(conf)
    return log_formats.ContextFormat(colored=conf.log_color and type(handler) is logging.StreamHandler)


def set_levels(conf: Options) -> None:
    """Set levels by ``debug`` and ``default_log_levels``, at start and at SIGHUP. With ``log_config_append``, its file
    sets them."""
    if conf.log_config_append:
        return
    logging.getLogger().setLevel(logging.DEBUG if conf.debug else logging.INFO)
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(max(level, logging.INFO) if conf.debug else level)
    for chosen in conf.default_log_levels:
        name, _, level_name = chosen.partition("=")
        logging.getLogger(name.strip()).setLevel(level_name.upper())


__all__ = ["LONGEST", "OneLine", "OneObject", "set_levels", "set_up"]
