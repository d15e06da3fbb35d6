from django.db import models


class Tag(models.Model):
    name = models.CharField(max_length=20)


class Invoice(models.Model):
    name = models.CharField(max_length=20)
    tags = models.ManyToManyField(Tag, blank=True)


class Line(models.Model):
    invoice = models.ForeignKey(Invoice, models.CASCADE)
    name = models.CharField(max_length=20)


class Credit(Invoice):
    reason = models.CharField(max_length=20)


class Nextval(models.Func):
    function = "snowflake_nextval"
    output_field = models.BigIntegerField()


class ByDefault(models.Model):
    """What the page warns of."""

    id = models.BigIntegerField(primary_key=True, db_default=Nextval(), editable=False)
    name = models.CharField(max_length=20)


class OfDefault(models.Model):
    parent = models.ForeignKey(ByDefault, models.CASCADE)
    name = models.CharField(max_length=20)
