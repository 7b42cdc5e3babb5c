"""Asks the rules: the operator's policy file over our defaults, decisions kept for a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from oslo_config import cfg
from oslo_policy import opts, policy

from nova import errors
from nova.context import RequestContext
from nova.policies import files
from nova.policies.registry import list_rules

LOG = logging.getLogger(__name__)

KEEP_S = 1.0  # a changed policy file is seen within this time, and another answer of a check that asks a server
KEEP_MOST = 4096

ENFORCE_SCOPE = cfg.BoolOpt(
    "enforce_scope", default=True,
    help="Refuse tokens for the whole system or for a domain: every rule is asked in a project.")

Decision = tuple[str, tuple[object, ...], str | None, str | None]


class Policy:
    """The rules in force. Reads ``[oslo_policy]`` of ``conf``; unknown rules are a programming error.

    api.PolicyBadFile, api.PolicyMissingFile when the operator's files are broken or absent at the start. When they
    break or disappear later, the rules stay as they were, and one line in the log says why.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        opts.set_defaults(conf, policy_file="policy.yaml", enforce_new_defaults=True)
        if "enforce_scope" not in conf.oslo_policy:  # newer releases of the library have done with it
            conf.register_opt(ENFORCE_SCOPE, group="oslo_policy")
        self._conf = conf
        self._kept: dict[Decision, bool] = {}
        files.require(conf)
        self._paths = files.found(conf)
        self._signature = files.signature(self._paths)
        self.enforcer = self._loaded(self._paths)
        self._fresh_until = time.monotonic() + KEEP_S

    def _loaded(self, paths: list[Path]) -> policy.Enforcer:
        """An enforcer with what the files say. api.PolicyBadFile."""
        rules = list_rules()
        former = {rule.deprecated_rule.name: rule.deprecated_rule.check_str for rule in rules if rule.deprecated_rule}
        files.judge(paths, {**former, **{rule.name: rule.check_str for rule in rules}})
        enforcer = policy.Enforcer(self._conf)
        enforcer.suppress_deprecation_warnings = True
        enforcer.suppress_default_change_warnings = True
        enforcer.register_defaults(rules)
        enforcer.load_rules()
        return enforcer

    def authorize(self, context: RequestContext, rule: str, target: Mapping[str, str | None]) -> None:
        """Nothing, or api.PolicyNotAllowed, which names the rule."""
        if not self.allows(context, rule, target):
            LOG.debug("%s refused to user %s in project %s", rule, context.user_id, context.project_id)
            raise errors.api.PolicyNotAllowed(rule=rule)

    def allows(self, context: RequestContext, rule: str, target: Mapping[str, str | None]) -> bool:
        """Whether ``rule`` passes for who asks; ``target`` has ``project_id`` and ``user_id`` of what is acted on."""
        if not context.project_id and (context.system_scope or context.domain_id) \
                and self._conf.oslo_policy.enforce_scope:
            return False
        self._refresh()
        key = (rule, _who(context), target.get("project_id"), target.get("user_id"))
        found = self._kept.get(key)  # looked at once: another thread may clear them all at any time
        if found is None:
            if len(self._kept) >= KEEP_MOST:
                self._kept.clear()
            found = self._kept[key] = self._ask(context, rule, target)
        return found

    def is_admin(self, context: RequestContext) -> bool:
        """Whether the context's roles make an administrator (rule ``context_is_admin``)."""
        return self.allows(context, "context_is_admin", {})

    def _refresh(self) -> None:
        """Look at the files' marks once a second, and at the files when a mark differs."""
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
            LOG.error("%s is gone, the rules stay as they were: write it again, or restart this daemon to do without "
                      "it", missing[0])
            return
        try:
            self.enforcer = self._loaded(paths)
            self._paths = paths
        except Exception as error:
            LOG.error("the policy files were changed and cannot be used, the rules stay as they were: %s",
                      getattr(error, "message", error))
            return
        LOG.info("the policy files were changed and read again")

    def _ask(self, context: RequestContext, rule: str, target: Mapping[str, str | None]) -> bool:
        check = self.enforcer.rules[rule]
        return bool(check(dict(target), credentials(context), self.enforcer))


def get_enforcer() -> policy.Enforcer:
    """For the policy library's tools (entry point oslo.policy.enforcer): our rules, with nova.conf's policy file."""
    conf = cfg.ConfigOpts()
    conf([], project="nova")
    return Policy(conf).enforcer


def _who(context: RequestContext) -> tuple[object, ...]:
    """All that :func:`credentials` tells checks: two who differ in any of it share no decision."""
    return (context.user_id, context.project_id, context.roles, context.is_admin, context.system_scope,
            context.domain_id, context.user_domain_id, context.project_domain_id)


def credentials(context: RequestContext) -> dict[str, object]:
    """What checks can refer to."""
    return {"user_id": context.user_id, "project_id": context.project_id, "roles": list(context.roles),
            "is_admin": context.is_admin, "is_admin_project": True, "system_scope": context.system_scope,
            "domain_id": context.domain_id, "user_domain_id": context.user_domain_id,
            "project_domain_id": context.project_domain_id}
