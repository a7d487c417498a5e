<?php
require_once 'pdo.php';

$pdo = new PDO('pgsql:host=' . getenv('PGHOST') . ';port=' . getenv('PGPORT')
    . ';dbname=' . getenv('PGDATABASE'), getenv('PGUSER'));

function first(string $query, ...$values): array
{
    global $pdo;
    $statement = $pdo->prepare($query);
    $statement->execute($values);
    return $statement->fetch(PDO::FETCH_NUM);
}

// Inserts a row, gets its key, and finds the row by its key.
[$id] = first('INSERT INTO customer (name) VALUES (?) RETURNING id', 'Ada');
[$name] = first('SELECT name FROM customer WHERE id = ?', from_text(to_text($id)));
echo "customer $id ", to_text($id), " $name\n";

[$pen] = first('INSERT INTO purchase (item) VALUES (?) RETURNING id', 'pen');
[$item] = first('SELECT item FROM purchase WHERE id = ?', $pen);
echo "purchase $pen $item\n";

[$bob] = first('INSERT INTO customer (name) VALUES (?) RETURNING id', 'Bob');
[$ink] = first('INSERT INTO purchase (item) VALUES (?) RETURNING id', 'ink');
[$customers] = first('SELECT array_agg(id ORDER BY name) FROM customer WHERE id = ANY (?)',
    "{{$id},{$bob}}");
[$purchases] = first('SELECT array_agg(id ORDER BY item) FROM purchase WHERE id = ANY (?)',
    "{{$pen},{$ink}}");
echo 'arrays ', trim($customers, '{}'), ' ', trim($purchases, '{}'), "\n";

// A malformed key must raise an error.
try {
    first('SELECT item FROM purchase WHERE id = ?', '42');
} catch (PDOException $error) {
    echo 'malformed ', str_starts_with($error->getCode(), '22') ? 404 : 500, "\n";
}
