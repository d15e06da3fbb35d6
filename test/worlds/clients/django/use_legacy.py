# What an application does with tables, before and after they are converted.

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proj.settings")
django.setup()

from legacy.models import Customer, Order, Tag
from tap import finish, ok, same

customer = Customer.objects.create(name="a")
same(Customer.objects.filter(pk=customer.pk).count(), 1, "found by its key")
several = Customer.objects.bulk_create([Customer(name=str(i)) for i in range(500)])
found = Customer.objects.in_bulk([c.pk for c in several])
ok(all(found[c.pk].name == c.name for c in several), "bulk_create gives each object its key")
order = Order.objects.create(customer=customer)
same(Order.objects.get(pk=order.pk).customer_id, customer.pk, "a foreign key")
customer.tags.add(Tag.objects.create(name="t"))
same(customer.tags.count(), 1, "many to many")
finish()
