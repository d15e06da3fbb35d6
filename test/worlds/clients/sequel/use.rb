require 'sequel'
require 'tap'

DB = Sequel.connect(ENV['DATABASE_URL'])

# With nextval in the name of the default's function
id = DB[:invoice].insert(name: 'a')
same DB[:invoice].first(id: id)[:name], 'a', 'an INSERT returns the key of the row'
error = fails(Sequel::DatabaseError, 'with snowflake_nextval() the reset of a sequence fails') do
  DB.reset_primary_key_sequence(:invoice)
end
ok error.message.include?('PG::InvalidName'), 'because of a name that is none', error

# As the page has it
DB.run(File.read('default.sql'))
db = Sequel.connect(ENV['DATABASE_URL'])
same db.primary_key_sequence(:invoice), nil, 'with snowflake_id() there is no sequence'
same db.reset_primary_key_sequence(:invoice), nil, 'and nothing to reset'
id = db[:invoice].insert(name: 'b')
same db[:invoice].first(id: id)[:name], 'b', 'an INSERT returns the key of the row'
ok id > 10**18, 'a snowflake ID', id
finish
