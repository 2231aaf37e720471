// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin lets a program serve capabilities: it says of which objects an instance is
// made, and Strata makes them. A program is one type and one line:
//
//	func main() { plugin.Serve(databases{}) }
//
// What it returns hangs on what it is asked alone. It has no access to a cluster.
package plugin

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Plugin serves capabilities. It may be called by several goroutines at once.
type Plugin interface {
	// Describe says which capabilities there are. It says the same as long as the program runs.
	Describe() Description
	// Plan says of what the instance of a claim is made. It is asked again when what it has been
	// shown has changed. An error is told to nobody but whoever runs Strata; what claimants are to
	// know is in Waits.
	Plan(Request) (Plan, error)
}

// Validator is a Plugin that checks parameters beyond their schema.
type Validator interface {
	// Validate says what is wrong with the parameters of a claim.
	Validate(Request) []Problem
}

// Outsider is a Plugin that hands out what is outside of any cluster, such as a role of a server
// that exists. It has credentials of its own for that: see Credentials.
type Outsider interface {
	// Ensure hands out what a claim asks for, or brings it to that. It is called once the objects
	// of the plan are ready, and again whenever something has changed, after a restart and after an
	// error; it does the same each time. What it makes is known by Claim.UID, whatever the claim is
	// called. An error is told to claimants: passwords in it are masked.
	Ensure(ctx context.Context, request EnsureRequest) (Ensured, error)
	// Release takes that back, and succeeds where it is gone already. Until it does, the claim
	// stays.
	Release(ctx context.Context, request ReleaseRequest) error
}

// EnsureRequest is a claim with what it asks for, and with its passwords.
type EnsureRequest struct {
	Claim Claim
	// Parameters with the defaults of the schema.
	Parameters map[string]any
	// Passwords that are valid, by their names. Previous are those of before, which are valid, too,
	// while Claim.Rotating is true; others are not any more.
	Passwords, Previous map[string]string
}

// Ensured is what was handed out.
type Ensured struct {
	// Waits says why it is not there yet, and Ensure is called again soon; empty where it is.
	Waits string
	// Publishes is what the binding has beside what the plan publishes.
	Publishes []Value
}

// ReleaseRequest is a claim that goes.
type ReleaseRequest struct {
	Claim Claim
	// Parameters as they were last.
	Parameters map[string]any
	// DeleteData is true where somebody has confirmed that data may go, too. Otherwise they stay.
	DeleteData bool
}

// HealthChecker is a Plugin that knows when it cannot work. Others always can.
type HealthChecker interface {
	// Health says what keeps the program from its work; nil for nothing. It is asked before a new
	// version takes over from the one of before.
	Health() error
}

// Description says what a program serves.
type Description struct {
	// Name and Version of the program, for people.
	Name, Version string
	Capabilities  []Capability
}

// Capability is one that a program serves.
type Capability struct {
	// Capability as category/type, such as database/postgresql.
	Capability string
	// Versions that instances may have.
	Versions []string
	// Schema of the parameters, OpenAPI v3 for an object; empty for none.
	Schema json.RawMessage
	// Passwords that are made for each instance.
	Passwords []NewPassword
}

// NewPassword is one that Strata makes for each instance, and keeps.
type NewPassword struct {
	// Name, as Password has it.
	Name string
	// Length in characters; 0 is 32.
	Length int
}

// Request is a claim with what it asks for, and what it has.
type Request struct {
	Claim Claim
	// Parameters with the defaults of the schema.
	Parameters map[string]any
	// Objects that the claim has, and those that are observed, by their IDs. Of Secrets there is
	// the metadata alone.
	Objects map[string]*unstructured.Unstructured
}

// Claim is who asks.
type Claim struct {
	Name string
	// Namespace that the claim has on the cluster of the objects.
	Namespace string
	UID       string
	// Capability in small letters, and the version that was chosen of it.
	Capability, Version string
	// Cluster of the application; empty for the one that Strata runs in.
	Cluster string
	// Rotation is the number of the passwords. Rotating is true while those of before are valid,
	// too, which PreviousPassword stands for.
	Rotation int64
	Rotating bool
}

// Problem is one of the parameters of a claim.
type Problem struct {
	// Field such as size; empty for all of them.
	Field, Message string
}

// Plan says of what an instance is made.
type Plan struct {
	Objects []Object
	// Waits says why the instance is not ready, although each object is; empty where it is.
	Waits string
	// Publishes is what the binding has beside type and provider.
	Publishes []Value
}

// Object is one that a claim is to have.
type Object struct {
	// ID by which the next Request has it: small letters first, then letters and digits.
	ID string
	// Object of any type that is written as the API server reads it, with its kind. Without a
	// namespace it goes into the claim's.
	Object any
	Mode   Mode
	// HoldsData is true for an object that data go with: it is deleted once somebody says so.
	HoldsData bool
	// DeleteOnRename has what was wanted by the ID before, and by another name, deleted.
	DeleteOnRename bool
	// DependsOn names objects that must be ready before, and that go later.
	DependsOn []string
	// Waits says what the object lacks to be ready; empty where it lacks nothing that the program
	// knows of. Strata waits until its kind says that it is ready, too.
	Waits string
}

// Mode is how an object is brought about.
type Mode string

const (
	// Apply keeps the object as it is wanted. It is the zero value.
	Apply Mode = ""
	// CreateOnce makes it where it is missing, and leaves it from then on.
	CreateOnce Mode = "CreateOnce"
	// Observe waits for what somebody else has: Object has its kind and its name alone.
	Observe Mode = "Observe"
)

// Value is a key of a binding.
type Value struct {
	Key string
	// Text of it, in which Password stands for a password.
	Text string
	// Secret that it is taken from instead: one of the instance's, or one that its objects own.
	Secret *SecretKey
}

// SecretKey is a key of a Secret.
type SecretKey struct {
	// Namespace is the claim's where it is empty.
	Namespace, Name, Key string
}

// Password stands for a password in the fields of Secrets and in Text. What it is the program
// never learns.
func Password(name string) string { return mark + "passwords." + name + mark }

// PreviousPassword is as Password, for the one of before; it stands for nothing where that is
// not valid any more.
func PreviousPassword(name string) string { return mark + "previous." + name + mark }
