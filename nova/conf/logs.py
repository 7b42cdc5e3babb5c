"""``[DEFAULT]``: where log lines go."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = "DEFAULT"
LEVEL = "(?i)[^=]+=(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)$"

#: Taken on every daemon's command line as well.
CLI_OPTS = [
    cfg.StrOpt("log-config-append", metavar="FILE", deprecated_name="log_config",
               help="A file as logging.config.fileConfig of Python reads it: it says where all lines go, in which form, "
                    "and the levels. The other options of the log have no effect then, except the formats "
                    "that its formatters use."),
    cfg.StrOpt("log-date-format", metavar="FORMAT",
               help="The time of a line, as strftime(3) has it. Unset: UTC, to the millisecond."),
    cfg.BoolOpt("use-journal", default=False,
                help="Send lines to systemd's journal, with the fields that oslo.log gives them. Standard error gets "
                     "none then."),
    cfg.StrOpt("syslog-log-facility", metavar="FACILITY", help="Facility of lines in syslog. Unset: user."),
    cfg.BoolOpt("watch-log-file", default=True,
                help="Accepted: a log file that was moved away is always made anew, unless the daemon turns it itself."),
    cfg.BoolOpt("debug", short="d", default=False, mutable=True,
                help="Log what helps developers too. SIGHUP makes a daemon read it again."),
    cfg.StrOpt("log-file", metavar="FILE", deprecated_name="logfile", help="The file log lines go to; standard error when empty."),
    cfg.StrOpt("log-dir", metavar="DIR", deprecated_name="logdir", help="A directory: the file is <daemon>.log in it."),
    cfg.BoolOpt("use-syslog", default=False, help="Log to syslog (/dev/log) too."),
    cfg.ListOpt("default_log_levels", item_type=types.String(regex=LEVEL), default=[], mutable=True,
                help="Levels of single loggers, where they are not to be ours: NAME=LEVEL, of names as log lines show them "
                     "(nova.rpc.server=DEBUG,keystonemiddleware=INFO). SIGHUP makes a daemon read it again."),
    cfg.BoolOpt("use-json", default=False, help="One JSON object a line instead of text: time, service, hostname, level, request, user, project, server, "
                     "host, action, step, duration_ms, error_code, trace, message, as far as they are known."),
]

OPTS = [
    *CLI_OPTS,
    cfg.StrOpt("log_rotation_type", default="none", ignore_case=True,
               choices=(("none", "Never: that is logrotate's work, or another program's."),
                        ("size", "When the file would become larger than max_logfile_size_mb."),
                        ("interval", "When log_rotate_interval has passed.")),
               help="When a daemon itself turns its log file: the file gets a name with .1 at the end (interval: with its "
                    "time), and a new one begins."),
    cfg.IntOpt("max_logfile_count", default=30, min=0, help="How many files that were turned are kept. 0 (with size): the file is never turned."),
    cfg.IntOpt("max_logfile_size_mb", default=200, min=1,
               help="Megabytes of a log file, with log_rotation_type = size."),
    cfg.IntOpt("log_rotate_interval", default=1, min=0,
               help="How many units of log_rotate_interval_type a log file lasts, with log_rotation_type = interval. Of "
                    "weekday: which day, Monday is 0."),
    cfg.StrOpt("log_rotate_interval_type", default="days", ignore_case=True,
               choices=("seconds", "minutes", "hours", "days", "weekday", "midnight"),
               help="The unit of log_rotate_interval."),
    cfg.BoolOpt("use_stderr", default=False, help="Log to standard error, too, where lines go to a file or the journal."),
    cfg.StrOpt("logging_context_format_string",
               help="The form of a line of a request, as oslo.log has it: %(NAME)s of Python's log records and of "
                    "request_id, global_request_id, user_identity, user_name, project_name, instance, color. If this or "
                    "logging_default_format_string is set, all lines have oslo.log's forms. Unset: that of this "
                    "release, where each fact has its name."),
    cfg.StrOpt("logging_default_format_string", help="The form of other lines. See logging_context_format_string."),
    cfg.StrOpt("logging_debug_format_suffix", help="What such a line has at its end if its level is DEBUG."),
    cfg.StrOpt("logging_exception_prefix",
               help="What each line of a traceback begins with. Unset: a traceback is in the line of its event."),
    cfg.StrOpt("logging_user_identity_format", help="The form of user_identity."),
    cfg.StrOpt("instance_uuid_format", help="The form of instance; %(uuid)s is the server."),
    cfg.BoolOpt("log_color", default=False, help="Whether color and reset_color in such a form have an effect on "
                                                 "standard error."),
]
