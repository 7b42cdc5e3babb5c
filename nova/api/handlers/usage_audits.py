"""Usage audits: whether a period's usage notifications were sent, host by host."""

from __future__ import annotations

from nova import errors, failures
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views import usage as views
from nova.web.formats import to_time


@answers({"instance_usage_audit_logs": views.AUDITS})
def index(req: Request) -> dict[str, object]:
    """Show the usage audits of the last complete period."""
    return {"instance_usage_audit_logs": views.audits(req.conductor.get_usage_audits(None))}


@answers({"instance_usage_audit_log": views.AUDITS})
def show(req: Request, before_timestamp: str) -> dict[str, object]:
    """Show the usage audits of the last period that was complete at a given time."""
    with failures.replaced(ValueError, lambda _: errors.quota.UsageAuditBadTimestamp(value=before_timestamp)):
        before = to_time(before_timestamp)
    return {"instance_usage_audit_log": views.audits(req.conductor.get_usage_audits(before))}
