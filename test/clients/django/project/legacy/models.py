import os

from django.db import models
from shop.fields import SnowflakeAutoField

BigAutoField = models.BigAutoField if "OLD" in os.environ else SnowflakeAutoField


class Tag(models.Model):
    name = models.CharField(max_length=20)


class Customer(models.Model):
    name = models.CharField(max_length=20)
    tags = models.ManyToManyField(Tag)


class Order(models.Model):
    id = BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, models.CASCADE)
