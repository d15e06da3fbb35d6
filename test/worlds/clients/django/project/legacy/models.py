import os

from django.db import models


class Tag(models.Model):
    name = models.CharField(max_length=20)


class Customer(models.Model):
    name = models.CharField(max_length=20)
    tags = models.ManyToManyField(Tag)


class Order(models.Model):
    if "OLD" in os.environ:
        id = models.BigAutoField(primary_key=True)
    customer = models.ForeignKey(Customer, models.CASCADE)
