import json

import psycopg
from load import load
from tap import finish, ok, same

c = psycopg.connect(autocommit=True)
insert = "INSERT INTO invoice (name) VALUES (%s) RETURNING id"
id = c.execute(insert, ["a"]).fetchone()[0]
same(c.execute("SELECT name FROM invoice WHERE id = %s", [id]).fetchone(), ("a",), "RETURNING")
same(c.cursor(binary=True).execute("SELECT max(id) FROM invoice").fetchone()[0], id, "binary")
same(json.loads(json.dumps({"id": id}))["id"], id, "JSON, in Python")
same(
    c.execute("SELECT to_json(i) FROM invoice i").fetchone()[0]["id"], id, "JSON of the server"
)

cursor = c.cursor()
cursor.executemany(insert, [("many %d" % i,) for i in range(500)], returning=True)
ids = []
while True:
    ids.append(cursor.fetchone()[0])
    if not cursor.nextset():
        break
names = dict(c.execute("SELECT id, name FROM invoice").fetchall())
ok(all(names[id] == "many %d" % i for i, id in enumerate(ids)), "executemany")
same(ids, sorted(ids), "whose IDs rise")
with c.pipeline():
    results = [c.execute(insert, ["p"]) for _ in range(100)]
same(len({r.fetchone()[0] for r in results}), 100, "a pipeline")

# The example
load(c, [("first", ["1", "2"]), ("second", ["3"])])
rows = c.execute(
    "SELECT i.name, l.name FROM invoice i JOIN line l ON l.invoice = i.id ORDER BY l.id"
).fetchall()
same(rows, [("first", "1"), ("first", "2"), ("second", "3")], "COPY of two tables, with IDs in advance")
finish()
