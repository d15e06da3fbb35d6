# Use LAVA by its XML-RPC and REST interfaces, its pages and its scheduler.  Prints what
# does not depend on the IDs.

import base64
import sys
import xmlrpc.client

import django
django.setup()

import yaml
from django.contrib.auth.models import Group, User
from django.test import Client
from lava_results_app.dbutils import map_scanned_results
from lava_results_app.models import TestCase, TestSuite
from lava_scheduler_app.models import Device, TestJob, Worker
from lava_scheduler_app.scheduler import schedule
from linaro_django_xmlrpc.models import AuthToken

name = sys.argv[1]
user = User.objects.create_superuser(name, name + "@example.org", "secret")
token = AuthToken.objects.create(user=user)
client = Client()


def call(method, *arguments):
    answer = client.post(
        "/RPC2", xmlrpc.client.dumps(arguments, method, allow_none=True), content_type="text/xml",
        HTTP_AUTHORIZATION="Basic " + base64.b64encode(("%s:%s" % (name, token.secret)).encode()).decode())
    (value,), _ = xmlrpc.client.loads(answer.content)
    print(method, answer.status_code)
    return value


def shows(path, *texts):
    answer = client.get(path, follow=True)
    shown = "/".join("ID" if part.isdigit() else part for part in path.split("?")[0].replace(name, "NAME").split("/"))
    print("GET", shown, answer.status_code, *["yes" if text in answer.content.decode() else "no" for text in texts])


# devices
call("scheduler.workers.add", name, "a worker")
call("scheduler.device_types.add", name, "a type", True, False, 24, "hours")
call("scheduler.aliases.add", name + "-alias", name)
call("scheduler.devices.add", name + "-device", name, name)
call("scheduler.tags.add", name, "a tag")
call("scheduler.devices.tags.add", name + "-device", name)
group = Group.objects.create(name=name)
group.user_set.add(user)
call("scheduler.devices.perms_add", name + "-device", name, "submit_to_device")
print("dictionary:", call("scheduler.devices.set_dictionary", name + "-device", "{% extends 'qemu.jinja2' %}\n{% set arch = 'amd64' %}\n"))
print("devices:", [device["hostname"] == name + "-device" for device in call("scheduler.devices.list") if device["type"] == name])

# jobs
definition = yaml.safe_dump({
    "job_name": name, "device_type": name, "visibility": "public", "priority": "medium", "tags": [name],
    "timeouts": {"job": {"minutes": 5}, "action": {"minutes": 1}},
    "actions": [{"command": {"name": "something"}}], "metadata": {"color": "red"},
    "notify": {"criteria": {"status": "finished"}, "recipients": [{"to": {"method": "email", "user": name}}]}})
jobs = [call("scheduler.jobs.submit", definition) for number in range(3)]
print("jobs:", [type(job).__name__ for job in jobs], len(set(jobs)))
print("queued:", [job["id"] in jobs for job in call("scheduler.jobs.queue", [name])])
Device.objects.filter(hostname=name + "-device").update(health=Device.HEALTH_GOOD)
worker = Worker.objects.get(hostname=name)
fields = worker.go_state_online()
worker.save(update_fields=fields)
schedule(Worker.objects.filter(hostname=name))
scheduled = TestJob.objects.get(actual_device__hostname=name + "-device")
print("scheduled:", scheduled.id in jobs, scheduled.get_state_display())
scheduled.save(update_fields=scheduled.go_state_running())
for case in "boot", "login":
    map_scanned_results({"definition": "0_smoke", "case": case, "result": "pass", "measurement": 1.5, "units": "s"},
                        scheduled, 1, 2, None).save()
shows("/scheduler/device/%s-device" % name, name, str(scheduled.id))
fields = scheduled.go_state_finished(TestJob.HEALTH_COMPLETE)
scheduled.save(update_fields=fields)
shown = call("scheduler.jobs.show", scheduled.id)
print("shown:", shown["id"] == scheduled.id, shown["state"], shown["health"], shown["tags"] == [name])
print("results:", [(row["name"], row["result"]) for row in yaml.safe_load(call("results.get_testjob_results_yaml", scheduled.id))])
others = [job for job in jobs if job != scheduled.id]
call("scheduler.jobs.cancel", others[0])
again = call("scheduler.jobs.resubmit", others[0])
print("resubmitted:", again not in jobs, TestJob.objects.get(id=again).description == name)
print("listed:", sum(job["submitter"] == name for job in call("scheduler.jobs.list")))
call("scheduler.workers.update", name, "changed")

# pages, and the REST interface
print("login:", client.login(username=name, password="secret"))
for path in ["/scheduler/job/%d" % scheduled.id, "/scheduler/job/%d/definition" % scheduled.id, "/results/%d" % scheduled.id,
             "/results/%d/0_smoke" % scheduled.id, "/scheduler/alljobs", "/scheduler/device/%s-device" % name,
             "/scheduler/worker/%s" % name, "/admin/lava_scheduler_app/testjob/", "/scheduler/myjobs"]:
    shows(path, name)
answer = client.get("/api/v0.2/jobs/%d/" % again, HTTP_AUTHORIZATION="Token " + token.secret)
print("REST:", answer.status_code, answer.json()["id"] == again)
answer = client.post("/api/v0.2/jobs/", {"definition": definition}, HTTP_AUTHORIZATION="Token " + token.secret)
print("REST:", answer.status_code, TestJob.objects.filter(id__in=answer.json()["job_ids"], submitter=user).count())
client.post("/scheduler/job/%d/favorite" % again)
shows("/scheduler/favorite-jobs", name)
print("suites:", TestSuite.objects.filter(job=scheduled).count(), TestCase.objects.filter(suite__job=scheduled).count())
