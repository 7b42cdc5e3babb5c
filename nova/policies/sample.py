"""All rules as a commented policy file, for operators to copy lines from."""

from __future__ import annotations

import textwrap

from nova.policies.base import BASE_RULES, BaseRule, Rule
from nova.policies.registry import ALL_RULES

HEAD = """\
# Who may do what. Generated from the code's own rules; `nova-policy sample` prints it.
# These are the defaults: copy to policy.yaml beside nova.conf only the lines you change, without the leading #.
# A changed file is read within a second; no daemon needs a restart. The compute API and Placement's read it.
# Every rule is asked in a project: tokens for the whole system or for a domain are refused.

# --- Rules that other rules name
"""


def sample() -> str:
    """The whole file as text. Every rule is a comment, so that the file changes nothing as it is."""
    return "\n".join([HEAD, *map(_base, BASE_RULES), "# --- Rules of operations\n", *map(_rule, ALL_RULES)])


def _comment(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False,
                         break_on_hyphens=False)


def _base(rule: BaseRule) -> str:
    note = " Serves older policy files only." if rule.deprecated else ""
    return f'{_comment(rule.description + note)}\n#"{rule.name}": "{rule.check}"\n'


def _rule(rule: Rule) -> str:
    lines = [_comment(f"{rule.when[0].upper()}{rule.when[1:]}.")] if rule.when else []
    lines += [f"#   {operation}" for operation in rule.operations]
    if rule.old is not None and rule.old.name != rule.name:
        lines.append(f'# Former name: "{rule.old.name}"; a line of that name in your file holds for this rule, too.')
    return "\n".join([*lines, f'#"{rule.name}": "{rule.check}"']) + "\n"
