# Runs the recipes of docs/drivers*.md against a server. scripts/test_tools.sh installs the drivers.
use Docs;
use Randflake;
use Recipes;

read_document('docs/drivers.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-javascript.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-python.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-java-go.md', 'test/t/320_drivers.pl');
read_document('docs/drivers-ruby-php.md', 'test/t/320_drivers.pl');
read_document('docs/staging.md', 'test/t/320_drivers.pl');
my $node = start_recipes('light', block('database'), block('tables'));

$node->sql('CREATE DATABASE serial');
$node->safe_psql('serial', block('database') =~ s/DATABASE shop/DATABASE serial/r);
$node->safe_psql('serial', 'CREATE TABLE invoice (id bigserial PRIMARY KEY, n integer); INSERT INTO invoice (n) VALUES (1), (2)');
my @dump = map {
    $node->safe_psql('serial', $_ . '; INSERT INTO invoice (n) VALUES (3)');
    (PostgreSQL::Test::Utils::run_command([ 'pg_dump', '-s', '-t', 'invoice', '-d', $node->connstr('serial') ]))[0]
      =~ s/^\\\S*restrict .*//gmr;    # a random word
} 'SELECT 1', block('there.sql'), block('back_serial.sql');
isnt($dump[1], $dump[0], 'a key that was serial moves');
is($dump[2], $dump[0], '  and goes back');
is($node->safe_psql('serial', 'SELECT string_agg(id::text, $$,$$ ORDER BY id) FROM invoice WHERE id BETWEEN 1 AND 1000'), '1,2,3,4',
    '  from where its numbers ended');
$node->safe_psql('serial', 'DROP TABLE invoice; CREATE TABLE invoice (id serial PRIMARY KEY); ALTER SEQUENCE invoice_id_seq MAXVALUE 1000; CREATE ROLE app LOGIN; '
      . 'ALTER TABLE invoice ALTER id TYPE bigint; GRANT INSERT, SELECT ON invoice TO app; ' . block('kept.sql'));
is($node->safe_psql('serial', <<'SQL'), 't', 'the default sets a sequence that programs ask');
SET ROLE app;
INSERT INTO invoice DEFAULT VALUES;
SELECT id > 2 ^ 32 AND id = currval('invoice_id_seq') FROM invoice;
SQL

# --- JavaScript ------------------------------------------------------------------------------
my $javascript = succeeds('node', '--version');
my $packages = 'test/js';

sub javascript($program, %recipe) {
    my $run = $program eq 'pg' ? 'pg_program.mjs' : 'mapper.mjs';
    recipe(name => $program, packages => $packages, run => [ 'node', $run, $program ], programs => [$run],
        needs => [ 'node', $javascript, "$packages/node_modules (npm ci)", -d "$packages/node_modules" ],
        %recipe, files => [ 'text_form.mjs', "$program.mjs", @{ $recipe{files} // [] } ]);
}

javascript('pg', tables => 1, files => [ 'numbers.mjs', 'identifiers.mjs' ], after => [ [ 'node', 'again.mjs' ], [ 'node', 'batch.mjs' ] ], also => { 'again.mjs' => <<'JS', 'batch.mjs' => <<'BATCH' }, prepare => [ [ 'node', '--input-type=module', '-e', <<'JS' ] ]);
import assert from 'node:assert';
import { pool, sql } from './numbers.mjs';

const [{ number }] = (await pool.query('SELECT number FROM customer')).rows;
assert(Number.isSafeInteger(number));
assert.deepEqual([...await sql`SELECT number, ARRAY[number] FROM customer WHERE number = ${number}`], [{ number, array: [number] }]);
const arrays = (await pool.query('SELECT ARRAY[number] FROM customer WHERE number = $1', [number])).rows;
assert.deepEqual(arrays, [{ array: [String(number)] }]);
await assert.rejects(pool.query('SELECT id FROM customer'), RangeError);
await assert.rejects(sql`SELECT id FROM customer`, RangeError);
await pool.end();
await sql.end();
JS
import assert from 'node:assert';
import { identifiers } from './identifiers.mjs';
import { pool } from './pg.mjs';

const ids = identifiers(pool);
const many = await Promise.all(Array.from({ length: 2500 }, async () => (await ids.next()).value));
assert.equal(new Set(many).size, 2500);
const insert = "INSERT INTO customer (id, name) VALUES ($1, 'twice') ON CONFLICT (id) DO NOTHING";
for (const rows of [1, 0]) assert.equal((await pool.query(insert, [many[0]])).rowCount, rows);
await pool.end();
BATCH
import { fromText } from './text_form.mjs';
for (const text of ['', 'w', '-1', 'g000000000000', '00000000000000']) {
  let id;
  try { id = fromText(text); } catch { continue; }
  throw new Error(`${text} is ${id}`);
}
JS
javascript('drizzle', files => ['schema.mjs'], prepare => [ [ 'sh', '-ec', block('drizzle-kit') ] ],
    after => [ [ 'sh', '-ec', block('drizzle-kit') . 'ls migrations/*.sql | wc -l | grep -x 1' ], [ 'sh', '-ec', <<'SH' ] ]);
push='npx drizzle-kit push --dialect=postgresql --schema=./schema.mjs'
$push --url=postgres://$PGUSER@$PGHOST:$PGPORT/again
$push --url=postgres://$PGUSER@$PGHOST:$PGPORT/again | grep 'No changes detected'
SH
javascript('sequelize');
javascript('objection', tables => 1, model => 1);
# MikroORM 7 calls a function that Node.js 20.16 introduced. Debian 12 has an older Node.js.
javascript('mikroorm', after => [ [ 'node', 'again.mjs' ] ], environment => { NODE_OPTIONS => '--require ./older.cjs' }, also => {
    'older.cjs' => 'process.getBuiltinModule ??= require;',
    'again.mjs' => block('mikroorm.mjs') =~ s/^await orm\.schema\.update\(\);.*/<<~'JS'/emsr });
    const changes = await orm.schema.getUpdateSchemaSQL();
    if (changes) throw new Error(changes);
    await orm.close();
    JS
javascript('typeorm', after => [ [ 'node', 'again.mjs' ] ], also => {
    'again.mjs' => block('typeorm.mjs') =~ s/^await source\.synchronize\(\);.*/<<~'JS'/emsr });
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    if (upQueries.length) throw new Error(upQueries[0].query);
    await source.destroy();
    JS

# Sets a dummy engine for migrations, because Prisma would otherwise download the real engine.
javascript('prisma', tables => 1, model => 1, files => ['schema.prisma'],
    environment => { PRISMA_SCHEMA_ENGINE_BINARY => '/bin/true', CHECKPOINT_DISABLE => 1 },
    prepare => [ [ 'prisma', 'generate', '--schema=schema.prisma' ] ]);

unlike(slurp_file("$packages/package-lock.json"), qr/"resolved"|https?:\/\/registry/,
    'the lock file names no host to download from');

# --- Python ----------------------------------------------------------------------------------
# Packages from Debian work only with Debian's interpreter.
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';

sub python($module, $package, %recipe) {
    my $program = $recipe{tables} ? 'driver.py' : "${module}_program.py";
    recipe(name => $module, files => [ 'text_form.py', "${module}_recipe.py" ], programs => [$program],
        needs => [ $package, succeeds($python, '-c', "import $module") ],
        run => [ $python, $program, $module ], %recipe);
}

python('asyncpg', 'python3-asyncpg', tables => 1);
for my $module (qw(psycopg2 psycopg)) {
    python($module, "python3-$module", tables => 1, after => [ [ $python, 'batch.py' ] ],
        also => { 'identifiers.py' => block('identifiers.py'), 'batch.py' => <<"PYTHON" });
from identifiers import identifiers
from ${module}_recipe import connection

ids = identifiers(connection)
many = {next(ids) for _ in range(2500)}
assert len(many) == 2500
PYTHON
}
python('sqlalchemy', 'python3-sqlalchemy', also => { 'again.py' => <<'PYTHON' }, after => [ [ $python, 'again.py' ] ]);
from sqlalchemy import MetaData, create_engine
from sqlalchemy_recipe import engine

reflected = MetaData()
reflected.reflect(engine, only=["bought", "customer", "purchase"])
reflected.create_all(create_engine("postgresql+psycopg2:///again"))
PYTHON

# Django makes the test database with the recipe's migrations. The program tests fixtures and (if
# installed) serializers, changes a key's type, and changes it back.
my @manage = ($python, '-m', 'django');
my @django = ('django', 'python3-django',
    files => [
        'text_form.py', 'as_text.py', 'identifiers.py', 'settings.py', 'there.sql', 'back.sql',
        map { "shop/$_.py" } qw(migrations/0001_extensions models urls management/commands/loaddata rest) ],
    also => { 'shop/migrations/__init__.py' => '', 'shop/tests.py' => <<'PYTHON', 'keys.py' => <<'PYTHON2' },
import json
from importlib.util import find_spec

from django.core import serializers
from django.core.management import call_command
from django.db import connection, models
from django.test import TestCase

from identifiers import identifiers
from shop.models import BigRandflakeField, Customer, Invoice, Purchase


class SecondHour(TestCase):
    def test_fixtures(self):
        pen = Purchase.objects.create(item="pen")
        ada = Customer.objects.create(name="Ada")
        ada.purchases.add(pen)
        with open("shop.json", "w") as file:
            file.write(serializers.serialize("json", [pen, ada]))
        Customer.objects.all().delete()
        Purchase.objects.all().delete()
        call_command("loaddata", "shop.json", verbosity=0)
        self.assertEqual(Customer.objects.get(id=ada.id).purchases.get(), pen)

    def test_identifiers(self):
        ids = identifiers(connection)
        key = next(ids)
        for made in True, False:
            _, new = Customer.objects.get_or_create(id=key, defaults={"name": "Ada"})
            self.assertEqual(new, made)
        Customer.objects.bulk_create([Customer(id=key, name="Bob")], ignore_conflicts=True)
        with self.assertNumQueries(1):
            Customer(id=next(ids), name="Bob").save(force_insert=True)
        self.assertEqual(Customer.objects.count(), 2)

    def test_invoice(self):
        def insert():
            cursor.execute("INSERT INTO invoice DEFAULT VALUES RETURNING id")
            return cursor.fetchone()[0]

        with connection.cursor() as cursor:
            self.assertGreater(abs(insert()), 2**32)
            call_command("migrate", "shop", "0003", verbosity=0)
            self.assertEqual(insert(), 4)

    def test_alter_field(self):
        fields = models.BigAutoField(primary_key=True), BigRandflakeField(primary_key=True)
        for field in fields:
            field.set_attributes_from_name("id")
            field.model = Invoice
        with connection.schema_editor() as editor:
            editor.alter_field(Invoice, *fields)

    def test_serializers(self):
        if not find_spec("rest_framework"):
            return
        from rest_framework import viewsets
        from rest_framework.test import APIRequestFactory
        from shop import rest

        class PurchaseSerializer(rest.serializers.ModelSerializer):
            class Meta:
                model = Purchase
                fields = ["id", "item"]

        class CustomerSerializer(PurchaseSerializer):
            class Meta:
                model = Customer
                fields = ["id", "name"]

        pen = Purchase.objects.create(item="pen")
        ada = Customer.objects.create(name="Ada")
        self.assertEqual(PurchaseSerializer(pen).data, {"id": pen.id, "item": "pen"})
        self.assertEqual(rest.from_text(CustomerSerializer(ada).data["id"]), ada.id)
        related = rest.serializers.PrimaryKeyRelatedField(
            queryset=Customer.objects.all(), pk_field=rest.TextForm()
        )
        self.assertEqual(related.run_validation(rest.to_text(ada.id)), ada)
        with self.assertRaises(rest.serializers.ValidationError):
            related.run_validation("malformed!")

        class Customers(rest.ByTextForm, viewsets.ModelViewSet):
            queryset = Customer.objects.all()
            serializer_class = CustomerSerializer
            authentication_classes = permission_classes = []

        def get(view, pk):
            return view.as_view({"get": "retrieve"})(APIRequestFactory().get("/"), pk=pk)

        class Purchases(viewsets.ModelViewSet):
            queryset = Purchase.objects.all()
            serializer_class = PurchaseSerializer
            authentication_classes = permission_classes = []

        with self.settings(REST_FRAMEWORK={"UNAUTHENTICATED_USER": None}):
            self.assertEqual(get(Customers, rest.to_text(ada.id)).data["name"], "Ada")
            self.assertEqual(get(Customers, "malformed!").status_code, 404)
            self.assertEqual(get(Purchases, pen.id).data["item"], "pen")
            self.assertEqual(get(Purchases, "malformed!").status_code, 404)
PYTHON
from django.db import migrations

from shop.models import BigRandflakeField


class Migration(migrations.Migration):
    dependencies = [("shop", "0003_invoice")]
    operations = [
        migrations.RunSQL("INSERT INTO invoice SELECT FROM generate_series(1, 3)", ""),
        migrations.RunSQL(
            open("there.sql").read(),
            open("back.sql").read(),
            [migrations.AlterField("invoice", "id", BigRandflakeField(primary_key=True, serialize=False))],
        ),
    ]
PYTHON2
    environment => { DJANGO_SETTINGS_MODULE => 'settings' },
    prepare => [ [ @manage, 'makemigrations', 'shop' ], [ @manage, 'makemigrations', '--check' ], [ @manage, 'migrate' ] ],
    after => [ [ 'sh', '-ec', <<'SH', $python ] ]);
echo 'class Invoice(models.Model): Meta = type("Meta", (), {"db_table": "invoice"})' >>shop/models.py
$0 -m django makemigrations shop --name invoice
cp keys.py shop/migrations/0004_keys.py
sed -i '$s/:.*/: id = BigRandflakeField(primary_key=True); Meta = type("Meta", (), {"db_table": "invoice"})/' shop/models.py
$0 -m django makemigrations --check
$0 -m django test shop
SH
python(@django);

# --- Java ------------------------------------------------------------------------------------
my $jdbc = '/usr/share/java/postgresql.jar';
recipe(name => 'JDBC', files => [ 'Keys.java', 'Identifiers.java' ], programs => ['Recipe.java'], tables => 1,
    needs => [ 'default-jdk-headless', succeeds('javac', '-version'), 'libpostgresql-jdbc-java', -e $jdbc ],
    run => [ 'sh', '-ec', 'javac -cp $0 *.java; java -XX:TieredStopAtLevel=1 -cp $0:. Recipe', $jdbc ]);

# --- Ruby, PHP -------------------------------------------------------------------------------
my $ruby = '/usr/bin/ruby';
recipe(name => 'pg for Ruby', files => [ 'pg_recipe.rb', 'identifiers.rb' ], programs => ['pg_program.rb'], tables => 1,
    needs => [ 'ruby-pg', succeeds($ruby, '-e', 'require "pg"') ], run => [ $ruby, 'pg_program.rb' ]);
# If the extensions exist, the schema that Rails dumps recreates the same tables.
my @active_record = (name => 'ActiveRecord',
    files => [ 'activerecord.rb', 'config/initializers/randflake.rb', 'test_helper.rb' ],
    programs => ['activerecord_program.rb'],
    needs => [ 'ruby-activerecord', succeeds($ruby, '-e', 'require "pg"; require "active_record"') ],
    run => [ $ruby, 'activerecord_program.rb' ]);
recipe(@active_record,
    after => [ [ 'psql', '-qc', 'DROP TABLE bought, customer, purchase' ], [ $ruby, 'again.rb' ] ],
    also => {
        'fixtures/customer.yml' => "ada:\n  name: Ada\n  purchases: pen, ink\n",
        'fixtures/purchase.yml' => "pen:\n  item: pen\nink:\n  item: ink\n",
        'again.rb' => <<'RUBY' });
$stdout = File.open(File::NULL, 'w')
require_relative 'activerecord'
require_relative 'test_helper'
require 'stringio'

# Before Rails 7.2, SchemaDumper takes a connection instead of a connection pool.
def dump
  base = ActiveRecord::Base
  pooled = ActiveRecord.version >= Gem::Version.new('7.2')
  ActiveRecord::SchemaDumper.dump(pooled ? base.connection_pool : base.connection, schema = StringIO.new)
  schema.string
end

schema = dump
raise schema if schema =~ /"randflake_key/
configuration = ActiveRecord::Base.connection_db_config.configuration_hash
ActiveRecord::Base.establish_connection(configuration.merge(database: 'again'))
ActiveRecord::Base.connection.execute('DROP SCHEMA randflake CASCADE')
eval schema
raise dump unless dump == schema
ActiveRecord::FixtureSet.create_fixtures('fixtures', ['customer', 'purchase'],
                                         { 'customer' => Customer, 'purchase' => Purchase })
raise Customer.find_by(name: 'Ada').inspect unless Customer.find_by(name: 'Ada').purchases.count == 2

ActiveRecord::Schema.define do
  create_table(:note, id: :bigint, default: -> { 'randflake53_generate()' }, &:timestamps)
end
class Note < ActiveRecord::Base
  self.table_name = 'note'
  self.implicit_order_column = 'created_at'
end
notes = Array.new(20) { Note.create! }
raise notes.inspect unless [Note.first, Note.last] == [notes.first, notes.last] && notes.map(&:id).max > 2**32
RUBY

my $php = '/usr/bin/php';
my $pdo = succeeds($php, '-r', 'exit(in_array("pgsql", PDO::getAvailableDrivers()) ? 0 : 1);');
recipe(name => 'PDO', files => ['pdo.php'], programs => ['pdo_program.php'], tables => 1, needs => [ 'php-cli php-pgsql', $pdo ],
    run => [ $php, 'pdo_program.php' ]);
recipe(name => 'Doctrine', files => ['doctrine.php'], programs => ['doctrine_program.php'],
    needs => [
        'php-cli php-pgsql', $pdo, map { $_->[0], -e "/usr/share/php/$_->[1]/autoload.php" }
          [ 'php-doctrine-orm', 'Doctrine/ORM' ],
        [ 'php-symfony-cache', 'Symfony/Component/Cache' ] ], run => [ $php, 'doctrine_program.php' ],
    after => [ [ $php, 'again.php' ] ], also => {
        'again.php' => block('doctrine.php') =~ s/^\(new SchemaTool.*/<<~'PHP'/emsr });
    if ($sql = (new SchemaTool($em))->getUpdateSchemaSql($classes, true))
        exit(print_r($sql) ? 1 : 0);
    PHP

recipe(name => 'Eloquent', files => [ 'pdo.php', 'eloquent.php' ], programs => ['eloquent_program.php'], tables => 1,
    needs => [ 'php-cli php-pgsql', $pdo, map { ("php-illuminate-\L$_", -e "/usr/share/php/Illuminate/$_/autoload.php") } qw(Database Events) ],
    run => [ $php, 'eloquent_program.php' ]);
recipe(name => 'Qt', files => [ 'text_form.py', 'qt_recipe.py' ], programs => ['qt_program.py'], tables => 1,
    needs => [ 'python3-pyqt5.qtsql libqt5sql5-psql',
        succeeds($python, '-c', 'from PyQt5.QtSql import QSqlDatabase; exit(0 if "QPSQL" in QSqlDatabase.drivers() else 1)') ],
    run => [ $python, 'qt_program.py' ]);

# --- existing keys ---------------------------------------------------------------------------
$node->sql('CREATE DATABASE shop');
$node->safe_psql('shop', block('database'));
for my $key ('bigserial PRIMARY KEY', 'bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY') {
    my $insert = 'INSERT INTO invoice DEFAULT VALUES RETURNING id';
    $node->safe_psql('shop', "CREATE TABLE invoice (id $key)");
    $node->safe_psql('shop', $insert) for 1 .. 3;
    $node->safe_psql('shop', block('there.sql'));
    cmp_ok(abs $node->safe_psql('shop', $insert), '>', 2**30, "$key: new rows get identifiers");
    $node->safe_psql('shop', block('back.sql'));
    is($node->safe_psql('shop', $insert), 4, '  and numbers again');
    $node->safe_psql('shop', 'DROP TABLE invoice');
}
$node->safe_psql('shop', block('tables'));
is(() = $node->safe_psql('shop', block('batch.sql')) =~ /^\S+$/mg, 2000, 'batches of both forms');
is($node->safe_psql('shop', "INSERT INTO purchase VALUES ('0000000000001', 'pen') RETURNING id = 1::randflake"), 't',
    'a fixed key is a text form, or a number that is cast');
isnt($node->psql('shop', $_), 0, "  and not so: $_")
  for "INSERT INTO purchase VALUES ('2', 'ink')", 'SELECT FROM purchase WHERE id = 1';
$node->sql('DROP DATABASE shop');

# --- PostgREST's statements ------------------------------------------------------------------
$node->sql('CREATE DATABASE api');
$node->safe_psql('api', 'CREATE EXTENSION randflake_type CASCADE');
$node->safe_psql('api', block('api.sql'));
my $as_anon = 'SET ROLE web_anon; SET search_path = api, public;';
my $made = $node->safe_psql('api', "$as_anon INSERT INTO customer (name) VALUES ('Ada') RETURNING to_json(customer)");
my ($text) = $made =~ /^\{"id":"([0-9a-v]{1,13})","name":"Ada"\}$/;
ok(defined $text, 'a request inserts and gets the text form') or diag($made);
is($node->safe_psql('api', "$as_anon SELECT name FROM customer WHERE id = '$text'"), 'Ada', '  and finds the row by it');
is($node->safe_psql('api', "SELECT count(*) FROM customer WHERE id = randflake_from_text('$text')"),
    1, '  which is the identifier in the database');
like($node->safe_psql('api', "SET enable_seqscan = off; EXPLAIN SELECT * FROM api.customer WHERE id = '$text'"),
    qr/Index Scan using customer_text /, '  through an index');
isnt($node->psql('api', "$as_anon SELECT * FROM public.customer"), 0, '  and cannot see the table');
isnt($node->psql('api', "$as_anon SELECT public.randflake_decode(public.randflake_from_text(id)) FROM customer"),
    0, '  nor decode it');
$node->sql('DROP DATABASE api');
$node->sql('DROP ROLE web_anon');

# --- without the library ---------------------------------------------------------------------
without_library('BEGIN;' . slurp_file('managed/randflake.sql') . 'COMMIT;' . block('stand_in'));
python('sqlalchemy', 'python3-sqlalchemy');
python(@django);
# Rails's test database is a copy of the template. The recipe's helper prepares this database.
recipe(@active_record, after => [ [ 'env', 'PGDATABASE=again', $ruby, 'again.rb' ] ], also => {
    'fixtures/customer.yml' => "ada:\n  name: Ada\n", 'again.rb' => <<'RUBY' });
require_relative 'activerecord'
require_relative 'test_helper'

ActiveRecord::FixtureSet.create_fixtures('fixtures', ['customer'], { 'customer' => Customer })
keys = [Customer.find_by(name: 'Ada').number, Customer.create!(name: 'Bob').id, Purchase.create!(item: 'pen').id.to_i(32)]
raise keys.inspect unless keys.all? { |key| key.abs > 2**32 }
RUBY
javascript('typeorm');
# Runs PGlite in a process of its own, without the test's PostgreSQL server.
javascript('sequelize', files => ['pglite.mjs'], prepare => [ [ 'node', 'pglite_program.mjs' ] ], also => {
    'managed/randflake.sql' => slurp_file('managed/randflake.sql'),
    'stand_in.sql' => block('stand_in') =~ s/^ALTER DATABASE.*//mr,
    'pglite_program.mjs' => 'const tables = `' . block('tables') . '`;' . <<'JS' });
import assert from 'node:assert';
import { db } from './pglite.mjs';
import { fromText } from './text_form.mjs';

await db.exec(`${tables} INSERT INTO customer (name) SELECT n FROM generate_series(1, 1000) AS n`);
const { rows } = await db.query('SELECT id, randflake_to_text(id) AS text, node_id FROM customer, randflake_decode(id)');
assert.equal(new Set(rows.map((row) => row.id)).size, 1000);
for (const row of rows) assert.deepEqual([fromText(row.text), row.node_id], [BigInt(row.id), 0]);
const [purchase] = (await db.query("INSERT INTO purchase (item) VALUES ('pen') RETURNING id")).rows;
assert.match(purchase.id, /^[0-9a-v]{13}$/);
await db.query('TABLE public.bought');
JS
every_block_was_used();
done_testing();
