import pg from 'pg'
import { insert } from './insert.mjs'
import { finish, ok, same } from './tap.mjs'

const client = new pg.Client()
await client.connect()
const one = async (sql, values) => (await client.query(sql, values)).rows[0]

const id = await insert(client, 'a')
same(typeof id, 'string', 'an ID is a string')
same((await one('SELECT id FROM invoice')).id, id, "and it is the row's")
same((await one('SELECT name FROM invoice WHERE id = $1', [id])).name, 'a', 'found by the string')
same((await one('SELECT name FROM invoice WHERE id = $1', [BigInt(id)])).name, 'a', 'and by a BigInt')
const names = Array.from({ length: 1000 }, (_, i) => `many ${i}`)
const { rows } = await client.query(
  'INSERT INTO invoice (name) SELECT * FROM unnest($1::text[]) RETURNING id, name', [names])
same(rows.map((row) => row.name), names, 'RETURNING in the order of rows')
same(new Set(rows.map((row) => row.id)).size, 1000, 'with an ID each')
same(JSON.parse(JSON.stringify({ id })).id, id, 'JSON keeps the string')

// What rounds
const last = rows.map((row) => row.id).find((id) => String(Number(id)) !== id)
same(
  String((await one('SELECT to_json(i) AS j FROM invoice i WHERE id = $1', [last])).j.id) === last,
  false, 'an ID in JSON of the server is rounded')
same(
  (await one("SELECT json_build_object('id', id::text) AS j FROM invoice WHERE id = $1", [last])).j.id,
  last, 'one that is a text there is not')
const found = await client.query('SELECT id FROM invoice WHERE id = $1', [Number(last)])
ok(found.rows.every((row) => row.id !== last),
  'a number finds another row, or none')
await client.end()
finish()
