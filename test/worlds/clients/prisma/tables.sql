CREATE EXTENSION snowflake;
CREATE TABLE "Invoice" (
    "id" bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    "name" text NOT NULL
);
CREATE TABLE "Line" (
    "id" bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    "invoiceId" bigint NOT NULL REFERENCES "Invoice" ON UPDATE CASCADE
);
