# Migrations and models as they always were, in a database with snowflake sequences.

require 'active_record'
require 'active_record/fixtures'
require 'stringio'
require 'tap'

ActiveRecord::Base.establish_connection(ENV['DATABASE_URL'])
ActiveRecord::Migration.verbose = false

class Customer < ActiveRecord::Base; has_many :orders; end
class Order < ActiveRecord::Base; belongs_to :customer; end
class Color < ActiveRecord::Base; end

class Create < ActiveRecord::Migration[7.2]
  def change
    create_table(:customers) { |t| t.string :name }
    create_table(:orders) { |t| t.references :customer, foreign_key: true }
    create_table(:colors, id: :serial) { |t| t.string :name }
  end
end

def schema
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection_pool, out)
  out.string
end

Create.new.migrate(:up)
order = Customer.create!(name: 'a').orders.create!
ok order.id > 10**18, 'a snowflake ID', order.id
same Color.create!(name: 'red').id, 1, 'an integer key stays local'
same order.reload.customer.name, 'a', 'a reference'
rows = Customer.insert_all((1..1000).map { |i| { name: i.to_s } }, returning: %w[id name]).rows
names = Customer.pluck(:id, :name).to_h
ok rows.all? { |id, name| names[id] == name }, 'insert_all returns the keys'
same Customer.connection.default_sequence_name('customers', 'id'), 'public.customers_id_seq', 'it finds the sequence'
Order.delete_all
Customer.delete_all
ActiveRecord::FixtureSet.create_fixtures('fixtures', 'customers')
Customer.connection.reset_pk_sequence!('customers')
ok Customer.create!(name: 'after').id > 10**18, 'after fixtures and reset_pk_sequence!, IDs continue'
ok schema.include?('create_table "customers", force: :cascade'), 'schema.rb has a table as always', schema
ok schema.include?('create_table "colors", id: :serial, force: :cascade'), 'also one with an integer key', schema
finish
