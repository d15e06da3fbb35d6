import { desc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { invoice } from './schema'
import { finish, ok, same } from './tap.mjs'

const db = drizzle(process.env.DATABASE_URL!)
const [row] = await db.insert(invoice).values({ name: 'a' }).returning()
same(typeof row.id, 'bigint', 'an ID is a bigint')
same(await db.select().from(invoice).where(eq(invoice.id, row.id)), [row], "and it is the row's")
const names = Array.from({ length: 1000 }, (_, i) => ({ name: `${i}` }))
const rows = await db.insert(invoice).values(names).returning()
same(rows.map((r) => ({ name: r.name })), names, 'RETURNING in the order of rows')
same((await db.select().from(invoice).orderBy(desc(invoice.id)).limit(1))[0], rows[999], 'in the order of IDs')
ok(JSON.stringify({ ...row, id: row.id.toString() }).includes(`"${row.id}"`), 'JSON, as a string')
await db.$client.end()
finish()
