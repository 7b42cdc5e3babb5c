"""Log lines by oslo.log's format strings, for programs that read the logs of other OpenStack services."""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from nova import context, errors
from nova.conf._options import Options
from nova.log_text import on_one_line

_COLORS = {logging.DEBUG: "\033[00;32m", logging.INFO: "\033[00;36m", logging.WARNING: "\033[01;33m",
           logging.ERROR: "\033[01;31m", logging.CRITICAL: "\033[01;31m"}
_NO_COLOR = "\033[00m"


class Formats(NamedTuple):
    """Format strings of oslo.log, with its defaults. ``exception_prefix`` None: a traceback is part of its event's
    line."""

    context: str = ("%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [%(global_request_id)s %(request_id)s "
                    "%(user_identity)s] %(instance)s%(message)s")
    default: str = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(instance)s%(message)s"
    debug_suffix: str = ""
    exception_prefix: str | None = None
    user_identity: str = "%(user)s %(project)s %(domain)s %(system_scope)s %(user_domain)s %(project_domain)s"
    instance: str = "[instance: %(uuid)s] "
    date: str = "%Y-%m-%d %H:%M:%S"

    @classmethod
    def of(cls, conf: Options) -> Formats:
        """Return the format strings that the options set."""
        said = {field: getattr(conf, option) for field, option in OPTION_OF.items()
                if getattr(conf, option) is not None}
        return cls(**said)


OPTION_OF = {"context": "logging_context_format_string", "default": "logging_default_format_string",
             "debug_suffix": "logging_debug_format_suffix", "exception_prefix": "logging_exception_prefix",
             "user_identity": "logging_user_identity_format", "instance": "instance_uuid_format",
             "date": "log_date_format"}


def wanted(conf: Options) -> bool:
    """Return whether an option sets such a format."""
    return bool(conf.logging_context_format_string or conf.logging_default_format_string)


class ContextFormat(logging.Formatter):
    """Formatter of one line per event, plus one line for each traceback line if ``logging_exception_prefix`` is set."""

    formats = Formats()  # of this process: log_config_append creates formatters without nova's arguments

    def __init__(self, fmt: str | None = None, datefmt: str | None = None, style: str = "%",
                 colored: bool = False) -> None:
        """Initialize the formatter. ``fmt`` and ``style`` are ignored: the format depends on the line."""
        super().__init__(datefmt=datefmt or self.formats.date)
        self._colored = colored

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, by the format with or without a request."""
        who, formats = context.current_or_none(), self.formats
        facts = self._facts(record, who)
        text = (formats.context if who is not None else formats.default) % facts
        if record.levelno == logging.DEBUG and formats.debug_suffix:
            text += " " + formats.debug_suffix % facts
        if not record.exc_info:
            return text
        traceback = self.formatException(record.exc_info)
        if formats.exception_prefix is None:
            return f"{text} | {on_one_line(traceback)}"
        prefix = formats.exception_prefix % facts
        return "\n".join([text, *(prefix + on_one_line(line) for line in traceback.splitlines())])

    def _facts(self, record: logging.LogRecord, who: context.RequestContext | None) -> Mapping[str, object]:
        server = getattr(record, "server", None)
        found: dict[str, object] = defaultdict(str, vars(record))
        found |= _who(who)
        found |= {"message": on_one_line(record.getMessage()), "asctime": self.formatTime(record, self.datefmt),
                  "isotime": datetime.datetime.fromtimestamp(record.created).astimezone().isoformat(),
                  "instance": self.formats.instance % {"uuid": server} if server else "",
                  "color": _COLORS.get(record.levelno, "") if self._colored else "",
                  "reset_color": _NO_COLOR if self._colored else ""}
        found["user_identity"] = self.formats.user_identity % found if who is not None else ""
        return found


def _who(who: context.RequestContext | None) -> dict[str, object]:
    """Return oslo.log's names for the requester."""
    if who is None:
        return {"request_id": "-", "global_request_id": "-"}
    known: dict[str, str | None] = {
        "user": who.user_id, "user_id": who.user_id, "user_name": who.user_name, "project": who.project_id,
        "project_id": who.project_id, "project_name": who.project_name, "tenant": who.project_id,
        "domain": who.domain_id, "user_domain": who.user_domain_id, "project_domain": who.project_domain_id,
        "system_scope": who.system_scope}
    return {**{name: value or "-" for name, value in known.items()},
            "request_id": who.request_id, "global_request_id": who.global_request_id or "None"}


def check(conf: Options) -> None:
    """Raise config.Unusable for an invalid format string."""
    record = logging.makeLogRecord({"msg": "", "levelno": logging.DEBUG, "levelname": "DEBUG", "server": "-"})
    record.exc_info = (ValueError, ValueError(), None)
    for field, option in OPTION_OF.items():
        if getattr(conf, option) is None:
            continue
        trial = ContextFormat()
        trial.formats = Formats(**{field: getattr(conf, option)})
        for who in (None, context.RequestContext(request_id="req")):
            try:
                with context.entered(who) if who else context.doing():
                    trial.format(record)
            except (ValueError, TypeError, KeyError) as error:
                raise errors.config.Unusable(
                    option=f"[DEFAULT]{option}", reason="it must be a format of oslo.log: %(NAME)s, "
                    "%(NAME)d and plain text, with %% for a percent sign") from error
