from sqlalchemy import exc, func, select, text
from sqlalchemy.orm import Session

from sqlalchemy_recipe import Customer, Purchase, customers, engine, having, purchases
from text_form import from_text, to_text

with Session(engine) as session:
    ada, bob, pen, ink = Customer(name="Ada"), Customer(name="Bob"), Purchase(item="pen"), Purchase(item="ink")
    session.add_all([ada, bob, pen, ink])
    session.commit()
    print("customer", ada.id, to_text(ada.id), session.get(Customer, from_text(to_text(ada.id))).name)
    print("purchase", pen.id, session.get(Purchase, pen.id).item)
    lists = (
        select(Customer).where(Customer.id.in_([ada.id, bob.id])).order_by(Customer.name),
        having([pen.id, ink.id]).order_by(Purchase.item),
    )
    print("arrays", *(",".join(str(row.id) for row in session.scalars(rows)) for rows in lists))

    names = [f"bulk {n}" for n in range(1000)]
    made = customers(session, names)
    purchases(session, names)
    session.commit()
    print("bulk", len(made), session.query(Purchase).filter(Purchase.item.in_(names)).count())

    json = session.scalar(select(func.to_json(text("purchase"))).where(Purchase.id == pen.id))
    print("json", to_text(ada.id), json["id"])
    print("number", ada.number)
    ada.purchases.append(pen)
    session.commit()
    print("bought", *[p.id for p in ada.purchases])
    try:
        session.get(Purchase, "42")
    except exc.DataError:
        print("malformed", 404)
