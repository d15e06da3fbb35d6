# A migration that changes rows of tables that exist, and of new ones.

from django.db import migrations


def fill(apps, schema_editor):
    apps.get_model("shop", "Product").objects.update(origin="known")
    apps.get_model("shop", "Supplier").objects.bulk_create(
        apps.get_model("shop", "Supplier")(name="supplier %d" % i) for i in range(3))


class Migration(migrations.Migration):
    dependencies = [("shop", "0002_later")]
    operations = [migrations.RunPython(fill)]
