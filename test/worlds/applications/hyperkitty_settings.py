# Settings of HyperKitty for a test: those of its own tests, with PostgreSQL, and without
# an index for full text.

import os

from hyperkitty.tests.settings_test import *  # noqa: F401, F403

DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "app"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
INSTALLED_APPS = [*INSTALLED_APPS, *os.environ.get("MORE_APPLICATIONS", "").split()]  # noqa: F405
