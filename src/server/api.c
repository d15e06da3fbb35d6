/*-------------------------------------------------------------------------
 *
 * api.c
 *	  C interface for other extensions.
 *
 * snowflake_api.h declares it, with the rule for changes.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/server/api.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/id_time.h"
#include "generator/generator.h"
#include "generator/loaded.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "server/api.h"
#include "snowflake_api.h"

static int
generate_block(int wanted, int64 *first, int64 *step)
{
	return snowflake_generate_block(wanted, 1, first, step);
}

static SnowflakeApiField
get_field(const SnowflakeScheme *scheme, SnowflakeField field)
{
	SnowflakeApiField result;

	result.width = scheme->width[field];
	result.shift = scheme->shift[field];
	return result;
}

static const SnowflakeApiScheme *
get_scheme(void)
{
	static SnowflakeApiScheme result;
	const SnowflakeScheme *scheme = snowflake_server_scheme();

	result.text = snowflake_scheme;
	result.epoch = snowflake_layout.epoch;
	result.tick_us = scheme->tick_us;
	result.timestamp = get_field(scheme, SNOWFLAKE_TIMESTAMP);
	result.datacenter = get_field(scheme, SNOWFLAKE_DATACENTER);
	result.worker = get_field(scheme, SNOWFLAKE_WORKER);
	result.sequence = get_field(scheme, SNOWFLAKE_SEQUENCE);
	return &result;
}

/*
 * The timestamp and the errors are those of the SQL function.
 */
static void
parse(int64 id, SnowflakeApiParts *parts)
{
	const SnowflakeScheme *scheme = snowflake_server_scheme();

	parts->timestamp = snowflake_id_timestamp(scheme, id, NULL);
	parts->tick = snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id);
	parts->datacenter_id =
		(int) snowflake_field_get(scheme, SNOWFLAKE_DATACENTER, id);
	parts->worker_id = (int) snowflake_field_get(scheme, SNOWFLAKE_WORKER, id);
	parts->sequence = snowflake_field_get(scheme, SNOWFLAKE_SEQUENCE, id);
}

static const SnowflakeApi server_api = {
	.version = SNOWFLAKE_API_VERSION,
	.generate = snowflake_generate,
	.generate_block = generate_block,
	.get_scheme = get_scheme,
	.parse = parse
};

/*
 * Publish the interface to other extensions.
 */
void
snowflake_publish_api(void)
{
	*find_rendezvous_variable(SNOWFLAKE_API_VARIABLE) = unconstify(SnowflakeApi *, &server_api);
}
