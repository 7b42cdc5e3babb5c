"""``[DEFAULT]``: where log lines go."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("debug", short="d", default=False, mutable=True,
                help="Log what helps developers too. SIGHUP makes a daemon read it again."),
    cfg.StrOpt("log_file", deprecated_name="logfile", help="The file log lines go to; standard error when empty."),
    cfg.StrOpt("log_dir", deprecated_name="logdir", help="A directory: the file is <daemon>.log in it."),
    cfg.BoolOpt("use_syslog", default=False, help="Log to syslog (/dev/log) too."),
    cfg.BoolOpt("use_json", default=False, help="One JSON object a line instead of text."),
]

#: Taken on every daemon's command line as well.
CLI_OPTS = OPTS
