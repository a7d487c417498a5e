from os import environ

from PyQt5.QtSql import QSqlDatabase, QSqlQuery

from qt_recipe import insert
from text_form import from_text, to_text

database = QSqlDatabase.addDatabase("QPSQL")
database.setHostName(environ["PGHOST"])
database.setPort(int(environ["PGPORT"]))
database.setDatabaseName(environ["PGDATABASE"])
database.setUserName(environ["PGUSER"])
assert database.open(), database.lastError().text()


def rows(statement, *values):
    query = QSqlQuery()
    query.prepare(statement)
    for value in values:
        query.addBindValue(value)
    good = query.exec_()
    return [query.value(0) for _ in iter(query.next, False)] if good else query.lastError().nativeErrorCode()


ada, bob = (insert("INSERT INTO customer (name) VALUES (?)", name) for name in ("Ada", "Bob"))
pen, ink = (insert("INSERT INTO purchase (item) VALUES (?)", item) for item in ("pen", "ink"))
print("customer", ada, to_text(ada), *rows("SELECT name FROM customer WHERE id = ?", from_text(to_text(ada))))
print("purchase", pen, *rows("SELECT item FROM purchase WHERE id = ?", pen))
print("arrays", ",".join(map(str, rows("SELECT id FROM customer WHERE id IN (?, ?) ORDER BY name", bob, ada))),
      ",".join(rows("SELECT id FROM purchase WHERE id IN (?, ?) ORDER BY item", pen, ink)))
print("malformed", 404 if rows("SELECT item FROM purchase WHERE id = ?", "42").startswith("22") else 500)
