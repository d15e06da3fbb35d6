# Users and groups, whose tables are Django's own: left by the conversion, or converted.

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proj.settings")
django.setup()

from django.contrib.auth.models import Group, Permission, User
from django.db import DatabaseError
from django.test import Client
from tap import fails, finish, ok, same

left = sys.argv[1] == "left"
user = User.objects.create_user(sys.argv[1], password="x")
same(user.pk < 1000000, left, "a key is small only if the table is left")
same(User.objects.filter(pk=user.pk).count(), 1 if left else 0, "a user is found by its key only if the table is left")


def login():
    return Client().login(username=sys.argv[1], password="x")


def give():
    group = Group.objects.create(name=sys.argv[1])
    group.permissions.set(Permission.objects.all()[:3])
    count = group.permissions.count()
    group.user_set.add(user)
    group.delete()
    return count


if left:
    ok(login(), "login")
    same(give(), 3, "permissions and members of a group")
else:
    error = fails(DatabaseError, login, "a login fails")
    ok("did not affect any rows" in str(error), "because it finds no row", error)
    fails(Exception, give, "so do permissions of a group")
finish()
