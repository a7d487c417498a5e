require 'json'
require_relative 'activerecord'

ada = Customer.create!(name: 'Ada')
puts "customer #{ada.id} #{to_text(ada.id)} #{Customer.find(from_text(to_text(ada.id))).name}"

pen = Purchase.create!(item: 'pen')
puts "purchase #{pen.id} #{Purchase.find(pen.id).item}"

bob = Customer.create!(name: 'Bob')
ink = Purchase.create!(item: 'ink')
customers = Customer.where(id: [ada.id, bob.id]).order(:name).pluck(:id)
purchases = Purchase.where('id = ANY (ARRAY[?]::randflake[])', [pen.id, ink.id]).order(:item).pluck(:id)
puts "arrays #{customers.join(',')} #{purchases.join(',')}"

names = Array.new(1000) { |n| "bulk #{n}" }
made = Customer.insert_all!(names.map { |n| { name: n } }, returning: :id)
bought = Purchase.insert_all!(names.map { |n| { item: n } }, returning: :id)
puts "bulk #{made.rows.uniq.size} #{bought.rows.uniq.size}"

puts "json #{[ada, pen].map { |row| JSON.parse(row.to_json)['id'] }.join(' ')}"
puts "number #{ada.reload.number}"

ada.purchases << pen
puts "bought #{ada.reload.purchases.map(&:id).join(',')}"
raise 'found' if Customer.find_by(id: from_text('malformed!'))
begin
  Purchase.find('42')
rescue ActiveRecord::RecordNotFound
  puts 'malformed 404'
end
