<?php
require_once '/usr/share/php/Illuminate/Database/autoload.php';
require_once '/usr/share/php/Illuminate/Events/autoload.php';
require_once 'pdo.php';
require_once 'eloquent.php';

$database = new Illuminate\Database\Capsule\Manager;
$database->addConnection(['driver' => 'pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'database' => getenv('PGDATABASE'), 'username' => getenv('PGUSER'), 'charset' => 'utf8']);
$database->setEventDispatcher(new Illuminate\Events\Dispatcher);
$database->bootEloquent();

[$ada, $bob] = array_map(fn ($name) => Customer::create(['name' => $name]), ['Ada', 'Bob']);
[$pen, $ink] = array_map(fn ($item) => Purchase::create(['item' => $item]), ['pen', 'ink']);
echo "customer $ada->id ", to_text($ada->id), ' ', Customer::find(from_text(to_text($ada->id)))->name, "\n";
echo "purchase $pen->id ", Purchase::find($pen->id)->item, "\n";
echo 'arrays ', Customer::whereIn('id', [$bob->id, $ada->id])->orderBy('name')->pluck('id')->implode(','), ' ',
    Purchase::whereIn('id', [$pen->id, $ink->id])->orderBy('item')->pluck('id')->implode(','), "\n";

// Texts that look like numbers stay keys, and an update or a deletion finds its row.
foreach (['0000000000077', '1e30000000000', '12e3456789012'] as $id) {
    $row = new Purchase(['item' => 'old']);
    $row->id = $id;
    $row->save();
    $row = $row->fresh();
    $row->update(['item' => 'new']);
    if ($row->id !== $id || Purchase::find($id)->item !== 'new' || !$row->delete() || Purchase::find($id))
        exit("$id: lost\n");
}
try {
    Purchase::find('42');
} catch (Illuminate\Database\QueryException $error) {
    echo 'malformed ', str_starts_with($error->getCode(), '22') ? 404 : 500, "\n";
}
