"""``[DEFAULT]`` options of usage audits."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "DEFAULT"

OPTS = [
    cfg.BoolOpt("instance_usage_audit", default=False,
                help="Send a compute.instance.exists notification for every server that ran in a period, at the end "
                     "of the period. nova-conductor sends them, one compute host at a time; nova-compute needs no "
                     "setting. GET /os-instance_usage_audit_log shows the progress."),
    cfg.StrOpt("instance_usage_audit_period", default="month", regex=r"^(hour|month|day|year)(@([0-9]+))?$",
               help="Period of usage audits: hour, day, month or year. @ and a number set its beginning: hour@30 at "
                    "half past, day@18 at 18:00, month@15 on the 15th, year@4 in April (UTC). Keep deleted_retention "
                    "longer than the period: servers whose rows were removed are not reported."),
]
