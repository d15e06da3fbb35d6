import importlib
import os

from alembic import context
from sqlalchemy import create_engine

metadata = importlib.import_module(os.environ["MODELS"]).Base.metadata
with create_engine(os.environ["URL"]).connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        compare_server_default=True,
        include_name=lambda name, kind, parents: kind != "table" or name in metadata.tables,
    )
    with context.begin_transaction():
        context.run_migrations()
