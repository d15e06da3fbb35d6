# Use Keystone by its web interface.  Prints what does not depend on the IDs.

import sys

from keystone.server.flask import core
from werkzeug.test import Client
from werkzeug.wrappers import Response

conf, name = sys.argv[1:]
sys.argv[1:] = []
client = Client(core.initialize_application(name="public", config_files=[conf]), Response)
token = None


def call(method, path, **body):
    headers = {"X-Auth-Token": token} if token else {}
    return client.open("/v3" + path, method=method, json=body or None, headers=headers)


def log_in(user, password, **scope):
    answer = call("POST", "/auth/tokens", auth={
        "identity": {"methods": ["password"], "password": {
            "user": {"name": user, "password": password, "domain": {"id": "default"}}}},
        **({"scope": scope} if scope else {})})
    return answer.status_code, answer.headers.get("X-Subject-Token")


status, token = log_in("admin", "secret", project={"name": "admin", "domain": {"id": "default"}})
print("login:", status)


def create(path, kind, **body):
    answer = call("POST", path, **{kind: body})
    print(kind, answer.status_code)
    return answer.json[kind]["id"]


domain = create("/domains", "domain", name=name)
project = create("/projects", "project", name=name, domain_id="default", tags=["one", "two"])
user = create("/users", "user", name=name, password="secret", domain_id="default")
group = create("/groups", "group", name=name, domain_id="default")
role = create("/roles", "role", name=name)
implied = create("/roles", "role", name=name + "-implied")
service = create("/services", "service", type="compute", name=name)
region = create("/regions", "region", description=name)
endpoint = create("/endpoints", "endpoint", interface="public", url="http://localhost", service_id=service, region_id=region)
create("/credentials", "credential", type="ec2", blob='{"access": "%s", "secret": "x"}' % name, user_id=user, project_id=project)
for method, path in [
        ("PUT", "/groups/%s/users/%s" % (group, user)),
        ("PUT", "/projects/%s/users/%s/roles/%s" % (project, user, role)),
        ("PUT", "/projects/%s/groups/%s/roles/%s" % (project, group, implied)),
        ("PUT", "/roles/%s/implies/%s" % (role, implied)),
        ("GET", "/projects/%s" % project), ("GET", "/projects?tags=one"),
        ("GET", "/users/%s/groups" % user), ("GET", "/role_assignments?effective"),
        ("GET", "/endpoints/%s" % endpoint)]:
    print(method, path.split("/")[1].split("?")[0], call(method, path).status_code)
admin = token
status, theirs = log_in(name, "secret", project={"id": project})
print("login of the user:", status)
print("change of the password:", call("POST", "/users/%s/password" % user,
      user={"original_password": "secret", "password": "other"}).status_code)
print("old password:", log_in(name, "secret")[0], "new password:", log_in(name, "other")[0])
client.open("/v3/auth/tokens", method="DELETE", headers={"X-Auth-Token": admin, "X-Subject-Token": theirs})
print("revoked:", client.open("/v3/auth/tokens", headers={"X-Auth-Token": admin, "X-Subject-Token": theirs}).status_code)
for path in ["/endpoints/" + endpoint, "/services/" + service, "/users/" + user, "/projects/" + project, "/groups/" + group]:
    print("DELETE", path.split("/")[1], call("DELETE", path).status_code)
