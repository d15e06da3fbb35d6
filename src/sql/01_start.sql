/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- functions of the same name
--
-- Others use some of these names, too, and CREATE FUNCTION would fail without
-- saying what to do.

DO $$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY[
        'snowflake_nextval()', 'snowflake_id()', 'uuid_v4()', 'uuid_v7()',
        'uuid_v7(timestamptz)', 'uuid_timestamp(uuid)', 'uuid_lower_bound(timestamptz)']
    LOOP
        IF pg_catalog.to_regprocedure(pg_catalog.format('%I.%s', pg_catalog.current_schema(), signature)) IS NOT NULL THEN
            RAISE EXCEPTION 'schema "%" already has a function %', pg_catalog.current_schema(), signature
                USING ERRCODE = 'duplicate_function',
                    HINT = 'Create the extension in a schema of its own: CREATE SCHEMA snowflake; CREATE EXTENSION snowflake SCHEMA snowflake;';
        END IF;
    END LOOP;
END
$$;

