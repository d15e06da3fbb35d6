import 'reflect-metadata'
import { DataSource } from 'typeorm'
import * as old from './old'
import * as kept from './kept'
import * as converted from './converted'
import { Invoice } from './invoice'
import { Convert } from './convert'
import { finish, ok, same } from './tap.mjs'

const connect = (entities: any[]) =>
  new DataSource({
    type: 'postgres', url: process.env.DATABASE_URL, entities, migrations: [Convert],
    extensions: ['snowflake', 'snowflake_convert'],
  }).initialize()
const changes = async (source: DataSource) =>
  (await source.driver.createSchemaBuilder().log()).upQueries.map((query) => query.query)

async function use(source: DataSource, { Customer, Order }: any, what: string) {
  const customers = source.getRepository(Customer)
  const orders = source.getRepository(Order)
  const order: any = await orders.save({ customer: await customers.save({ name: 'a' }) })
  const found: any = await orders.findOne({ where: { id: order.id }, relations: { customer: true } })
  same(found.customer.id, order.customer.id, `${what}: a foreign key`)
  const several: any[] = await customers.save(Array.from({ length: 1000 }, (_, i) => ({ name: `${i}` })))
  const names = new Map((await customers.find()).map((c: any) => [c.id, c.name]))
  ok(several.every((c) => names.get(c.id) === c.name), `${what}: each of many objects has its key`)
}

let source = await connect(Object.values(old))
await source.synchronize()
if (process.argv[2] === 'sequences') {
  await use(source, old, 'its own entities')
  same(await changes(source), [], 'nothing to change')
  const [order] = await source.getRepository(old.Order).find({ order: { id: 'DESC' }, take: 1 })
  ok(BigInt(order.id) > 10n ** 17n, 'a bigint key has snowflake IDs', order.id)
  const [customer] = await source.getRepository(old.Customer).find({ order: { id: 'DESC' }, take: 1 })
  ok(customer.id < 1000000, 'an integer key stays local', customer.id)
  await source.destroy()
  finish()
  process.exit()
}
await use(source, old, 'old')
await source.runMigrations()
// An ID is a string now, where the entity says a number: it is rounded.
const rounded: any = await source.getRepository(old.Customer).save({ name: 'rounded' })
const { id } = await source.getRepository(old.Customer).createQueryBuilder()
  .select('id').where("name = 'rounded'").getRawOne()
ok(typeof rounded.id !== 'string' && BigInt(id) > 10n ** 18n, 'an old entity has the ID as a number')
ok((await changes(source)).some((sql) => /DROP COLUMN "id"/.test(sql)), 'and synchronize would drop the column')
await source.destroy()

source = await connect(Object.values(converted))
await use(source, converted, 'converted')
same(await changes(source), [], 'nothing to change after the conversion')
await source.destroy()

source = await connect(Object.values(kept))
await source.synchronize()
await use(source, kept, 'with local sequences')
await source.query(`SELECT snowflake_convert_schema('public')`)
await use(source, kept, 'its own entities, with sequences that were converted')
same(await changes(source), [], 'nothing to change after their conversion')
const [visit] = await source.getRepository(kept.Order).find({ order: { id: 'DESC' }, take: 1 })
ok(BigInt(visit.id) > 10n ** 17n, 'new keys are snowflake IDs', visit.id)
await source.destroy()

source = await connect([Invoice])
await source.synchronize()
same(await changes(source), [], 'nothing to change in a new table')
const invoices = source.getRepository(Invoice)
const invoice = await invoices.save({ name: 'a' })
same(typeof invoice.id, 'string', 'an ID is a string')
same((await invoices.findOneBy({ id: invoice.id }))?.name, 'a', "and it is the row's")
const { identifiers } = await invoices.insert([{ name: 'b' }, { name: 'c' }])
same((await invoices.findOneBy({ id: identifiers[1].id }))?.name, 'c', 'insert() returns the IDs')
await source.destroy()
finish()
