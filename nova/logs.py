"""One event, one line: time, process, level, module, [request, user, project, server, host], message."""

from __future__ import annotations

import datetime
import json
import logging
import logging.handlers
import os
import sys

from nova import context, log_files, tracing
from nova.conf import logs as log_section
from nova.conf.base import Options

LOG = logging.getLogger(__name__)

SYSLOG = "/dev/log"

#: Libraries that say more than helps at INFO.
QUIET = {"amqp": logging.WARNING, "kombu": logging.WARNING, "oslo.messaging": logging.WARNING,
         "oslo_messaging": logging.WARNING, "sqlalchemy": logging.WARNING, "urllib3": logging.WARNING,
         "keystoneauth": logging.WARNING, "keystonemiddleware": logging.WARNING, "alembic": logging.WARNING,
         "eventlet.wsgi": logging.WARNING, "oslo.service": logging.WARNING, "oslo_service": logging.WARNING,
         "stevedore": logging.WARNING,
         "futurist": logging.WARNING, "py.warnings": logging.ERROR, "oslo_policy": logging.WARNING,
         "pyroute2": logging.WARNING,
         "oslo_messaging._drivers.amqpdriver": logging.ERROR}


def _is_news(record: logging.LogRecord) -> bool:
    """Of the broker's client: that the broker's last word on a channel came while it was closed, as at every stop."""
    return not str(record.msg).startswith("Received method %s during closing channel")


def _facts(record: logging.LogRecord) -> dict[str, object]:
    """Who and what a line is about; only what is known."""
    who = context.current_or_none()
    facts = {"request": who.request_id, "global_request": who.global_request_id, "user": who.user_id,
             "project": who.project_id} if who else {}
    facts["server"] = getattr(record, "server", None)
    facts["host"] = getattr(record, "host_", None)
    return {name: value for name, value in facts.items() if value}


#: What a line may say beside, for those who read JSON: attributes of its record.
MORE = ("action", "step", "duration_ms", "error_code")


def _more_facts(record: logging.LogRecord) -> dict[str, object]:
    who = context.current_or_none()
    found: dict[str, object] = dict(context.what())
    found |= {name: getattr(record, name) for name in MORE if getattr(record, name, None) is not None}
    if who and (who.traceparent or who.request_id):
        found["trace"] = tracing.place_of(who).trace
    return found


#: Characters that end a line or move the cursor for some reader, spelt out: clients choose parts of what is logged.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"} \
    | {0x2028: "\\u2028", 0x2029: "\\u2029"}

#: Characters of one event: what a client chose, and an accident repeats, must not fill a disk. Of what is longer the
#: end is kept, too: that is where a traceback says what happened.
LONGEST, END = 16384, 4096


def shortened(text: str) -> str:
    """The text, or its beginning and its end with how much is left out between them."""
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST - END]} [{left} characters are left out] {text[-END:]}"


class OneLine(logging.Formatter):
    """Text for people; a traceback is folded into the line, so that no line stands alone."""

    def format(self, record: logging.LogRecord) -> str:
        """One line with the time in UTC to the millisecond; line ends and other controls are made harmless."""
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        facts = " ".join(f"{name}={value}" if name != "request" else str(value)
                         for name, value in _facts(record).items())
        text = record.getMessage()
        if record.exc_info:
            text += " | " + self.formatException(record.exc_info)
        return f"{time} {record.process} {record.levelname} {record.name} [{facts or '-'}] " + \
            shortened(text.replace("\n", " | ").translate(_CONTROLS))


class OneObject(logging.Formatter):
    """The same as one JSON object a line. ``service`` is the daemon, ``hostname`` where it runs; ``host`` is the
    compute host that a line is about."""

    def __init__(self, service: str = "", hostname: str = "") -> None:
        super().__init__()
        self._service, self._hostname = service, hostname

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object with the time in UTC to the microsecond; ``traceback`` where there is one."""
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat()
        found = {"time": time, "service": self._service, "hostname": self._hostname, "process": record.process,
                 "level": record.levelname, "module": record.name, **_facts(record), **_more_facts(record),
                 "message": shortened(record.getMessage())}
        if record.exc_info:
            found["traceback"] = shortened(self.formatException(record.exc_info))
        return json.dumps(found)


def set_up(conf: Options, binary: str) -> None:
    """Send the root logger's lines where the options say."""
    handlers: list[logging.Handler] = []
    path = conf.log_file or (f"{binary}.log" if conf.log_dir else None)
    if path:
        full = os.path.join(conf.log_dir or "", path)
        handlers.append(log_files.opened(conf, full))
    else:
        handlers.append(logging.StreamHandler(sys.stderr))
    if conf.use_syslog and os.path.exists(SYSLOG):
        syslog = logging.handlers.SysLogHandler(SYSLOG)
        syslog.ident = f"{binary}[{os.getpid()}]: "
        handlers.append(syslog)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    for handler in handlers:
        handler.setFormatter(OneObject(binary, conf.host) if conf.use_json else OneLine())
        root.addHandler(handler)
    logging.getLogger("amqp").addFilter(_is_news)
    logging.captureWarnings(True)
    set_levels(conf)
    if conf.use_syslog and not os.path.exists(SYSLOG):
        LOG.warning("use_syslog has no effect: no syslog listens at %s", SYSLOG)
    for option in log_section.IDLE:
        if conf[option.dest]:
            LOG.warning("--%s (%s) is accepted and has no effect: %s", option.name, option.dest,
                        str(option.help).removeprefix("Accepted: "))


def set_levels(conf: Options) -> None:
    """Levels as ``debug`` and ``default_log_levels`` say: at start and at SIGHUP."""
    logging.getLogger().setLevel(logging.DEBUG if conf.debug else logging.INFO)
    for name, level in QUIET.items():
        logging.getLogger(name).setLevel(max(level, logging.INFO) if conf.debug else level)
    for chosen in conf.default_log_levels:
        name, _, level_name = chosen.partition("=")
        logging.getLogger(name.strip()).setLevel(level_name.upper())
