"""The cells in which a project has servers, from an index: a page of a project's servers asks only these.

Revision: 0009; follows: 0008
"""

from nova.db.schema.resumable import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_index("ix_ledger_project_cells", "ledger", ["project_id", "closed", "cell"])
