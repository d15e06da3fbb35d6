# Columns of keys in pandas: what is rounded, and what is not.

import io
import os

import pandas
import sqlalchemy
from reading import read
from tap import finish, ok, same

engine = sqlalchemy.create_engine(os.environ["URL"])
nodes = "SELECT id, parent FROM node ORDER BY id"
with engine.connect() as connection:
    ids = [row.id for row in connection.execute(sqlalchemy.text(nodes))]


def parent(frame):
    return int(frame["parent"].iloc[1])


frame = pandas.read_sql(nodes, engine)
same([int(id) for id in frame["id"]], ids, "a column without NULL is right")
ok(parent(frame) != ids[0], "a column with NULL is rounded", parent(frame))
same(parent(read(nodes, engine)), ids[0], "as the page has it, it is not")
late = pandas.read_sql(nodes, engine, dtype={"parent": "Int64"})
ok(parent(late) != ids[0], "dtype comes too late", parent(late))
left = pandas.DataFrame({"k": [0, 1]})
right = pandas.DataFrame({"k": [1], "parent": [ids[0]]})
ok(parent(left.merge(right, how="left")) != ids[0], "so is one that gets NULLs in a join")

csv = read(nodes, engine).to_csv(index=False)
ok(parent(pandas.read_csv(io.StringIO(csv))) != ids[0], "read_csv rounds, too")
same(parent(pandas.read_csv(io.StringIO(csv), dtype_backend="numpy_nullable")), ids[0], "but not with nullable types")
json = '[{"id": %d, "parent": null}, {"id": %d, "parent": %d}]' % (ids[0], ids[1], ids[0])
ok(
    parent(pandas.read_json(io.StringIO(json), dtype_backend="numpy_nullable")) != ids[0],
    "read_json rounds also with them",
)
finish()
