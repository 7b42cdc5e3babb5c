"""Tokens of consoles.

Revision: 0005; follows: 0004
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("servers", sa.Column("console_epoch", key(), nullable=False, server_default="0"))
    op.create_table(
        "console_auth_tokens",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("token_hash", text(64), nullable=False),
        sa.Column("console_type", text(32), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("host", text(), nullable=False),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("address", Json(object), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("used_at", moment()),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("token_hash", name="uq_console_auth_tokens_token_hash"))
    op.create_index("ix_console_auth_tokens_server", "console_auth_tokens", ["server_uuid"])
    op.create_index("ix_console_auth_tokens_expires", "console_auth_tokens", ["expires_at"])
