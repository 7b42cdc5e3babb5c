"""``[DEFAULT]``: where log lines go."""

from __future__ import annotations

from oslo_config import cfg, types

GROUP = "DEFAULT"
LEVEL = "(?i)[^=]+=(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)$"

OPTS = [
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

#: Taken on every daemon's command line as well.
CLI_OPTS = OPTS
