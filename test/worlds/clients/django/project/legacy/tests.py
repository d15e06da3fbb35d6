from django.test import TestCase, TransactionTestCase

from .models import Customer


class InTransaction(TestCase):
    def test_id(self):
        self.assertGreater(Customer.objects.create(name="x").pk, 10**18)


class WithTruncate(TransactionTestCase):
    reset_sequences = True

    def test_id(self):
        self.assertGreater(Customer.objects.create(name="x").pk, 10**18)

    def test_again(self):
        self.assertGreater(Customer.objects.create(name="x").pk, 10**18)
