<?php
require_once 'doctrine.php';

use Doctrine\DBAL\Exception\DriverException;
use Doctrine\ORM\EntityManager;

function add(EntityManager $em, object ...$objects): object
{
    array_map($em->persist(...), $objects);
    $em->flush();
    return $objects[0];
}

$ada = add($em, new Customer('Ada'));
$pen = add($em, new Purchase('pen'));
$em->clear();
[$text] = $connection->fetchFirstColumn('SELECT randflake_to_text(?::bigint)', [$ada->id]);
echo "customer {$ada->id} $text ", $em->find(Customer::class, $ada->id)->name, "\n";
echo "purchase {$pen->id} ", $em->find(Purchase::class, $pen->id)->item, "\n";

$bob = add($em, new Customer('Bob'));
$ink = add($em, new Purchase('ink'));
$customers = $em->getRepository(Customer::class)->findBy(['id' => [$ada->id, $bob->id]], ['name' => 'ASC']);
$purchases = $em->getRepository(Purchase::class)->findBy(['id' => [$pen->id, $ink->id]], ['item' => 'ASC']);
echo 'arrays ', implode(',', array_column($customers, 'id')), ' ',
    implode(',', array_column($purchases, 'id')), "\n";

// Doctrine's unit of work inserts rows one by one, so the program inserts many rows without it.
$names = array_map(fn($n) => "bulk $n", range(0, 999));
$values = implode(', ', array_fill(0, 1000, '(?)'));
$made = $connection->fetchFirstColumn("INSERT INTO customer (name) VALUES $values RETURNING id", $names);
$bought = $connection->fetchFirstColumn("INSERT INTO purchase (item) VALUES $values RETURNING id", $names);
echo 'bulk ', count($made), ' ', count($bought), "\n";

echo "json $text ", json_decode(json_encode($pen))->id, "\n";
echo 'number ', $customers[0]->number, "\n";

$customers[0]->purchases->add($purchases[1]);
$em->flush();
$em->clear();
echo 'bought ', $em->find(Customer::class, $ada->id)->purchases[0]->id, "\n";
try {
    $em->find(Purchase::class, '42');
} catch (DriverException $error) {
    echo 'malformed ', str_starts_with($error->getSQLState(), '22') ? 404 : 500, "\n";
}
