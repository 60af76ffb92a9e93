CREATE TABLE lineage (
	id TEXT PRIMARY KEY, tenant TEXT NOT NULL, api TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
	version INTEGER NOT NULL, updated INTEGER NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX lineage_key ON lineage (tenant, api, agent, session, updated);
CREATE INDEX lineage_updated ON lineage (updated);
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;
-- The next version.
ALTER TABLE lineage ADD COLUMN reader TEXT NOT NULL DEFAULT '';
ALTER TABLE lineage ADD COLUMN kept TEXT NOT NULL DEFAULT '';
CREATE INDEX lineage_reader ON lineage (reader, updated) WHERE kept <> '';
CREATE INDEX lineage_kept ON lineage (tenant, kept) WHERE kept <> '';
CREATE TABLE original (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, hash BLOB NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX original_hash ON original (tenant, hash, bytes);
CREATE TABLE kept (tenant TEXT NOT NULL, name TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, original INTEGER NOT NULL,
	PRIMARY KEY (tenant, name, n)) WITHOUT ROWID;
CREATE INDEX kept_original ON kept (original);
CREATE TABLE handle (handle TEXT NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (handle, tenant, name)) WITHOUT ROWID;
PRAGMA user_version = 2;
-- The next version.
ALTER TABLE lineage ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
ALTER TABLE kept ADD COLUMN checksum BLOB NOT NULL DEFAULT x'';
PRAGMA user_version = 3;
