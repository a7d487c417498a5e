require_relative 'identifiers'
require_relative 'pg_recipe'

connection = connect
encoder = PG::TextEncoder::Array.new
first = ->(query, *values) { connection.exec_params(query, values)[0] }

# Inserts a row, gets its key, and finds the row by its key.
id = first.('INSERT INTO customer (name) VALUES ($1) RETURNING id', 'Ada')['id']
name = first.('SELECT name FROM customer WHERE id = $1', from_text(to_text(id)))['name']
puts "customer #{id} #{to_text(id)} #{name}"

pen = first.('INSERT INTO purchase (item) VALUES ($1) RETURNING id', 'pen')['id']
item = first.('SELECT item FROM purchase WHERE id = $1', pen)['item']
puts "purchase #{pen} #{item}"

bob = first.('INSERT INTO customer (name) VALUES ($1) RETURNING id', 'Bob')['id']
ink = first.('INSERT INTO purchase (item) VALUES ($1) RETURNING id', 'ink')['id']
customers = first.('SELECT array_agg(id ORDER BY name) AS ids FROM customer WHERE id = ANY ($1)',
                   encoder.encode([id, bob]))['ids']
purchases = first.('SELECT array_agg(id ORDER BY item) AS ids FROM purchase WHERE id = ANY ($1)',
                   encoder.encode([pen, ink]))['ids']
puts "arrays #{customers.join(',')} #{purchases.join(',')}"

ids = identifiers(connection)
many = Array.new(2500) { ids.next }.uniq.size
raise many.to_s unless many == 2500

# A malformed key must raise an error.
begin
  first.('SELECT item FROM purchase WHERE id = $1', '42')
rescue PG::DataException, ArgumentError # of the server, and of the driver
  puts 'malformed 404'
end
