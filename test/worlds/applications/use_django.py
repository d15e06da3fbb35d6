# Use a Django site by its admin, by its models and by its commands.  Prints what does not
# depend on the IDs.

import json
import os
import sys
import tempfile

import django
django.setup()

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.flatpages.models import FlatPage
from django.contrib.sessions.models import Session
from django.contrib.sites.models import Site
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment
from shop import models

setup_test_environment()
name = sys.argv[1]
admin = Client()
User.objects.create_superuser(name + "-admin", password="secret")


def shown(path):
    return "/".join("ID" if part.isdigit() else part for part in path.split("?")[0].replace(name, "NAME").split("/"))


def post(client, path, **values):
    answer = client.post("/admin/" + path, values)
    print("POST", shown(path), answer.status_code)
    if answer.status_code != 302:
        print(answer.content.decode())


def shows(client, path, *texts):
    answer = client.get(path, follow=True)
    print("GET", shown(path), answer.status_code, *["yes" if text in answer.content.decode() else "no" for text in texts])


# people, groups, permissions, sessions
post(admin, "login/?next=/admin/", username=name + "-admin", password="secret")
group_permissions = Permission.objects.filter(codename__in=["view_order", "add_order", "change_order", "view_user"])
post(admin, "auth/group/add/", name=name, permissions=[p.pk for p in group_permissions])
group = Group.objects.get(name=name)
post(admin, "auth/user/add/", username=name, password1="correct horse", password2="correct horse", usable_password="true")
user = User.objects.get(username=name)
post(admin, "auth/user/%d/change/" % user.pk, username=name, is_active="on", is_staff="on", groups=[group.pk],
     user_permissions=[Permission.objects.get(codename="delete_order").pk],
     date_joined_0="2020-01-01", date_joined_1="00:00:00")
user = User.objects.get(username=name)
print("permissions:", sorted(user.get_all_permissions()))
staff = Client()
post(staff, "login/?next=/admin/", username=name, password="correct horse")
shows(staff, "/admin/", "Log out", name, "Orders", "Products")
shows(staff, "/admin/auth/user/", name + "-admin")
session = Session.objects.get(session_key=staff.session.session_key)
print("session:", session.get_decoded()["_auth_user_id"] == str(user.pk))

# the application's own tables, by the admin and by its models
post(admin, "shop/category/add/", name=name)
category = models.Category.objects.get(name=name)
post(admin, "shop/category/add/", name=name + " child", parent=category.pk)
child = models.Category.objects.get(name=name + " child")
for product in "a", "b":
    post(admin, "shop/product/add/", name=name + product, categories=[category.pk, child.pk])
products = list(models.Product.objects.filter(name__startswith=name).order_by("name"))
post(staff, "shop/order/add/", name=name, customer=user.pk, **{"lines-TOTAL_FORMS": 0, "lines-INITIAL_FORMS": 0})
order = models.Order.objects.get(name=name)
models.Line.objects.bulk_create([models.Line(order=order, product=p, quantity=3) for p in products])
lines = list(order.lines.order_by("product__name"))
post(admin, "shop/order/%d/change/" % order.pk, name=name + " changed", customer=user.pk, **{
    "lines-TOTAL_FORMS": 3, "lines-INITIAL_FORMS": 2,
    "lines-0-id": lines[0].pk, "lines-0-order": order.pk, "lines-0-product": products[0].pk, "lines-0-quantity": 5,
    "lines-1-id": lines[1].pk, "lines-1-order": order.pk, "lines-1-product": products[1].pk, "lines-1-quantity": 1,
    "lines-1-DELETE": "on", "lines-2-order": order.pk, "lines-2-product": products[1].pk, "lines-2-quantity": 7})
order.refresh_from_db()
print("lines:", [(line.product.name.removeprefix(name), line.quantity) for line in order.lines.order_by("product__name")])
shows(staff, "/admin/shop/order/?q=" + name, name + " changed")
shows(staff, "/admin/shop/order/%d/change/" % order.pk, name + " changed")
shows(admin, "/admin/shop/order/%d/history/" % order.pk, "Changed Name", name + "-admin")
note = models.Note.objects.create(about=order, text="a note")
print("note:", models.Note.objects.get(pk=note.pk).about == order)
print("found:", models.Product.objects.filter(categories=child, line__order__customer__groups=group).distinct().count())
print("history:", LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(order), object_id=str(order.pk)).count())

# pages, and rows that are loaded with their keys, after which Django sets sequences
page = FlatPage.objects.create(url="/%s/" % name, title=name, content="the page")
page.sites.add(Site.objects.get_current())
shows(admin, "/%s/" % name, "the page")
post(admin, "redirects/redirect/add/", site=1, old_path="/old-%s/" % name, new_path="/%s/" % name)
shows(admin, "/old-%s/" % name, "the page")
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "dump.json")
    call_command("dumpdata", "shop.product", "shop.note", output=file, verbosity=0)
    rows = [row for row in json.load(open(file)) if row["pk"] in [products[0].pk, products[1].pk]
            or row["model"] == "shop.note" and row["pk"] == note.pk]
    number = note.pk
    note.delete()
    json.dump(rows, open(file, "w"))
    call_command("loaddata", file, verbosity=0)
print("loaded:", models.Note.objects.get(pk=number).about == order)
print("created:", models.Product.objects.create(name=name + "c").pk not in [product.pk for product in products])

# a later version
if hasattr(models, "Supplier"):
    supplier = models.Supplier.objects.create(name=name)
    supplier.products.set(products)
    models.Delivery.objects.create(supplier=supplier, line=order.lines.first())
    assert models.Delivery.objects.filter(supplier__products=products[0], line__order=order).count() == 1

# an end
post(admin, "shop/order/%d/delete/" % order.pk, post="yes")
print("left:", models.Line.objects.filter(product__in=products).count())
print("password:", staff.login(username=name, password="wrong"), staff.login(username=name, password="correct horse"))
admin.post("/admin/logout/")
print("logged out:", admin.get("/admin/").status_code)
