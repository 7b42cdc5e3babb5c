"""``[DEFAULT]``: where log lines go."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = "DEFAULT"
LEVEL = "(?i)[^=]+=(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)$"

#: Taken on every daemon's command line as well.
CLI_OPTS = [
    cfg.BoolOpt("debug", short="d", default=False, mutable=True,
                help="Log what helps developers too. SIGHUP makes a daemon read it again."),
    cfg.StrOpt("log_file", deprecated_name="logfile", help="The file log lines go to; standard error when empty."),
    cfg.StrOpt("log_dir", deprecated_name="logdir", help="A directory: the file is <daemon>.log in it."),
    cfg.BoolOpt("use_syslog", default=False, help="Log to syslog (/dev/log) too."),
    cfg.ListOpt("default_log_levels", item_type=types.String(regex=LEVEL), default=[], mutable=True,
                help="Levels of single loggers, where they are not to be ours: NAME=LEVEL, of names as log lines show them "
                     "(nova.rpc.server=DEBUG,keystonemiddleware=INFO). SIGHUP makes a daemon read it again."),
    cfg.BoolOpt("use_json", default=False, help="One JSON object a line instead of text: time, service, hostname, level, request, user, project, server, "
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
]
