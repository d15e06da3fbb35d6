import os

from django.apps import AppConfig


class LegacyConfig(AppConfig):
    name = "legacy"
    # Before the application was changed, and after it; or with snowflake sequences.
    default_auto_field = os.environ.get(
        "AUTO_FIELD",
        "django.db.models.AutoField" if "OLD" in os.environ else "shop.fields.SnowflakeAutoField",
    )
