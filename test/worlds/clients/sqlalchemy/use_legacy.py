# What an application does with tables, before and after they are converted.

import importlib
import os
import sys

from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session
from tap import finish, ok, same

models = importlib.import_module(sys.argv[1])
engine = create_engine(os.environ["URL"])
with Session(engine, expire_on_commit=False) as session:
    customer = models.Customer(name="a")
    order = models.Order(customer=customer)
    session.add(order)
    session.commit()
    session.expire_all()
    same(session.get(models.Order, order.id).customer_id, customer.id, "a foreign key")
    several = [models.Customer(name=str(i)) for i in range(500)]
    session.add_all(several)
    session.commit()
    found = dict(session.execute(select(models.Customer.id, models.Customer.name)).all())
    ok(all(found[c.id] == c.name for c in several), "each of many objects has its key")
    event = models.Event()
    session.add(event)
    session.commit()
    ok(session.get(models.Event, event.id), "a table with a sequence of its own")
finish()
