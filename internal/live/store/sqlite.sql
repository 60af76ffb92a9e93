CREATE TABLE lineage (
	id TEXT PRIMARY KEY, tenant TEXT NOT NULL, api TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
	version INTEGER NOT NULL, updated INTEGER NOT NULL, data BLOB NOT NULL,
	reader TEXT NOT NULL DEFAULT '', kept TEXT NOT NULL DEFAULT '', checksum BLOB NOT NULL DEFAULT x''
) WITHOUT ROWID;
CREATE INDEX lineage_key ON lineage (tenant, api, agent, session, updated);
CREATE INDEX lineage_updated ON lineage (updated);
CREATE INDEX lineage_reader ON lineage (reader, updated) WHERE kept <> '';
CREATE INDEX lineage_kept ON lineage (tenant, kept) WHERE kept <> '';
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE original (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, hash BLOB NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX original_hash ON original (tenant, hash, bytes);
CREATE TABLE kept (tenant TEXT NOT NULL, name TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, original INTEGER NOT NULL,
	checksum BLOB NOT NULL DEFAULT x'', PRIMARY KEY (tenant, name, n)) WITHOUT ROWID;
CREATE INDEX kept_original ON kept (original);
CREATE TABLE handle (handle TEXT NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (handle, tenant, name)) WITHOUT ROWID;
PRAGMA user_version = 3;
