"""Errors about quotas, usage and audits."""

from __future__ import annotations

from nova.errors import config, kinds

AboveProject = kinds.Invalid.row("quota.above_project",
    "Quota limit {limit} for {resource} must be less than or equal to {project_limit}.")
BelowUse = kinds.Invalid.row("quota.below_use",
    "Quota limit {limit} for {resource} must be greater than or equal to already used and reserved {used}.")
Exceeded = kinds.OverQuota.row("quota.exceeded",
    "Quota exceeded for {over}: Requested {requested}, but already used {used} of {limit} {over}",
    "`openstack limits show --absolute` shows usage and limits; delete resources, or ask for a higher quota.")
FixedIps = kinds.OverQuota.row("quota.fixed_ips",
    "Quota exceeded for fixed_ips: Requested {requested}, but already used {used} of {limit} fixed_ips")
KeptElsewhere = kinds.Forbidden.row("quota.kept_elsewhere", "{reason}")
LimitsAway = kinds.Unavailable.row("quota.limits_away",
    "The limits that [quota]driver = nova.quota.UnifiedLimitsDriver keeps in Keystone cannot be read: {reason}",
    "Check Keystone, and the credentials in [oslo_limit].")
TooMany = kinds.OverQuota.row("quota.too_many", "Quota exceeded, {what}: at most {limit}.",
    "Request fewer, or ask for a higher quota: `openstack limits show --absolute`.")

LimitsNoEndpoint = kinds.Unavailable.row("limits.no_endpoint",
    "Keystone has {count} endpoints for [oslo_limit]{wanted}; exactly one is needed.",
    "Set [oslo_limit]endpoint_service_type, endpoint_interface and endpoint_region_name to match exactly one endpoint.")

UsageBadPeriod = config.Wrong.row("usage.bad_period",
    "[DEFAULT]instance_usage_audit_period cannot be used: it must be hour, day, month or year. It may have an offset: "
    "hour@0 to hour@59 (minutes), day@0 to day@23 (hours), month@1 to month@31 (days; the last day of a shorter "
    "month), year@1 to year@12 (months).",
    "Set [DEFAULT]instance_usage_audit_period to hour, day, month or year, with or without @offset.")
UsageBadTime = kinds.Invalid.row("usage.bad_time",
    "Invalid {name} time [{value}]: it must be an ISO 8601 date and time, for example 2026-11-21T10:00:00, "
    "2026-11-21T10:00:00.000000 or 2026-11-21 10:00:00.000000.")
UsageStartAfterEnd = kinds.Invalid.row("usage.start_after_end",
    "Invalid start time. The start time {start} cannot occur after the end time {end}.")

UsageAuditBadTimestamp = kinds.Invalid.row("usage_audit.bad_timestamp",
    "Invalid timestamp for date {value}: it must have the form 2026-11-21 10:00:00 or 2026-11-21 10:00:00.000000, in "
    "UTC.")

AuditIncurable = kinds.Conflict.row("audit.incurable", "{what}")
AuditNoNode = AuditIncurable.row("audit.no_node", "{host} has no node {node}: is its nova-compute registered?",
    "Start nova-compute there, and wait for its first report; then audit again.")

CleanupHostIsThere = kinds.Conflict.row("debt.host_is_there",
    "nova-compute on {host} is registered and does its cleanups when it returns: only cleanups of a removed host "
    "(DELETE /os-services/ID) can be dropped.",
    "Wait for that nova-compute, or delete its service first.")
CleanupUnknownStep = kinds.NotSupported.row("debt.unknown_step",
    "This nova-compute does not support the cleanup step '{step}': upgrade it.")
