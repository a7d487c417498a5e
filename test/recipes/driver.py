# Uses the Python driver that the argument names. The driver's recipe makes the connection.

import asyncio
import importlib
import sys

from text_form import from_text, to_text

driver, recipe = (importlib.import_module(sys.argv[1] + end) for end in ("", "_recipe"))


def first(query, value):
    cursor = recipe.connection.cursor()
    cursor.execute(query, [value])
    (result,) = cursor.fetchone()
    recipe.connection.commit()
    return result


malformed = "42"
if sys.argv[1] == "asyncpg":
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(recipe.connect())
    malformed = "malformed!"  # the codec takes a number, and the server finds no row

    def first(query, value):
        return loop.run_until_complete(connection.fetchval(query.replace("%s", "$1"), value))


ada, bob = (first("INSERT INTO customer (name) VALUES (%s) RETURNING id", n) for n in ("Ada", "Bob"))
pen, ink = (first("INSERT INTO purchase (item) VALUES (%s) RETURNING id", i) for i in ("pen", "ink"))
name = first("SELECT name FROM customer WHERE id = %s", from_text(to_text(ada)))
print("customer", ada, to_text(ada), name)
print("purchase", pen, first("SELECT item FROM purchase WHERE id = %s", pen))
query = "SELECT array_agg(id ORDER BY {}) FROM {} WHERE id = ANY (%s{})"
customers = first(query.format("name", "customer", ""), [ada, bob])
purchases = first(query.format("item", "purchase", "::randflake[]"), [pen, ink])
print("arrays", ",".join(map(str, customers)), ",".join(purchases))
try:
    first("SELECT item FROM purchase WHERE id = %s", malformed)
except driver.DataError:
    print("malformed", 404)
