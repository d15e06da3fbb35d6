# What an application does with a new table.

import os

from shop import Base, Invoice
from sqlalchemy import BigInteger, create_engine, event, insert, select, text
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from tap import finish, ok, same

engine = create_engine(os.environ["URL"])
statements = []
event.listen(
    engine, "before_cursor_execute", lambda c, cursor, sql, p, context, many: statements.append(sql)
)


class ServerDefault(DeclarativeBase):
    pass


class Slow(ServerDefault):
    __tablename__ = "invoice"
    id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, server_default=text("snowflake_nextval()")
    )
    name: Mapped[str]


def add(model, n):
    statements.clear()
    with Session(engine, expire_on_commit=False) as session:
        several = [model(name=str(i)) for i in range(n)]
        session.add_all(several)
        session.commit()
        count = len(statements)
        found = dict(session.execute(select(model.id, model.name)).all())
    return count, all(o.id > 10**18 and found[o.id] == o.name for o in several)


same(add(Invoice, 1), (1, True), "one statement for an INSERT, with a snowflake ID")
count, right = add(Invoice, 2500)
ok(right, "each of 2500 objects has its key")
ok(count < 10, "in less than 10 statements", count)
same(add(Slow, 2500), (2500, True), "a server_default takes a statement an object")
with engine.begin() as connection:
    ids = connection.scalars(
        insert(Invoice).returning(Invoice.id, sort_by_parameter_order=True),
        [{"name": "core %d" % i} for i in range(1500)],
    ).all()
    found = dict(connection.execute(select(Invoice.id, Invoice.name)).all())
    ok(all(found[id] == "core %d" % i for i, id in enumerate(ids)), "RETURNING in the order of rows")
    key = connection.execute(insert(Invoice), {"name": "x"}).inserted_primary_key[0]
    same(
        connection.scalar(select(Invoice.name).where(Invoice.id == key)), "x", "inserted_primary_key"
    )
    statement = upsert(Invoice).values(id=key, name="y")
    statement = statement.on_conflict_do_update(index_elements=["id"], set_={"name": "z"})
    same(connection.scalar(statement.returning(Invoice.name)), "z", "ON CONFLICT")
finish()
