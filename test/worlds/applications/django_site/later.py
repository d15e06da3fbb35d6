# What a later version of the application adds to its models.


class Supplier(models.Model):
    id = models.AutoField(primary_key=True)
    name = models.CharField(max_length=50)
    products = models.ManyToManyField(Product)


class Delivery(models.Model):
    id = models.BigAutoField(primary_key=True)
    supplier = models.ForeignKey(Supplier, on_delete=models.CASCADE)
    line = models.ForeignKey(Line, null=True, on_delete=models.CASCADE)


Product.add_to_class("origin", models.CharField(max_length=20, default="", blank=True))
