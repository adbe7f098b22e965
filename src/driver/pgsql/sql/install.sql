-- SPDX-License-Identifier: MIT
-- install.sql - what surrounds the schema's text when it is applied.

-- name: install_schema
-- in: $1 name of the schema (text)
-- out: is it there
-- Asked before CREATE SCHEMA, which demands a right on the database even if there is
-- nothing to do. Two at once: the second one finds it made, or is refused (42P06, 23505)
-- and then finds it made.
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1);

-- name: install_path
-- in: $1 the schema as a quoted identifier (text)
-- out: the setting, for the rest of this transaction
-- After BEGIN and before the schema's text: the tables go to that schema, and nothing is
-- found anywhere else. The functions keep it, so what is temporary comes last. Two that
-- install: the text itself begins with a lock, so the second one runs on what the first one
-- committed, and finds everything there.
SELECT pg_catalog.set_config('search_path', $1 || ', pg_temp', true);

-- name: install_make_schema
-- in: nothing
-- out: nothing
-- Outside of the transaction that makes the tables: one that loses a race against
-- another installation fails alone (23505), and the schema is there.
-- The last word is replaced like any other mention of the schema, without its dot.
CREATE SCHEMA IF NOT EXISTS dblock_schema;
