import asyncio

import asyncpg
from tap import finish, same


async def use():
    c = await asyncpg.connect()
    id = await c.fetchval("INSERT INTO invoice (name) VALUES ($1) RETURNING id", "a")
    same(await c.fetchval("SELECT name FROM invoice WHERE id = $1", id), "a", "RETURNING")
    before = await c.fetchval("SELECT count(*) FROM invoice")
    await c.copy_records_to_table(
        "invoice", columns=["name"], records=[("copied",) for _ in range(1000)]
    )
    same(await c.fetchval("SELECT count(*) FROM invoice"), before + 1000, "COPY without IDs")
    same(len(set(await c.fetch("SELECT snowflake_nextval(1000)"))), 1000, "a block of IDs")
    await c.close()


asyncio.run(use())
finish()
