// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command postgres is a plug-in that hands out databases of a PostgreSQL server that exists, each
// with a role of its own. The next password is that of another role, so that the one of before
// stays valid until all have it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/strata-project/strata/pkg/plugin"
)

func main() { plugin.Serve(server{credentials: plugin.Credentials()}) }

// server hands out databases of one server.
type server struct {
	// credentials is the folder with the file uri: the address of the server, with a role that may
	// create roles and databases.
	credentials string
}

const schema = `{"type": "object", "properties": {"connectionLimit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20,
"description": "How many connections a role may have at once"}}}`

// Describe says that it has databases.
func (server) Describe() plugin.Description {
	return plugin.Description{Name: "postgres", Version: "1.0.0", Capabilities: []plugin.Capability{{
		Capability: "database/postgresql", Schema: json.RawMessage(schema), Passwords: []plugin.NewPassword{{Name: "app"}},
	}}}
}

// Plan makes no objects: all that a claim gets is on the server.
func (server) Plan(plugin.Request) (plugin.Plan, error) { return plugin.Plan{}, nil }

// Health asks the server.
func (s server) Health() error {
	if s.credentials == "" {
		return nil // it can be described, and hands out nothing
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	at, err := s.connect(ctx, "")
	if err != nil {
		return err
	}
	defer at.close()
	return at.Ping(ctx)
}

// Ensure hands out a database, and the role whose password is the claim's.
func (s server) Ensure(ctx context.Context, request plugin.EnsureRequest) (plugin.Ensured, error) {
	at, err := s.connect(ctx, "")
	if err != nil {
		return plugin.Ensured{}, err
	}
	defer at.close()
	named := namesOf(request.Claim)
	if err := at.lock(ctx, named.owner); err != nil {
		return plugin.Ensured{}, err
	}
	for _, step := range []func() error{
		func() error { return at.ensureOwner(ctx, named) },
		func() error { return at.ensureDatabase(ctx, named) },
		func() error {
			return at.ensureLogin(ctx, named, request.Passwords["app"], request.Parameters["connectionLimit"])
		},
	} {
		if err := step(); err != nil {
			return plugin.Ensured{}, err
		}
	}
	if !request.Claim.Rotating {
		if err := s.dropLogins(ctx, at, named, named.login); err != nil {
			return plugin.Ensured{}, err
		}
	}
	host, port := at.Config().Host, fmt.Sprint(at.Config().Port)
	uri := &url.URL{Scheme: "postgresql", Host: host + ":" + port, Path: "/" + named.database}
	return plugin.Ensured{Publishes: []plugin.Value{
		{Key: "host", Text: host},
		{Key: "port", Text: port},
		{Key: "database", Text: named.database},
		{Key: "username", Text: named.login},
		{Key: "password", Text: plugin.Password("app")},
		{Key: "uri", Text: strings.Replace(uri.String(), "://", "://"+named.login+":"+plugin.Password("app")+"@", 1)},
	}}, nil
}

// Release takes the roles back. The database stays, unless its data may go.
func (s server) Release(ctx context.Context, request plugin.ReleaseRequest) error {
	at, err := s.connect(ctx, "")
	if err != nil {
		return err
	}
	defer at.close()
	named := namesOf(request.Claim)
	if err := at.lock(ctx, named.owner); err != nil {
		return err
	}
	if err := s.dropLogins(ctx, at, named, ""); err != nil {
		return err
	}
	if !request.DeleteData {
		return nil
	}
	if err := at.run(ctx, `DROP DATABASE IF EXISTS %I WITH (FORCE)`, named.database); err != nil {
		return err
	}
	return at.run(ctx, `DROP ROLE IF EXISTS %I`, named.owner)
}

// connect connects with a database of the server; with the one of the address where it is empty.
func (s server) connect(ctx context.Context, database string) (*connection, error) {
	if s.credentials == "" {
		return nil, errors.New("there are no credentials: the provider must name some")
	}
	uri, err := os.ReadFile(filepath.Join(s.credentials, "uri"))
	if err != nil {
		return nil, errors.New("the credentials have no file uri")
	}
	config, err := pgx.ParseConfig(strings.TrimSpace(string(uri)))
	if err != nil {
		return nil, errors.New("the credentials' uri is no address of a PostgreSQL server") // which may have a password
	}
	if database != "" {
		config.Database = database
	}
	over, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect with %s:%d: %w", config.Host, config.Port, err)
	}
	return &connection{over}, nil
}
