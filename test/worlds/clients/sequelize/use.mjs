import { DataTypes, Sequelize } from 'sequelize'
import { defineInvoice } from './invoice.mjs'
import * as migration from './convert.mjs'
import { finish, ok, same } from './tap.mjs'

const sequelize = new Sequelize(process.env.DATABASE_URL, { logging: false })
const options = { timestamps: false, freezeTableName: true }

async function use(Model, what) {
  const row = await Model.create({ name: 'a' })
  same((await Model.findByPk(row.id)).name, 'a', `${what}: create has the key of the row`)
  const rows = await Model.bulkCreate(Array.from({ length: 1000 }, (_, i) => ({ name: `${i}` })), { returning: true })
  const found = new Map((await Model.findAll()).map((r) => [r.id, r.name]))
  ok(rows.every((r) => found.get(r.id) === r.name), `${what}: so has bulkCreate`)
  return row
}

const Old = sequelize.define('customer',
  { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, name: DataTypes.TEXT }, options)
await Old.sync()
const old = await use(Old, 'old')
if (process.argv[2] === 'sequences') {
  ok(old.id < 1000000, 'an INTEGER key stays local', old.id)
  const Big = sequelize.define('big',
    { id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true }, name: DataTypes.TEXT }, options)
  await Big.sync()
  ok(BigInt((await use(Big, 'BIGINT')).id) > 10n ** 18n, 'a BIGINT key has snowflake IDs')
  await sequelize.close()
  finish()
  process.exit()
}

await migration.up(sequelize.getQueryInterface())
const Customer = sequelize.define('customer', {
  id: { type: DataTypes.BIGINT, primaryKey: true, defaultValue: Sequelize.literal('snowflake_nextval()') },
  name: DataTypes.TEXT
}, options)
const row = await use(Customer, 'converted')
same(typeof row.id, 'string', 'an ID is a string')
ok(BigInt(row.id) > 10n ** 18n, 'and a snowflake ID')

const Invoice = defineInvoice(sequelize)
await Invoice.sync()
await use(Invoice, 'new')
const [{ column_default }] = await sequelize.query(
  "SELECT column_default FROM information_schema.columns WHERE table_name = 'invoices' AND column_name = 'id'",
  { type: 'SELECT' })
same(column_default, 'snowflake_nextval()', 'sync() makes the default')
await sequelize.close()
finish()
