-- Hosted servers as they are wanted. `settings` and `policy` are JSON.
CREATE TABLE servers (
  id          TEXT PRIMARY KEY NOT NULL,
  tenant      TEXT NOT NULL,
  created_ms  INTEGER NOT NULL,
  changed_ms  INTEGER NOT NULL,
  settings    TEXT NOT NULL,
  policy      TEXT NOT NULL,
  -- What was uploaded last, and what runs: a bundle that does not build never takes the place of one that does.
  uploaded    TEXT,
  deployed    TEXT
) STRICT;
CREATE INDEX servers_by_tenant ON servers (tenant);

-- What the runner told, by its own numbers.
CREATE TABLE events (
  seq     INTEGER PRIMARY KEY NOT NULL,
  tenant  TEXT NOT NULL,
  server  TEXT NOT NULL,
  at_ms   INTEGER NOT NULL,
  body    TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_server ON events (server, seq);

-- Sums of the runner's windows.
CREATE TABLE usage (
  tenant          TEXT NOT NULL,
  server          TEXT NOT NULL,
  hour_unix_s     INTEGER NOT NULL,
  cpu_us          INTEGER NOT NULL,
  memory_byte_s   INTEGER NOT NULL,
  storage_byte_s  INTEGER NOT NULL,
  egress_bytes    INTEGER NOT NULL,
  requests        INTEGER NOT NULL,
  PRIMARY KEY (tenant, server, hour_unix_s)
) STRICT;

-- How far the runner's numbered streams were taken in; changed together with what was taken in.
CREATE TABLE cursors (
  name   TEXT PRIMARY KEY NOT NULL,
  value  INTEGER NOT NULL
) STRICT;

CREATE TABLE tenants (
  id    TEXT PRIMARY KEY NOT NULL,
  plan  TEXT NOT NULL
) STRICT;
