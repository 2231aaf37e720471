// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/strata-project/strata/pkg/plugin"
)

const (
	// healthTimeout bounds the question whether the server is there, and closeTimeout the end of a
	// connection.
	healthTimeout = 3 * time.Second
	closeTimeout  = time.Second
)

// names are what a claim has on the server: they hang on its UID, whatever it is called.
type names struct {
	// owner has the database, and cannot log in; login is a member of it that can.
	owner, database, login string
	// claim as NAMESPACE/NAME, for people.
	claim string
}

func namesOf(claim plugin.Claim) names {
	owner := "claim_" + strings.ReplaceAll(claim.UID, "-", "")
	return names{owner: owner, database: owner, login: fmt.Sprintf("%s_%d", owner, claim.Rotation), claim: claim.Namespace + "/" + claim.Name}
}

// connection is one with the server.
type connection struct{ *pgx.Conn }

func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.Close(ctx)
}

// run runs a statement in which %I stands for a name and %L for a text, each quoted by the server.
func (c *connection) run(ctx context.Context, statement string, args ...any) error {
	places := make([]string, len(args))
	for i := range args {
		places[i] = fmt.Sprintf(", $%d::text", i+2)
	}
	var quoted string
	if err := c.QueryRow(ctx, "SELECT format($1"+strings.Join(places, "")+")", append([]any{statement}, args...)...).Scan(&quoted); err != nil {
		return fmt.Errorf("cannot write a statement: %w", err)
	}
	_, err := c.Exec(ctx, quoted)
	var said *pgconn.PgError
	if errors.As(err, &said) { // without the statement, which may have a password
		return fmt.Errorf("the server says: %s (%s)", said.Message, said.Code)
	}
	return err
}

// has tells whether a question has an answer.
func (c *connection) has(ctx context.Context, question string, args ...any) (bool, error) {
	var found bool
	err := c.QueryRow(ctx, "SELECT EXISTS ("+question+")", args...).Scan(&found)
	return found, err
}

// lock has others wait who ask about the same claim, for as long as the connection lasts.
func (c *connection) lock(ctx context.Context, name string) error {
	_, err := c.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name)
	return err
}

// ensureOwner makes the role that the database belongs to.
func (c *connection) ensureOwner(ctx context.Context, named names) error {
	there, err := c.has(ctx, "SELECT FROM pg_roles WHERE rolname = $1", named.owner)
	if err != nil {
		return err
	}
	if !there {
		if err := c.run(ctx, `CREATE ROLE %I NOLOGIN`, named.owner); err != nil {
			return err
		}
	}
	return c.run(ctx, `GRANT %I TO CURRENT_USER`, named.owner)
}

// ensureDatabase makes the database, which nobody else may enter.
func (c *connection) ensureDatabase(ctx context.Context, named names) error {
	there, err := c.has(ctx, "SELECT FROM pg_database WHERE datname = $1", named.database)
	if err != nil {
		return err
	}
	if !there {
		if err := c.run(ctx, `CREATE DATABASE %I OWNER %I`, named.database, named.owner); err != nil {
			return err
		}
	}
	if err := c.run(ctx, `REVOKE ALL ON DATABASE %I FROM PUBLIC`, named.database); err != nil {
		return err
	}
	return c.run(ctx, `COMMENT ON DATABASE %I IS %L`, named.database, "of CapabilityClaim "+named.claim)
}

// ensureLogin makes the role that has the claim's password. What it makes belongs to the owner, so
// that the next one has it, too.
func (c *connection) ensureLogin(ctx context.Context, named names, password string, limit any) error {
	if password == "" {
		return errors.New("the request has no password app")
	}
	there, err := c.has(ctx, "SELECT FROM pg_roles WHERE rolname = $1", named.login)
	if err != nil {
		return err
	}
	if !there {
		if err := c.run(ctx, `CREATE ROLE %I NOLOGIN`, named.login); err != nil {
			return err
		}
	}
	connections := -1
	if number, is := limit.(float64); is {
		connections = int(number)
	}
	for _, statement := range []string{
		`GRANT %1$I TO %2$I`, `ALTER ROLE %2$I SET role = %1$I`,
		fmt.Sprintf(`ALTER ROLE %%2$I LOGIN PASSWORD %%3$L CONNECTION LIMIT %d`, connections),
	} {
		if err := c.run(ctx, statement, named.owner, named.login, password); err != nil {
			return err
		}
	}
	return nil
}

// dropLogins takes back all roles of a claim that can log in, but one.
func (s server) dropLogins(ctx context.Context, at *connection, named names, but string) error {
	rows, err := at.Query(ctx, "SELECT rolname FROM pg_roles WHERE rolname LIKE $1 AND rolname <> $2", strings.ReplaceAll(named.owner, "_", `\_`)+`\_%`, but)
	if err != nil {
		return err
	}
	logins, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(logins) == 0 {
		return err
	}
	there, err := at.has(ctx, "SELECT FROM pg_database WHERE datname = $1", named.database)
	if err != nil {
		return err
	}
	for _, login := range logins {
		if err := at.run(ctx, `ALTER ROLE %I NOLOGIN`, login); err != nil {
			return err
		}
		if _, err := at.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", login); err != nil {
			return err
		}
		if there {
			if err := s.giveUp(ctx, named, login); err != nil {
				return err
			}
		}
		if err := at.run(ctx, `DROP ROLE %I`, login); err != nil {
			return err
		}
	}
	return nil
}

// giveUp gives the owner what a role has in the database after all, and takes its rights there.
func (s server) giveUp(ctx context.Context, named names, login string) error {
	inside, err := s.connect(ctx, named.database)
	if err != nil {
		return err
	}
	defer inside.close()
	if err := inside.run(ctx, `GRANT %I TO CURRENT_USER`, login); err != nil {
		return err
	}
	if err := inside.run(ctx, `REASSIGN OWNED BY %I TO %I`, login, named.owner); err != nil {
		return err
	}
	return inside.run(ctx, `DROP OWNED BY %I`, login)
}
