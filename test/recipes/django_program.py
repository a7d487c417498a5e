import django

django.setup()
from django.test import Client

from as_text import as_text
from shop.models import Customer, Purchase
from text_form import from_text, to_text

ada, bob = (Customer.objects.create(name=name) for name in ("Ada", "Bob"))
pen, ink = (Purchase.objects.create(item=item) for item in ("pen", "ink"))
print("customer", ada.id, to_text(ada.id), Customer.objects.get(id=from_text(to_text(ada.id))).name)
print("purchase", pen.id, Purchase.objects.get(id=pen.id).item)
customers = Customer.objects.filter(id__in=[ada.id, bob.id]).order_by("name")
purchases = Purchase.objects.in_bulk([pen.id, ink.id])
ids = sorted(purchases, key=lambda id: purchases[id].item)
print("arrays", ",".join(str(c.id) for c in customers), ",".join(ids))

names = [f"bulk {n}" for n in range(1000)]
made = Customer.objects.bulk_create([Customer(name=name) for name in names])
bought = Purchase.objects.bulk_create([Purchase(item=name) for name in names])
print("bulk", len({c.id for c in made}), len({p.id for p in bought}))

text = Customer.objects.values_list(as_text, flat=True).get(id=ada.id)
print("json", text, Purchase.objects.values("id").get(id=pen.id)["id"])
print("number", ada.number)
ada.purchases.add(pen)
print("bought", ada.purchases.get().id)
assert Client().get(f"/purchase/{pen.id}").content == b"pen"
assert Client().get("/customer/malformed!").status_code == 404
print("malformed", Client().get("/purchase/42").status_code)
