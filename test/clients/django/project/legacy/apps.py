import os

from django.apps import AppConfig


class LegacyConfig(AppConfig):
    name = "legacy"
    # Before the application was changed, and after it.
    default_auto_field = (
        "django.db.models.AutoField" if "OLD" in os.environ else "shop.fields.SnowflakeAutoField"
    )
