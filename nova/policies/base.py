"""Types of policy rules, the base rules that other rules refer to, and the default checks.

Every rule is project scoped: system- and domain-scoped tokens are refused. The identity service makes admin imply
manager, member and reader.
"""

from __future__ import annotations

from dataclasses import dataclass

ADMIN = "rule:context_is_admin"
MANAGER = "rule:project_manager_or_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
SERVICE = "rule:service_or_admin"
OWN_USER = "(rule:context_is_admin) or user_id:%(user_id)s"
ANYONE = "@"
NOBODY = "!"

OLD_ADMIN = "rule:admin_api"
OLD_OWNER = "rule:admin_or_owner"


@dataclass(frozen=True)
class Old:
    """The rule's former name and check: used in an operator's file, and as the default while the new defaults are
    disabled (``[oslo_policy]enforce_new_defaults = false``).
    """

    name: str
    check: str


@dataclass(frozen=True)
class Rule:
    """A policy rule: its check, the operations that check it (ids of the API contract), and the condition, if any."""

    name: str
    check: str
    operations: tuple[str, ...]
    when: str = ""
    old: Old | None = None


@dataclass(frozen=True)
class BaseRule:
    """A rule that other rules refer to. ``deprecated``: only for old policy files."""

    name: str
    check: str
    description: str
    old: Old | None = None
    deprecated: bool = False


_OLD_ADMIN = Old(OLD_ADMIN, "is_admin:True")
_OLD_OWNER = Old(OLD_OWNER, "is_admin:True or project_id:%(project_id)s")

BASE_RULES = (
    BaseRule("context_is_admin", "role:admin", "An administrator of the whole cloud.", _OLD_ADMIN),
    BaseRule("admin_or_owner", _OLD_OWNER.check, "Former default for owners.", deprecated=True),
    BaseRule("admin_api", _OLD_ADMIN.check, "Former default for administrators.", deprecated=True),
    BaseRule("project_manager_api", "role:manager and project_id:%(project_id)s", "A manager of the project.",
             _OLD_ADMIN),
    BaseRule("project_member_api", "role:member and project_id:%(project_id)s", "A member of the project.",
             _OLD_OWNER),
    BaseRule("project_reader_api", "role:reader and project_id:%(project_id)s", "A reader of the project.",
             _OLD_OWNER),
    BaseRule("service_api", "role:service", "Another service of the cloud.", _OLD_ADMIN),
    BaseRule("project_manager_or_admin", "rule:project_manager_api or rule:context_is_admin",
             "A manager of the project, or an administrator.", _OLD_ADMIN),
    BaseRule("project_member_or_admin", "rule:project_member_api or rule:context_is_admin",
             "A member of the project, or an administrator.", _OLD_OWNER),
    BaseRule("project_reader_or_admin", "rule:project_reader_api or rule:context_is_admin",
             "A reader of the project, or an administrator.", _OLD_OWNER),
    BaseRule("service_or_admin", "rule:service_api or rule:context_is_admin",
             "Another service of the cloud, or an administrator.", _OLD_ADMIN),
)
