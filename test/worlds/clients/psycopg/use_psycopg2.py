import psycopg2
from psycopg2.extras import execute_values
from tap import finish, ok, same

c = psycopg2.connect("")
cursor = c.cursor()
cursor.execute("INSERT INTO invoice (name) VALUES ('a') RETURNING id")
id = cursor.fetchone()[0]
cursor.execute("SELECT name FROM invoice WHERE id = %s", [id])
same(cursor.fetchone(), ("a",), "RETURNING")
rows = [("two %d" % i,) for i in range(1000)]
returned = execute_values(
    cursor, "INSERT INTO invoice (name) VALUES %s RETURNING id, name", rows, fetch=True
)
same([(name,) for _, name in returned], rows, "execute_values")
ok(all(id > 10**18 for id, _ in returned), "with snowflake IDs")
c.commit()
finish()
