"""Server groups as the API shows them: a list of policies in old versions, one policy with rules in new ones."""

from __future__ import annotations

from nova.api.view import Out, View
from nova.model.server.server_groups import HARD_POLICIES, ServerGroup

GROUP = View(
    Out("id", "uuid"),
    Out("name", "name"),
    Out("members", "members"),
    Out("metadata", lambda group, req: {}, until="2.63", type="object"),
    # versions without the soft policies show an empty list for them
    Out("policies", lambda group, req: [group.policy] if group.policy in HARD_POLICIES else [], until="2.14",
        type=["string"]),
    Out("policies", lambda group, req: [group.policy], since="2.15", until="2.63", type=["string"]),
    Out("project_id", "project_id", since="2.13"),
    Out("user_id", "user_id", since="2.13"),
    Out("policy", "policy", since="2.64"),
    Out("rules", "rules", since="2.64"),
    of=ServerGroup,
)
