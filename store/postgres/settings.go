package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrUnsafe: the server acknowledges commits that a crash of it can lose.
var ErrUnsafe = errors.New("the server does not keep what it acknowledges")

// minimumVersion is the first major version of PostgreSQL that this store works with: the
// oldest whose functions it uses and that its tests run on.
const minimumVersion = 14

// Setting is a finding about the server or about the rights of the user.
type Setting struct {
	// Name is the setting or the right, Value what it is.
	Name, Value string
	// Problem says what is wrong and what to do; "" if nothing is.
	Problem string
	// Warning says that Weir works nevertheless.
	Warning bool
}

// waitForServer connects, and waits for a server that starts.
func (s *Store) waitForServer(ctx context.Context) error {
	return s.repeat(ctx, func(ctx context.Context) error { return s.pool.Ping(ctx) })
}

// checkDurability refuses a server that loses acknowledged commits or is too old.
func (s *Store) checkDurability(ctx context.Context) error {
	settings, err := s.serverSettings(ctx)
	if err != nil {
		return err
	}
	for _, x := range settings {
		if x.Problem != "" && !x.Warning {
			return fmt.Errorf("%w: %s is %s: %s", ErrUnsafe, x.Name, x.Value, x.Problem)
		}
	}
	return nil
}

// serverSettings reads the settings on which the promises of the store depend.
func (s *Store) serverSettings(ctx context.Context) ([]Setting, error) {
	var version int
	var sync, fsync, fullPages, encoding, standbys string
	err := s.queryRow(ctx, []any{&version, &sync, &fsync, &fullPages, &encoding, &standbys}, `SELECT current_setting('server_version_num')::int,
		current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('server_encoding'), current_setting('synchronous_standby_names')`)
	if err != nil {
		return nil, err
	}
	out := []Setting{
		{Name: "version", Value: fmt.Sprintf("%d.%d", version/10000, version%10000)},
		{Name: "server_encoding", Value: encoding},
		{Name: "synchronous_commit", Value: sync},
		{Name: "fsync", Value: fsync},
		{Name: "full_page_writes", Value: fullPages},
		{Name: "synchronous_standby_names", Value: standbys},
	}
	if version/10000 < minimumVersion {
		out[0].Problem = fmt.Sprintf("use PostgreSQL %d or later", minimumVersion)
	}
	if encoding != "UTF8" {
		out[1].Problem = "create the database with ENCODING 'UTF8'"
	}
	if sync == "off" {
		out[2].Problem = "a crash loses acknowledged commits; set it to on for this database or user: ALTER DATABASE ... SET synchronous_commit = on"
	}
	if fsync == "off" {
		out[3].Problem = "a power failure destroys the database; set fsync = on in postgresql.conf"
	}
	if fullPages == "off" {
		out[4].Problem, out[4].Warning = "a power failure can damage pages unless the file system writes 8 KB atomically; set full_page_writes = on", true
	}
	if standbys == "" {
		out[5].Problem, out[5].Warning = "no standby confirms commits: if a standby is promoted after a failure, it may lack the last acknowledged commits", true
	}
	return out, nil
}

// Settings returns the settings of the server and the rights of the user, with what is wrong
// with them, for `weir doctor`.
func (s *Store) Settings(ctx context.Context) ([]Setting, error) {
	out, err := s.serverSettings(ctx)
	if err != nil {
		return nil, s.wrap("read settings", err)
	}
	var missing []string
	var pooled bool
	rights := Setting{Name: "rights", Value: "may read and write all tables"}
	err = s.queryRow(ctx, []any{&missing}, `SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname), '{}') FROM pg_class c
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
		AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
			AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))`)
	if err != nil {
		return nil, s.wrap("read rights", err)
	}
	if len(missing) > 0 {
		rights.Value = "may not read and write " + strings.Join(missing, ", ")
		rights.Problem = "GRANT SELECT, INSERT, UPDATE, DELETE on these tables to the user"
	}
	// A transaction pooler gives statements outside of transactions to other connections.
	err = s.queryRow(ctx, []any{&pooled}, "SELECT current_setting('application_name') <> 'weir' AND inet_server_port() IS DISTINCT FROM current_setting('port')::int AND inet_server_port() IS NOT NULL")
	if err != nil {
		return nil, s.wrap("read connection", err)
	}
	pooler := Setting{Name: "connection", Value: "direct"}
	if pooled {
		pooler = Setting{Name: "connection", Value: "through another port", Warning: true, Problem: "a pooler must work in session mode, because Weir prepares statements and listens"}
	}
	contents, err := s.contentSetting(ctx)
	return append(out, rights, pooler, contents), s.wrap("read data keys", err)
}

// contentSetting says in what form contents are written.
func (s *Store) contentSetting(ctx context.Context) (Setting, error) {
	out := Setting{Name: "contents", Value: "not encrypted"}
	var keys, others int
	current := s.keys.codec.Current()
	err := s.queryRow(ctx, []any{&keys, &others}, "SELECT count(*), count(*) FILTER (WHERE master <> $1) FROM data_key", current)
	switch {
	case current != "":
		out.Value = fmt.Sprintf("encrypted, %d data keys, master key %s", keys, current)
		if others > 0 {
			out.Warning = true
			out.Problem = fmt.Sprintf("%d data keys are wrapped by an earlier master key; wrap them with `weir store rewrap`", others)
		}
	case keys > 0:
		out.Value = fmt.Sprintf("new contents are not encrypted, and earlier ones are, %d data keys", keys)
		out.Problem, out.Warning = "set storage.encryption.key to encrypt new contents", true
	}
	return out, err
}
