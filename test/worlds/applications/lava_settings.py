# Settings of LAVA for a test: those that it has in common, with files in a directory of the
# test's own.

import os

from lava_server.settings.common import *  # noqa: F401, F403
from lava_server.settings.common import update

SECRET_KEY = "secret"
ALLOWED_HOSTS = ["testserver"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "app"}}
MEDIA_ROOT = os.environ["LAVA_DIR"] + "/media/"
DEVICES_PATH = os.environ["LAVA_DIR"] + "/devices"
DJANGO_LOGFILE = os.environ["LAVA_DIR"] + "/django.log"
globals().update(update(globals()))
