# Use Tryton by its models: a company with its accounts, parties, products, sales with
# invoices and deliveries, attachments.  Prints what does not depend on the IDs.

import datetime
import sys
from decimal import Decimal

from trytond.config import config
config.update_etc(sys.argv[1])
from trytond.pool import Pool
from trytond.transaction import Transaction
Pool.start()
pool = Pool('app')
with Transaction().start('app', 0, readonly=True):
    pool.init()
from trytond.modules.account.tests import create_chart, get_fiscalyear
from trytond.modules.account_invoice.tests import set_invoice_sequences
from trytond.modules.company.tests import create_company, set_company

name = sys.argv[2]


def get(model, **values):
    return pool.get(model).search([(key, '=', value) for key, value in values.items()])


def show(label, *values):
    print(label + ':', *[str(value).replace(name, 'NAME') for value in values])


def use():
    company = create_company(name + ' company')
    with set_company(company):
        create_chart(company)
        year = set_invoice_sequences(get_fiscalyear(company))
        year.save()
        year.create_period([year])
        accounts = {kind: pool.get('account.account').search([('type.' + kind, '=', True), ('company', '=', company.id)])[0]
                    for kind in ('revenue', 'expense', 'receivable', 'payable')}

        # parties
        country, = pool.get('country.country').create([{'name': name, 'code': None}])
        category, = pool.get('party.category').create([{'name': name + ' customers'}])
        parties = pool.get('party.party').create([{
            'name': name + letter, 'categories': [('add', [category.id])],
            'addresses': [('create', [{'street': 'Street 1', 'city': name, 'country': country.id}])],
            'contact_mechanisms': [('create', [{'type': 'email', 'value': letter + '@example.org'}])],
            'identifiers': [('create', [{'type': None, 'code': '1' + letter}])],
            'account_receivable': accounts['receivable'].id, 'account_payable': accounts['payable'].id,
        } for letter in 'abc'])
        show('parties', [party.name for party in pool.get('party.party').search([('categories.name', '=', name + ' customers')], order=[('name', 'ASC')])])
        show('by mail', [party.name for party in pool.get('party.party').search([('contact_mechanisms.value', '=', 'b@example.org'), ('name', 'like', name + '%')])])
        show('receivable', parties[0].account_receivable == accounts['receivable'])
        relation = pool.get('party.party').search([('addresses.city', '=', name)])
        show('by city', len(relation))

        # notes and files, which name what they belong to in a text
        attachment, = pool.get('ir.attachment').create([{'name': name, 'resource': str(parties[0]), 'data': b'text'}])
        pool.get('ir.note').create([{'message': name, 'resource': str(parties[0])}])
        show('attachment', pool.get('ir.attachment')(attachment.id).resource.name)
        show('its party', [found.name for found in pool.get('ir.attachment').search([('resource.name', '=', name + 'a', 'party.party')])])
        show('notes', len(pool.get('ir.note').search([('resource', '=', str(parties[0]))])))

        # products
        unit, = pool.get('product.uom').search([('name', '=', 'Unit')])
        account_category, = pool.get('product.category').create([{
            'name': name, 'accounting': True, 'account_revenue': accounts['revenue'].id, 'account_expense': accounts['expense'].id}])
        template, = pool.get('product.template').create([{
            'name': name + ' product', 'type': 'goods', 'default_uom': unit.id, 'salable': True, 'sale_uom': unit.id, 'list_price': Decimal(10),
            'account_category': account_category.id, 'products': [('create', [{'code': name}])]}])
        product, = template.products
        show('price', product.list_price, product.account_revenue_used == accounts['revenue'])

        # a sale, with its invoice and its delivery
        Sale = pool.get('sale.sale')
        sale = Sale(party=parties[0], company=company, currency=company.currency)
        sale.on_change_party()
        sale.invoice_method = 'order'
        sale.shipment_method = 'order'
        line = pool.get('sale.line')(sale=sale, product=product, quantity=3)
        line.on_change_product()
        sale.lines = [line]
        sale.save()
        Sale.quote([sale])
        Sale.confirm([sale])
        Sale.process([sale])
        sale = Sale(sale.id)
        show('state', sale.state)
        show('invoices', [(str(invoice.total_amount), invoice.state) for invoice in sale.invoices])
        show('origin', sale.invoices[0].lines[0].origin == sale.lines[0], sale.invoices[0].origins == sale.rec_name)
        show('deliveries', [(shipment.state, len(shipment.outgoing_moves)) for shipment in sale.shipments])
        show('moves', len(sale.lines[0].moves), sale.lines[0].moves[0].origin == sale.lines[0])
        show('moves by sale', len(pool.get('stock.move').search([('origin.sale.party.name', '=', name + 'a', 'sale.line')])))
        show('lines by sale', len(pool.get('account.invoice.line').search([('origin.sale', '=', sale.id, 'sale.line')])))
        Invoice = pool.get('account.invoice')
        for invoice in sale.invoices:
            invoice.invoice_date = datetime.date.today()
            invoice.save()
        Invoice.post(sale.invoices)
        invoice = Invoice(sale.invoices[0].id)
        show('posted', invoice.state, invoice.number is not None, len(invoice.move.lines), invoice.move.origin == invoice)
        show('balance', pool.get('party.party')(parties[0].id).receivable)
        show('moves by invoice', len(pool.get('account.move').search([('origin.party.name', '=', name + 'a', 'account.invoice')])))
        copies = Sale.copy([sale])
        show('copy', copies[0].lines[0].product == product, copies[0].state)
        Sale.cancel(copies)
        Sale.delete(copies)

        # two parties become one
        Replace = pool.get('party.replace', type='wizard')
        session, _, _ = Replace.create()
        replace = Replace(session)
        replace.ask.source = parties[0]
        replace.ask.destination = parties[1]
        with Transaction().set_user(0, set_context=True):  # without the question whether they are the same
            replace.transition_replace()
        show('replaced', Sale(sale.id).party.name, pool.get('ir.attachment')(attachment.id).resource.name)
        pool.get('party.party').delete([parties[2]])
        show('left', len(pool.get('party.party').search([('name', 'like', name + '%'), ('categories', '=', category.id)])))


with Transaction().start('app', 1) as transaction:
    use()
    transaction.commit()
