# snowflake_convert_online() by each driver: in autocommit mode; otherwise, and in a
# pipeline, a clear error, and nothing is changed.

import asyncio

import asyncpg
import psycopg
import psycopg2
from tap import fails, finish, ok, same

CALL = "CALL snowflake_convert_online('{}')"
OUTSIDE = "must be converted outside of a transaction block"


def create(c, name):
    c.execute("CREATE TABLE {} (id serial PRIMARY KEY, v int)".format(name))
    c.execute("INSERT INTO {} (v) SELECT generate_series(1, 100)".format(name))


def kind(c, name):
    c.execute("SELECT kind FROM snowflake_sequences WHERE table_name = '{}'".format(name))
    return c.fetchone()[0]


def prepared(c, name):
    """Has a conversion of the table begun?"""
    c.execute("SELECT count(*) FROM pg_trigger WHERE tgrelid = '{}'::regclass".format(name))
    return c.fetchone()[0] > 0


def is_refused(error, name):
    ok(OUTSIDE in str(error) or "cannot be executed" in str(error)
       or "cannot run inside a transaction block" in str(error), name, str(error))


# psycopg
c = psycopg.connect(autocommit=True)
notices = []
c.add_notice_handler(lambda notice: notices.append(notice.message_primary))
create(c, "t3")
with psycopg.connect() as block:
    is_refused(
        fails(psycopg.Error, lambda: block.execute(CALL.format("t3")), "psycopg without autocommit"),
        "psycopg without autocommit: the message",
    )
    block.rollback()
    block.execute("SELECT 1")
    is_refused(
        fails(psycopg.Error, lambda: block.execute(CALL.format("t3")), "psycopg in a transaction"),
        "psycopg in a transaction: the message",
    )


def pipeline():
    with c.pipeline():
        c.execute("INSERT INTO t3 (v) VALUES (-1)")
        c.execute(CALL.format("t3"))


is_refused(fails(psycopg.Error, pipeline, "a pipeline of psycopg"), "a pipeline: the message")
cursor = c.cursor()
same(cursor.execute("SELECT count(*) FROM t3").fetchone()[0], 100, "a pipeline commits nothing")
ok(not prepared(cursor, "t3"), "what is refused changes nothing")
c.execute(CALL.format("t3"))
same(kind(cursor, "t3"), "snowflake", "psycopg with autocommit")
ok(any('phase "swap"' in n for n in notices), "with progress as notices", notices)

# A parameter, by the extended protocol
create(c, "t3p")
c.execute("CALL snowflake_convert_online(%s::regclass, until => %s)", ["t3p", "swap"])
c.execute("CALL snowflake_convert_online(%s::regclass)", ["t3p"], prepare=True)
same(kind(cursor, "t3p"), "snowflake", "psycopg with parameters, and a prepared statement")

# First in a pipeline
create(c, "t3f")
with c.pipeline():
    c.execute(CALL.format("t3f"))
    c.execute("INSERT INTO t3f (v) VALUES (-1)")
same(kind(cursor, "t3f"), "snowflake", "first in a pipeline")
same(
    cursor.execute("SELECT count(*) FROM t3f WHERE v = -1 AND id > 1000000000000").fetchone()[0],
    1,
    "with a statement after it",
)

# By hand: the statements of the plan
create(c, "t3h")
for _ in range(100):
    row = c.execute(
        "SELECT statement FROM snowflake_convert_plan('t3h') WHERE state LIKE 'next%'"
    ).fetchone()
    if row is None:
        break
    c.execute(row[0])
same(kind(cursor, "t3h"), "snowflake", "the statements of the plan, by psycopg")
c.close()

# psycopg2
c = psycopg2.connect("")
cursor = c.cursor()
create(cursor, "t2")
c.commit()
is_refused(
    fails(psycopg2.Error, lambda: cursor.execute(CALL.format("t2")), "psycopg2 without autocommit"),
    "psycopg2 without autocommit: the message",
)
c.rollback()
c.autocommit = True
cursor.execute(CALL.format("t2"))
same(kind(cursor, "t2"), "snowflake", "psycopg2 with autocommit")
ok(any('phase "swap"' in n for n in c.notices), "with progress as notices", c.notices)
c.close()


# asyncpg
async def use():
    c = await asyncpg.connect()
    await c.execute("CREATE TABLE ta (id serial PRIMARY KEY, v int)")
    try:
        async with c.transaction():
            await c.execute(CALL.format("ta"))
        ok(False, "asyncpg in a transaction")
    except asyncpg.PostgresError as e:
        is_refused(e, "asyncpg in a transaction")
    await c.execute(CALL.format("ta"))
    same(
        await c.fetchval("SELECT kind FROM snowflake_sequences WHERE table_name = 'ta'"),
        "snowflake",
        "asyncpg",
    )
    await c.close()


asyncio.run(use())
finish()
