"""Runs the cell schema's migrations on the engine that ``nova.db.schema.migrate`` hands over."""

from alembic import context
from nova.db.models.cell import metadata

engine = context.config.attributes["engine"]
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, version_table="alembic_version_cell",
                      compare_type=False, include_name=lambda name, kind, parents: kind != "table"
                      or name in metadata.tables, render_as_batch=False, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
