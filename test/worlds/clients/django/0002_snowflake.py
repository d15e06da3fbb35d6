from django.contrib.postgres.operations import CreateExtension
from django.db import migrations
from shop.fields import SnowflakeAutoField

key = SnowflakeAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")

class Migration(migrations.Migration):
    dependencies = [("legacy", "0001_initial")]
    operations = [
        CreateExtension("snowflake"),
        CreateExtension("snowflake_convert"),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL("""SELECT snowflake_convert_schema('public', generator => 'snowflake_nextval()',
                exclude => ARRAY(
                SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relname ~ '^(auth|django)_'))""")],
            state_operations=[migrations.AlterField(model, "id", key) for model in ("tag", "customer", "order")],
        ),
    ]
