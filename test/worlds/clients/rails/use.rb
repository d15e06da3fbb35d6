require 'active_record'
require 'active_record/fixtures'
require 'stringio'
require 'tap'

ActiveRecord::Base.establish_connection(ENV['DATABASE_URL'])
ActiveRecord::Migration.verbose = false

def connection = ActiveRecord::Base.connection

def read(name) = File.read(name)

# Run a migration, whose steps are in a file.
def migrate(steps)
  Class.new(ActiveRecord::Migration[7.2]) { class_eval "def change\n#{steps}\nend" }.new.migrate(:up)
end

# The role may not switch off foreign keys, so the tables are empty before.
def load_fixtures(*tables)
  connection.execute("TRUNCATE #{tables.join(', ')} CASCADE")
  ActiveRecord::FixtureSet.reset_cache
  ActiveRecord::FixtureSet.create_fixtures('fixtures', tables)
end

def schema
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump(ActiveRecord::Base.connection_pool, out)
  out.string
end

ApplicationRecord = ActiveRecord::Base
class Invoice < ApplicationRecord; has_many :lines; end
class Line < ActiveRecord::Base; belongs_to :invoice; end
class Customer < ActiveRecord::Base; end
class Order < ActiveRecord::Base; belongs_to :customer; end

def use(what)
  order = Order.create!(customer: Customer.create!(name: 'a'))
  same Order.find(order.id).customer.name, 'a', "#{what}: a reference"
  rows = Customer.insert_all((1..1000).map { |i| { name: i.to_s } }, returning: %w[id name]).rows
  names = Customer.pluck(:id, :name).to_h
  ok rows.each_with_index.all? { |(id, name), i| names[id] == name && name == (i + 1).to_s },
     "#{what}: insert_all returns the keys"
end

# A new table, by a role that is no superuser
migrate(read('create.rb'))
migrate("create_table(:lines, id: :bigint, default: -> { 'snowflake_id()' }) { |t| t.references :invoice, foreign_key: true }")
invoice = Invoice.new(name: 'a')
invoice.lines.build
invoice.save!
ok invoice.id > 10**18, 'a snowflake ID', invoice.id
same invoice.reload.lines.map(&:invoice_id), [invoice.id], 'a nested save'
same Invoice.last, invoice, 'in the order of IDs'
eval(read(File.join(__dir__, 'text_ids.rb')))
same JSON.parse(Invoice.last.to_json)['id'], invoice.id.to_s, 'JSON, as a string'
load_fixtures('invoices', 'lines')
same Line.last.invoice.name, 'first', 'fixtures are loaded'
ok Invoice.create!(name: 'after').id > 10**18, 'and IDs go on'
ok schema.include?('enable_extension "snowflake"'), 'schema.rb has the extension'
ok schema.include?('create_table "invoices", id: :bigint, default: -> { "snowflake_id()" }'), 'and the default'

# Taken over
migrate("create_table(:customers, id: :serial) { |t| t.string :name }
         create_table(:orders) { |t| t.integer :customer_id }")
use('old')
load_fixtures('customers')
migrate(read(File.join(__dir__, 'convert.rb')))
error = fails(ActiveModel::RangeError, 'a running application fails') do
  Order.create!(customer_id: connection.select_value('SELECT snowflake_id()'))
end
ok error.message.include?('out of range'), 'with what is wrong', error
[Customer, Order].each(&:reset_column_information)
connection.schema_cache.clear!
use('converted')
ok Customer.maximum(:id) > 10**18, 'with snowflake IDs'
load_fixtures('customers')
same Customer.first.name, 'first', 'fixtures are loaded'

# Into another database
dumped = schema
main = ActiveRecord::Base.remove_connection
ActiveRecord::Base.establish_connection(ENV['DATABASE_URL'].sub(%r{[^/]*$}, 'loaded'))
ActiveRecord::Schema.verbose = false
eval(dumped)
same schema, dumped, 'schema.rb is the same after it was loaded'
[Invoice, Line, Customer, Order].each(&:reset_column_information)
load_fixtures('invoices', 'lines')
same Line.last.invoice.name, 'first', 'and fixtures are, too'

# With nextval in the default's name
connection.change_column_default(:invoices, :id, -> { 'snowflake_nextval()' })
connection.schema_cache.clear!
error = fails(ActiveRecord::StatementInvalid, 'with snowflake_nextval() they fail') { load_fixtures('invoices', 'lines') }
ok error.message.include?('relation "public" does not exist'), 'on setval()', error
connection.change_column_default(:invoices, :id, -> { 'snowflake_id()' })
connection.schema_cache.clear!
load_fixtures('invoices', 'lines')
same Line.last.invoice.name, 'first', 'with snowflake_id() they do not'
finish
