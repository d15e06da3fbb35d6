# Write to HyperKitty as its archiver and its pages do, and compare what it has with what
# was written:
#
#	load_hyperkitty.py work CLIENT LEDGER STOP [COUNT]	until the file STOP exists, or so often
#	load_hyperkitty.py check LEDGER...
#
# A ledger has a line before each change and one after it, in a file.  What was interrupted
# may be there or not, and is left alone from then on.

import datetime
import email.message
import email.utils
import json
import os
import random
import re
import sys
import time

os.environ["DJANGO_SETTINGS_MODULE"] = "hyperkitty_settings"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import django
django.setup()

from django.contrib.auth.models import Group, User
from django.db import Error, connections
from django.test import Client
from django.test.utils import setup_test_environment
from hyperkitty.lib.incoming import add_to_list
from hyperkitty.lib.utils import get_message_id_hash
from hyperkitty.models import Email, Favorite, LastView, MailingList, Tagging, Thread

setup_test_environment()


class Archive:
    """What the list of a client has, by its ledger."""

    def __init__(self, client):
        self.client = client
        self.address = "client%s@lists.example.org" % client
        self.user = "reader%s" % client
        self.messages = {}
        self.threads = {}
        self.users = {}
        self.uncertain = set()
        self.number = 0

    def read(self, file):
        begun = None
        for line in open(file):
            entry = json.loads(line)
            if "begin" in entry:
                begun = entry
                self.number = max(self.number, entry["number"])
            elif entry["done"]:
                self.apply(*begun["begin"])
                begun = None
            else:
                self.doubt(*begun["begin"])
                begun = None
        if begun:
            self.doubt(*begun["begin"])
        return self

    def apply(self, what, token, value=None):
        if what == "post":
            self.messages[token] = {"thread": token, "parent": None, "vote": 0}
            self.threads[token] = {"tags": [], "favorite": False, "category": None, "viewed": False}
        elif what == "reply":
            self.messages[token] = {"thread": self.messages[value]["thread"], "parent": value, "vote": 0}
        elif what == "vote":
            self.messages[token]["vote"] = value
        elif what == "tag":
            self.threads[token]["tags"].append(value)
        elif what == "untag":
            self.threads[token]["tags"].remove(value)
        elif what in ("favorite", "category"):
            self.threads[token][what] = value
        elif what == "view":
            self.threads[token]["viewed"] = True
        elif what == "delete":
            if self.messages.pop(token)["parent"] is None:
                del self.threads[token]
        elif what == "delete thread":
            self.messages = {t: m for t, m in self.messages.items() if m["thread"] != token}
            del self.threads[token]
        elif what == "reattach":
            for message in self.messages.values():
                if message["thread"] == token:
                    message["thread"] = value
            self.messages[token]["parent"] = value
            del self.threads[token]
        elif what == "user":
            self.users[token] = value
        elif what == "delete user":
            del self.users[token]

    def doubt(self, what, token, value=None):
        """What was interrupted"""
        self.uncertain.add(token)
        for other in token, value:
            if other in self.messages:
                self.uncertain.add(self.messages[other]["thread"])

    def choose(self):
        """Something to do"""
        known = [t for t in self.threads if t not in self.uncertain]
        messages = [t for t, m in self.messages.items() if m["thread"] in known]
        token = "%s.%d" % (self.client, self.number)
        what = random.choices(
            ["post", "reply", "vote", "tag", "untag", "favorite", "category", "view", "delete", "delete thread",
             "reattach", "user", "delete user"],
            [25, 25, 12, 6, 3, 6, 5, 5, 5, 1, 4, 5, 3])[0]
        if what == "user":
            return what, "user" + token, "group%d" % random.randrange(3)
        if what == "delete user":
            users = [u for u in self.users if u not in self.uncertain]
            return (what, random.choice(users)) if users else None
        if what == "post" or not messages:
            return "post", token
        message = random.choice(messages[-60:])
        thread = self.messages[message]["thread"]
        if what == "reply":
            return what, token, message
        if what == "vote":
            return what, message, random.choice([v for v in (-1, 0, 1) if v != self.messages[message]["vote"]])
        if what == "tag":
            tag = "tag %s %d" % (self.client, random.randrange(5))
            return (what, thread, tag) if tag not in self.threads[thread]["tags"] else None
        if what == "untag":
            return (what, thread, self.threads[thread]["tags"][0]) if self.threads[thread]["tags"] else None
        if what == "favorite":
            return what, thread, not self.threads[thread]["favorite"]
        if what == "category":
            return what, thread, random.choice(["one", "two"])
        if what == "delete":
            return (what, message) if not any(m["parent"] == message for m in self.messages.values()) else None
        if what == "reattach":
            other = self.messages[random.choice(messages)]["thread"]
            return (what, thread, other) if number_of(other) < number_of(thread) else None
        return what, thread


def number_of(token):
    return int(token.split(".")[1])


def text_of(token):
    return "This is message %s, with more text: %s" % (token, token * 20)


def address_of(token):
    return "sender%d.%s@example.org" % (number_of(token) % 7, token.split(".")[0])


class Program:
    """Does what was chosen, by the program."""

    def __init__(self, archive):
        self.archive = archive
        self.pages = Client()

    def login(self):
        if not User.objects.filter(username=self.archive.user).exists():
            User.objects.create_superuser(self.archive.user, "", "secret")
        assert self.pages.login(username=self.archive.user, password="secret")

    def page(self, kind, token, path, **values):
        url = "/list/%s/%s/%s/%s" % (self.archive.address, kind, get_message_id_hash(token + "@example.org"), path)
        answer = self.pages.post(url, values) if values else self.pages.get(url)
        # Those two pages show an error as text.
        expected = 302 if path in ("delete", "reattach") else 200
        assert answer.status_code == expected, "%s %d: %s" % (url, answer.status_code, " ".join(
            re.findall("Could not delete message.*", answer.content.decode())))
        return answer

    def do(self, what, token, value=None):
        if what in ("post", "reply"):
            self.post(token, value)
        elif what == "vote":
            self.page("message", token, "vote", vote=value)
        elif what in ("tag", "untag"):
            self.page("thread", token, "tags", tag=value, action="add" if what == "tag" else "rm")
        elif what == "favorite":
            self.page("thread", token, "favorite", action="add" if value else "rm")
        elif what == "category":
            self.page("thread", token, "category", category=value)
        elif what == "view":
            assert text_of(token) in self.page("message", token, "").content.decode()
            self.page("thread", token, "")
        elif what == "delete":
            self.page("message", token, "delete", email=self.ids(message_id=token + "@example.org"))
        elif what == "delete thread":
            self.page("thread", token, "delete", email=self.ids(thread__starting_email__message_id=token + "@example.org"))
        elif what == "reattach":
            self.page("thread", token, "reattach", parent=get_message_id_hash(value + "@example.org"))
        elif what == "user":
            user = User.objects.create_user(token, token + "@example.org", "secret")
            user.groups.add(Group.objects.get(name=value))
        elif what == "delete user":
            User.objects.get(username=token).delete()

    def ids(self, **conditions):
        return list(Email.objects.filter(mailinglist__name=self.archive.address, **conditions).values_list("pk", flat=True))

    def post(self, token, answers):
        message = email.message.EmailMessage()
        message["From"] = "Somebody <%s>" % address_of(token)
        message["Subject"] = "subject " + token
        message["Message-ID"] = "<%s@example.org>" % token
        message["Date"] = email.utils.format_datetime(
            datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(minutes=number_of(token)))
        if answers:
            message["In-Reply-To"] = "<%s@example.org>" % answers
        message.set_content(text_of(token))
        message.add_attachment(("attached to " + token).encode(), maintype="text", subtype="x-test", filename="file")
        add_to_list(self.archive.address, message)


def recover(archive, stop):
    """Wait for the server, so that an interruption is one change only.  Then do for the list
    what HyperKitty's hourly job thread_starting_email does: a message is stored in three
    transactions, and until all are done, the pages of the threads beside its own fail."""
    while not os.path.exists(stop):
        try:
            for thread in Thread.objects.filter(mailinglist__name=archive.address, starting_email=None):
                thread.save() if thread.emails.exists() else thread.delete()
            return
        except Error:
            connections.close_all()
            time.sleep(0.2)


def work(client, file, stop, count=None):
    random.seed("%s %s" % (client, time.time()))
    archive = Archive(client)
    if os.path.exists(file):
        archive.read(file)
    ledger = open(file, "a", buffering=1)
    program = Program(archive)
    for name in "one", "two":
        from hyperkitty.models import ThreadCategory
        ThreadCategory.objects.get_or_create(name=name, defaults={"color": "#000000"})
    for number in range(3):
        Group.objects.get_or_create(name="group%d" % number)
    recover(archive, stop)
    program.login()
    while not os.path.exists(stop) and (count is None or archive.number < int(count)):
        archive.number += 1
        chosen = archive.choose()
        if chosen is None:
            continue
        print(json.dumps({"number": archive.number, "begin": chosen}), file=ledger)
        begun = time.time()
        error = None
        try:
            program.do(*chosen)
            archive.apply(*chosen)
        except Exception as e:
            archive.doubt(*chosen)
            error = "%s: %s" % (type(e).__name__, e)
        print(json.dumps({"done": error is None, "error": error, "at": begun, "seconds": time.time() - begun}), file=ledger)
        # as at the end of each request
        connections.close_all()
        time.sleep(0.03)
        if error:
            recover(archive, stop)


wrong = []
checked = 0


def compare(label, found, expected):
    global checked
    checked += 1
    if found != expected:
        wrong.append("%s: %s instead of %s" % (label, found, expected))


def check_archive(archive):
    emails = {e.message_id.split("@")[0]: e for e in Email.objects.filter(mailinglist__name=archive.address)
              .select_related("sender", "parent", "thread__starting_email", "thread__category")}
    uncertain_threads = set()
    for token, message in archive.messages.items():
        if message["thread"] in archive.uncertain or token in archive.uncertain:
            uncertain_threads.add(message["thread"])
            continue
        found = emails.get(token)
        if found is None:
            compare("message", None, token)
            continue
        compare("message " + token, (found.subject, found.content.strip(), found.sender.address),
                ("subject " + token, text_of(token), address_of(token)))
        compare("parent of " + token, found.parent and found.parent.message_id.split("@")[0], message["parent"])
        compare("thread of " + token, found.thread.starting_email and found.thread.starting_email.message_id.split("@")[0],
                message["thread"])
        compare("attachments of " + token, [bytes(a.get_content()).decode() for a in found.attachments.all()],
                ["attached to " + token])
        compare("vote on " + token, [(v.user.username, v.value) for v in found.votes.all()],
                [(archive.user, message["vote"])] if message["vote"] else [])
    for token in emails:
        if token not in archive.messages and token not in archive.uncertain \
                and emails[token].thread.starting_email_id is not None \
                and emails[token].thread.starting_email.message_id.split("@")[0] not in archive.uncertain:
            compare("message that was deleted", token, None)
    for token, thread in archive.threads.items():
        if token in archive.uncertain or token not in emails:
            continue
        found = emails[token].thread
        compare("tags of " + token, sorted(t.tag.name for t in Tagging.objects.filter(thread=found)), sorted(thread["tags"]))
        compare("favorite " + token, Favorite.objects.filter(thread=found, user__username=archive.user).count(), int(thread["favorite"]))
        compare("category of " + token, found.category and found.category.name, thread["category"])
        if thread["viewed"]:
            compare("view of " + token, LastView.objects.filter(thread=found, user__username=archive.user).exists(), True)
    users = {u.username: [g.name for g in u.groups.all()]
             for u in User.objects.filter(username__startswith="user%s." % archive.client).prefetch_related("groups")}
    for user, group in archive.users.items():
        if user not in archive.uncertain:
            compare("user " + user, users.get(user), [group])
    for user in users:
        if user not in archive.users and user not in archive.uncertain:
            compare("user that was deleted", user, None)
    compare("reader", User.objects.filter(username=archive.user).count(), 1)


if sys.argv[1] == "work":
    work(*sys.argv[2:])
else:
    for file in sys.argv[2:]:
        check_archive(Archive(os.path.basename(file).split(".")[-1]).read(file))
    lists = [m.name for m in MailingList.objects.all()]
    compare("lists", len(lists), len(set(lists)))
    for line in wrong[:50]:
        print("wrong:", line)
    print("checked:", checked)
