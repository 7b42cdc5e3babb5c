"""Policy enforcement: the operator's policy files override the defaults; decisions are cached for a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_policy import opts, policy

from nova import errors, failures
from nova.context import RequestContext
from nova.policies import files
from nova.policies.registry import list_rules

LOG = logging.getLogger(__name__)

KEEP_S = 1.0  # maximum delay until a changed policy file, or another result of an external check, takes effect
KEEP_MOST = 4096

ENFORCE_SCOPE = cfg.BoolOpt(
    "enforce_scope", default=True,
    help="Refuse tokens for the whole system or for a domain: every rule is checked in a project.")

Decision = tuple[str, tuple[object, ...], str | None, str | None]


class Policy:
    """The effective rules. Reads ``[oslo_policy]`` of ``conf``; unknown rules are a programming error.

    Raises api.PolicyBadFile, api.PolicyMissingFile if the operator's files are invalid or missing at startup. If they
    become invalid or missing later, the rules do not change, and the reason is logged.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        opts.set_defaults(conf, policy_file="policy.yaml", enforce_new_defaults=True)
        if "enforce_scope" not in conf.oslo_policy:  # removed in newer releases of the library
            conf.register_opt(ENFORCE_SCOPE, group="oslo_policy")
        self._conf = conf
        self._kept: dict[Decision, bool] = {}
        files.require(conf)
        self._paths = files.found(conf)
        self._signature = files.signature(self._paths)
        self.enforcer = self._loaded(self._paths)
        self._fresh_until = time.monotonic() + KEEP_S

    def _loaded(self, paths: list[Path]) -> policy.Enforcer:
        """Return an enforcer with the rules of the files. Raises api.PolicyBadFile."""
        rules = list_rules()
        former = {rule.deprecated_rule.name: rule.deprecated_rule.check_str for rule in rules if rule.deprecated_rule}
        files.check(paths, {**former, **{rule.name: rule.check_str for rule in rules}})
        enforcer = policy.Enforcer(self._conf)
        enforcer.suppress_deprecation_warnings = True
        enforcer.suppress_default_change_warnings = True
        enforcer.register_defaults(rules)
        enforcer.load_rules()
        return enforcer

    def _use(self, paths: list[Path]) -> None:
        self.enforcer = self._loaded(paths)
        self._paths = paths

    def authorize(self, context: RequestContext, rule: str, target: Mapping[str, str | None]) -> None:
        """Raise api.PolicyNotAllowed, with the rule's name, unless ``rule`` passes."""
        if not self.allows(context, rule, target):
            LOG.debug("%s refused to user %s in project %s", rule, context.user_id, context.project_id)
            raise errors.api.PolicyNotAllowed(rule=rule)

    def allows(self, context: RequestContext, rule: str, target: Mapping[str, str | None]) -> bool:
        """Return whether ``rule`` passes for the caller; ``target``: ``project_id`` and ``user_id`` of the resource."""
        if not context.project_id and (context.system_scope or context.domain_id) \
                and self._conf.oslo_policy.enforce_scope:
            return False
        self._refresh()
        key = (rule, _who(context), target.get("project_id"), target.get("user_id"))
        found = self._kept.get(key)  # read only once: another thread may clear the cache at any time
        if found is None:
            if len(self._kept) >= KEEP_MOST:
                self._kept.clear()
            found = self._kept[key] = self._ask(context, rule, target)
        return found

    def is_admin(self, context: RequestContext) -> bool:
        """Return whether the context is an administrator's (rule ``context_is_admin``)."""
        return self.allows(context, "context_is_admin", {})

    def _refresh(self) -> None:
        """Check the files' signatures once a second, and read the files again if a signature differs."""
        now = time.monotonic()
        if now < self._fresh_until:
            return
        self._fresh_until = now + KEEP_S
        self._kept.clear()
        paths = files.found(self._conf)
        marks = files.signature(paths)
        if marks == self._signature:
            return
        self._signature = marks
        if missing := files.gone(self._paths, paths, self._conf):
            LOG.error("policy file %s is missing; the rules stay unchanged: restore it, or restart this service to run "
                      "without it", missing[0])
            return
        if error := failures.failure_of(self._use, paths):
            LOG.error("the changed policy files cannot be used; the rules stay unchanged: %s",
                      getattr(error, "message", error))
            return
        LOG.info("reloaded the changed policy files")

    def _ask(self, context: RequestContext, rule: str, target: Mapping[str, str | None]) -> bool:
        check = self.enforcer.rules[rule]
        return bool(check(dict(target), credentials(context), self.enforcer))


def get_enforcer() -> policy.Enforcer:
    """Return the enforcer for the policy library's tools (entry point oslo.policy.enforcer), with nova.conf's policy
    file."""
    conf = cfg.ConfigOpts()
    conf([], project="nova")
    return Policy(conf).enforcer


def _who(context: RequestContext) -> tuple[object, ...]:
    """Return all values of :func:`credentials`: callers that differ in one of them do not share a cached decision."""
    return (context.user_id, context.project_id, context.roles, context.is_admin, context.system_scope,
            context.domain_id, context.user_domain_id, context.project_domain_id)


def credentials(context: RequestContext) -> dict[str, object]:
    """Return the credentials that checks can refer to."""
    return {"user_id": context.user_id, "project_id": context.project_id, "roles": list(context.roles),
            "is_admin": context.is_admin, "is_admin_project": True, "system_scope": context.system_scope,
            "domain_id": context.domain_id, "user_domain_id": context.user_domain_id,
            "project_domain_id": context.project_domain_id}
