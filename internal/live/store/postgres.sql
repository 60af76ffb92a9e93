CREATE TABLE lineage (
	id text COLLATE "C" PRIMARY KEY, tenant text NOT NULL, api text NOT NULL, agent text NOT NULL, session text NOT NULL,
	version bigint NOT NULL, updated bigint NOT NULL, data bytea NOT NULL, reader text NOT NULL, kept text NOT NULL,
	checksum bytea NOT NULL DEFAULT ''
);
ALTER TABLE lineage ALTER COLUMN data SET COMPRESSION lz4;
CREATE INDEX lineage_key ON lineage (tenant, api, agent, session);
CREATE INDEX lineage_updated ON lineage (updated);
CREATE INDEX lineage_reader ON lineage (reader, updated) WHERE kept <> '';
CREATE INDEX lineage_kept ON lineage (tenant, kept) WHERE kept <> '';
CREATE TABLE secret (name text PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE original (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, hash bytea NOT NULL, bytes bigint NOT NULL, data bytea NOT NULL);
ALTER TABLE original ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX original_hash ON original (tenant, hash);
CREATE INDEX original_bytes ON original (bytes);
CREATE TABLE kept (tenant text NOT NULL, name text NOT NULL, n bigint NOT NULL, kind text NOT NULL, original bigint NOT NULL REFERENCES original,
	checksum bytea NOT NULL DEFAULT '', PRIMARY KEY (tenant, name, n));
CREATE INDEX kept_original ON kept (original);
CREATE TABLE handle (handle text NOT NULL, tenant text NOT NULL, name text NOT NULL, PRIMARY KEY (handle, tenant, name));
CREATE TABLE layout (version int NOT NULL);
INSERT INTO layout VALUES (2);
