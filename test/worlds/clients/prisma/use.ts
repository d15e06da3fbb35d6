import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from './generated/client'
import { finish, ok, same } from './tap.mjs'

const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL })
})
const invoice = await prisma.invoice.create({ data: { name: 'a', lines: { create: [{}, {}] } }, include: { lines: true } })
same(typeof invoice.id, 'bigint', 'an ID is a bigint')
ok(invoice.id > 10n ** 18n, 'and a snowflake ID', invoice.id)
ok(invoice.lines.length === 2 && invoice.lines.every((line) => line.invoiceId === invoice.id), 'nested create')
same((await prisma.invoice.findUnique({ where: { id: invoice.id } }))?.name, 'a', 'found by its ID')
const data = Array.from({ length: 1000 }, (_, i) => ({ name: `${i}` }))
const rows = await prisma.invoice.createManyAndReturn({ data })
const names = new Map((await prisma.invoice.findMany()).map((row) => [row.id, row.name]))
ok(rows.length === 1000 && rows.every((row) => names.get(row.id) === row.name), 'createManyAndReturn')
same((await prisma.invoice.findFirst({ orderBy: { id: 'desc' } }))?.id, [...names.keys()].sort().at(-1), 'in the order of IDs')
const [first, second] = await prisma.invoice.findMany({ orderBy: { id: 'desc' }, take: 2 })
const [next] = await prisma.invoice.findMany({ orderBy: { id: 'desc' }, take: 1, skip: 1, cursor: { id: first.id } })
same(next.id, second.id, 'a page from a cursor')
const line = await prisma.line.findFirst({ include: { invoice: true } })
same(line?.invoice.id, line?.invoiceId, 'include')
await prisma.$disconnect()
finish()
