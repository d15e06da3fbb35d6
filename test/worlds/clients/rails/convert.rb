enable_extension 'snowflake'
enable_extension 'snowflake_convert'
execute "SELECT snowflake_convert_schema('public', generator => 'snowflake_id()')"
