"""``[DEFAULT]``: logging."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = "DEFAULT"
LEVEL = "(?i)[^=]+=(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)$"

#: Accepted on every daemon's command line as well.
CLI_OPTS = [
    cfg.StrOpt("log-config-append", metavar="FILE", deprecated_name="log_config",
               help="File in the format of Python's logging.config.fileConfig, which sets the handlers, formats and "
                    "levels. The other logging options then have no effect, except the formats that its formatters "
                    "use."),
    cfg.StrOpt("log-date-format", metavar="FORMAT",
               help="Format of a line's time, as in strftime(3). Unset: UTC, to the millisecond."),
    cfg.BoolOpt("use-journal", default=False,
                help="Log to systemd's journal, with the fields that oslo.log defines, instead of standard error."),
    cfg.StrOpt("syslog-log-facility", metavar="FACILITY", help="Syslog facility. Unset: user."),
    cfg.BoolOpt("watch-log-file", default=True,
                help="Accepted for compatibility: a log file that was moved away is always reopened, unless the "
                     "daemon rotates it."),
    cfg.BoolOpt("debug", short="d", default=False, mutable=True,
                help="Log debug messages, too. SIGHUP reloads it."),
    cfg.StrOpt("log-file", metavar="FILE", deprecated_name="logfile", help="Log file. Empty: standard error."),
    cfg.StrOpt("log-dir", metavar="DIR", deprecated_name="logdir",
               help="Directory of log files: the file is <daemon>.log in it."),
    cfg.BoolOpt("use-syslog", default=False, help="Log to syslog (/dev/log), too."),
    cfg.ListOpt("default_log_levels", item_type=types.String(regex=LEVEL), default=[], mutable=True,
                help="Levels of single loggers that differ from the default: NAME=LEVEL, with names as in log lines "
                     "(nova.rpc.server=DEBUG,keystonemiddleware=INFO). SIGHUP reloads it."),
    cfg.BoolOpt("use-json", default=False, help="Log one JSON object per line instead of text: time, service, "
                                                "hostname, level, request, user, project, server, host, action, "
                                                "step, duration_ms, error_code, trace and message, as far as known."),
]

OPTS = [
    *CLI_OPTS,
    cfg.StrOpt("log_rotation_type", default="none", ignore_case=True,
               choices=(("none", "Never: logrotate or another program does it."),
                        ("size", "When the file would exceed max_logfile_size_mb."),
                        ("interval", "When log_rotate_interval has passed.")),
               help="Rotation of the log file by the daemon: the file gets the suffix .1 (interval: its time), and a "
                    "new one is opened."),
    cfg.IntOpt("max_logfile_count", default=30, min=0,
               help="Number of rotated files to keep. 0 (with size): the file is never rotated."),
    cfg.IntOpt("max_logfile_size_mb", default=200, min=1,
               help="Maximum size of a log file in megabytes, with log_rotation_type = size."),
    cfg.IntOpt("log_rotate_interval", default=1, min=0,
               help="Number of log_rotate_interval_type units between rotations, with log_rotation_type = interval. "
                    "With weekday: the day, Monday is 0."),
    cfg.StrOpt("log_rotate_interval_type", default="days", ignore_case=True,
               choices=("seconds", "minutes", "hours", "days", "weekday", "midnight"),
               help="Unit of log_rotate_interval."),
    cfg.BoolOpt("use_stderr", default=False, help="Log to standard error, too, if lines go to a file or the journal."),
    cfg.StrOpt("logging_context_format_string",
               help="Format of log lines of a request, as in oslo.log: %(NAME)s of Python's log records and of "
                    "request_id, global_request_id, user_identity, user_name, project_name, instance, color. If this "
                    "or logging_default_format_string is set, all lines use oslo.log's formats. Unset: the format of "
                    "this release, with a name for each field."),
    cfg.StrOpt("logging_default_format_string", help="Format of other log lines. See logging_context_format_string."),
    cfg.StrOpt("logging_debug_format_suffix", help="Suffix of such lines with level DEBUG."),
    cfg.StrOpt("logging_exception_prefix",
               help="Prefix of each line of a traceback. Unset: a traceback is part of its event's line."),
    cfg.StrOpt("logging_user_identity_format", help="Format of user_identity."),
    cfg.StrOpt("instance_uuid_format", help="Format of instance; %(uuid)s is the server."),
    cfg.BoolOpt("log_color", default=False, help="Whether color and reset_color in these formats have an effect on "
                                                 "standard error."),
]
