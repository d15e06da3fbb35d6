# What an application does with new tables.

import json
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proj.settings")
django.setup()

from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from shop.models import Credit, Invoice, Line, OfDefault, Tag
from tap import finish, ok, same

with CaptureQueriesContext(connection) as queries:
    invoice = Invoice.objects.create(name="a")
same(len(queries), 1, "one statement for an INSERT")
ok(invoice.pk > 10**18, "with a snowflake ID", invoice.pk)
same(Invoice.objects.get(pk=invoice.pk).name, "a", "and it is the row's")
several = Invoice.objects.bulk_create([Invoice(name=str(i)) for i in range(1000)])
found = Invoice.objects.in_bulk([i.pk for i in several])
ok(all(found[i.pk].name == i.name for i in several), "bulk_create gives each object its key")
line = Line.objects.create(invoice=invoice, name="l")
same(line.invoice_id, invoice.pk, "a foreign key")
invoice.tags.add(Tag.objects.create(name="t"))
ok(Invoice.tags.through.objects.get().pk > 10**18, "a many-to-many table")
credit = Credit.objects.create(name="c", reason="r")
same(Invoice.objects.get(pk=credit.pk).name, "c", "a model that inherits")
same(Invoice.objects.get_or_create(name="a")[0].pk, invoice.pk, "get_or_create")
restored = next(serializers.deserialize("json", serializers.serialize("json", [invoice])))
same(restored.object.pk, invoice.pk, "serialized and back")

User.objects.create_superuser("admin", "a@example.com", "x")
client = Client()
client.force_login(User.objects.get(username="admin"))
form = {
    "line_set-TOTAL_FORMS": "1",
    "line_set-INITIAL_FORMS": "0",
    "line_set-0-name": "from the admin",
    "name": "by the admin",
}
same(client.post("/admin/shop/invoice/add/", form).status_code, 302, "the admin adds, with inlines")
same(
    Line.objects.get(name="from the admin").invoice.name,
    "by the admin",
    "and they belong together",
)
pk = Invoice.objects.get(name="by the admin").pk
same(client.get("/admin/shop/invoice/%d/change/" % pk).status_code, 200, "and finds it again")

# With db_default they do not.
form = {key.replace("line_set", "ofdefault_set"): value for key, value in form.items()}
try:
    client.post("/admin/shop/bydefault/add/", form)
except Exception as e:
    print("#", type(e).__name__, e)
same(OfDefault.objects.count(), 0, "inlines of a model with db_default are not stored")
finish()
