# What a seller does in Odoo: customers, a product, an order that is confirmed, its invoice
# and payment, messages, files and users; two customers become one.  Read by "odoo shell".
# Prints what does not depend on the IDs.

import os

name = os.environ['USE_NAME']


def show(label, *values):
    print(label + ':', *[str(value).replace(name, 'NAME') for value in values])


customer = env['res.partner'].create({'name': f'{name} Ltd', 'is_company': True, 'email': f'{name}@example.org'})
contact, other = env['res.partner'].create([{'name': f'{name} Smith', 'parent_id': customer.id}, {'name': f'{name} Inc', 'is_company': True}])
category = env['res.partner.category'].create({'name': name, 'partner_ids': [(6, 0, [customer.id, contact.id])]})
terms = env['account.payment.term'].create({'name': name})
customer.property_payment_term_id = terms
show('customer', customer.child_ids.mapped('name'), category.partner_ids.mapped('name'))
show('by terms', env['res.partner'].search([('property_payment_term_id.name', '=', name), ('is_company', '=', True)]).name)
show('by category', env['res.partner'].search([('category_id', '=', category.id)], order='name').mapped('display_name'))

product = env['product.product'].create({'name': f'{name} wheel', 'list_price': 10, 'type': 'service', 'invoice_policy': 'order', 'taxes_id': False})
order = env['sale.order'].create({'partner_id': customer.id,
                                  'order_line': [(0, 0, {'product_id': product.id, 'product_uom_qty': n}) for n in (2, 3)]})
order.action_confirm()
show('order', order.state, order.amount_untaxed, order.order_line.mapped('product_id.name'))
show('found', env['sale.order'].search([('partner_id', 'child_of', customer.id)]) == order)
show('report', env['sale.report'].search([('partner_id', '=', customer.id)]).mapped('price_subtotal'))

invoice = order._create_invoices()
invoice.action_post()
env['account.payment.register'].with_context(active_model='account.move', active_ids=invoice.ids).create({})._create_payments()
show('invoice', invoice.state, invoice.amount_total, invoice.amount_residual, invoice.line_ids.sale_line_ids == order.order_line)

# What the payment adds to the customer is added after the commit.
env.cr.commit()
message = order.message_post(body=f'note of {name}')
env['ir.attachment'].create({'name': f'{name}.txt', 'raw': b'text', 'res_model': 'sale.order', 'res_id': order.id})
show('messages', [m.body for m in order.message_ids if name in m.body], message.author_id.name)
show('files', env['ir.attachment'].search([('res_model', '=', 'sale.order'), ('res_id', '=', order.id)]).mapped('name'))
order.activity_schedule(summary=name)
show('to do', env['mail.activity'].search([('res_model', '=', 'sale.order'), ('res_id', '=', order.id)]).summary)
user = env['res.users'].create({'name': f'{name} Clerk', 'login': name})
show('user', user.partner_id.name, user.has_group('base.group_user'))

copy = order.copy()
show('copy', copy.state, copy.order_line.mapped('product_id') == product)
copy.unlink()
env['base.partner.merge.automatic.wizard'].create({
    'partner_ids': [(6, 0, [customer.id, other.id])], 'dst_partner_id': other.id}).action_merge()
show('merged', order.partner_id.name, invoice.partner_id.name, other.property_payment_term_id.name)
env.cr.commit()
