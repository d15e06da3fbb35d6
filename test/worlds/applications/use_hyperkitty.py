# Use HyperKitty as its pages do, and its archiver.  Prints what does not depend on the
# IDs, apart from those in links.

import email.message
import os
import re
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "hyperkitty_settings"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import django
django.setup()

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import setup_test_environment
from hyperkitty.lib.incoming import add_to_list
from hyperkitty.models import Email, MailingList, Tag, Tagging, Thread, ThreadCategory, Vote

setup_test_environment()
name = sys.argv[1]
address = name + "@lists.example.org"


def post(number, answers=None):
    message = email.message.EmailMessage()
    message["From"] = "Somebody <somebody@example.org>"
    message["Subject"] = ("Re: " if answers else "") + "a question"
    message["Message-ID"] = "<%s.%d@example.org>" % (name, number)
    message["Date"] = "Mon, 02 Feb 2015 13:0%d:00 +0300" % number
    if answers:
        message["In-Reply-To"] = "<%s.%d@example.org>" % (name, answers)
    message.set_content("message %d" % number)
    message.add_attachment(b"attached", maintype="text", subtype="x-test", filename="file")
    return add_to_list(address, message)


post(1)
post(2, 1)
post(3, 2)
post(4)
mailing_list = MailingList.objects.get(name=address)
thread = Email.objects.get(mailinglist=mailing_list, message_id=name + ".1@example.org").thread
print("threads:", Thread.objects.filter(mailinglist=mailing_list).count())
print("starting email:", thread.starting_email.message_id == name + ".1@example.org")
print("emails:", [(e.content.strip(), e.parent.content.strip() if e.parent else None, e.attachments.count())
                  for e in thread.emails.order_by("thread_order")])

user = User.objects.create_user(name, name + "@example.org", "secret")
Vote.objects.create(email=thread.starting_email, user=user, value=1)
print("votes:", thread.starting_email.get_votes())
tag = Tag.objects.create(name=name)
Tagging.objects.create(thread=thread, user=user, tag=tag)
print("tags:", [t.name == name for t in thread.tags.all()])
thread.category = ThreadCategory.objects.create(name=name, color="#ffffff")
thread.save()

attachment = thread.starting_email.attachments.get()
client = Client()
print("login:", client.login(username=name, password="secret"))
for page in ["/list/%s/" % address, "/list/%s/latest" % address, "/list/%s/2015/2/" % address,
             "/list/%s/thread/%s/" % (address, thread.thread_id),
             "/list/%s/message/%s/" % (address, thread.thread_id),
             "/list/%s/message/%s/attachment/%d/%s" % (address, thread.thread_id,
                                                       attachment.counter, attachment.name)]:
    answer = client.get(page, follow=True)
    print(re.sub("/[A-Z0-9]{32}/", "/ID/", page.replace(name, "NAME")), answer.status_code,
          b"message 3" in answer.content, b"a question" in answer.content)
thread.emails.get(thread_order=2).delete()
print("emails left:", thread.emails.count())

if "django.contrib.flatpages" in settings.INSTALLED_APPS:
    from django.contrib.flatpages.models import FlatPage
    from django.contrib.sites.models import Site
    FlatPage.objects.create(url="/%s/" % name, title=name).sites.add(Site.objects.get_current())
