# PostgreSQL's official image with snowflake.
#
#	docker build -t postgres-snowflake .
#	docker build -t postgres-snowflake --build-arg PG_MAJOR=17 .
#
# A new cluster has snowflake in shared_preload_libraries.  Give each server its own
# worker ID, and run CREATE EXTENSION snowflake in each database that uses it:
#
#	docker run -e POSTGRES_PASSWORD=... postgres-snowflake -c snowflake.worker_id=1

ARG PG_MAJOR=18

FROM postgres:${PG_MAJOR} AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev make "postgresql-server-dev-${PG_MAJOR}" \
    && rm -rf /var/lib/apt/lists/*
COPY Makefile snowflake.control /snowflake/
COPY src /snowflake/src
COPY shared /snowflake/shared
COPY registry /snowflake/registry
COPY registry_client /snowflake/registry_client
COPY convert /snowflake/convert
COPY keys /snowflake/keys
WORKDIR /snowflake
RUN make && make install DESTDIR=/installed

FROM postgres:${PG_MAJOR}
COPY --from=build /installed /
RUN echo "shared_preload_libraries = 'snowflake'" >> /usr/share/postgresql/postgresql.conf.sample
