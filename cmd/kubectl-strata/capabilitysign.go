// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/cmd/kubectl-strata/console"
	rules "github.com/strata-project/strata/internal/capabilities"
)

const capabilitySignLong = `Have the record of a claim's binding signed again, which says RecordUnsigned: the
controller has lost the key that it was signed with, or somebody else has written
the record. It shows what the record says, and asks. Read it: the account that it
names acts for the claim, with the templates that it has.

The controller signs the record as it was shown, and no other one of its name. That
takes the right to patch Secret ` + v1alpha1.RecordsName + ` in the controller's
namespace. A record that is not right is deleted with kubectl instead: the claim is
bound anew then.

Exit codes:
  0  the record is to be signed
  1  it cannot be`

const capabilitySignExamples = `  # What is recorded of a claim, and have it signed
  kubectl strata capability sign shop/shop-db

  # One of several records
  kubectl strata capability sign shop/shop-db --record claim.2b1c3d4e-5f60-4711-8a9b-0c1d2e3f4a5b.2`

// signing says how a record is signed again.
type signing struct {
	namespace, record string
	yes               bool
}

func newCapabilitySign(t *tool) *cobra.Command {
	s := &signing{}
	command := &cobra.Command{
		Use: "sign [NAMESPACE/]NAME", Short: "Have the record of a claim signed again", Long: capabilitySignLong, Example: capabilitySignExamples,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			of, name := named(s.namespace, args[0])
			return t.capabilitySign(command.Context(), of, name, s)
		},
	}
	command.Flags().StringVarP(&s.namespace, "namespace", "n", "default", "the namespace of the claim")
	command.Flags().StringVar(&s.record, "record", "", "the record, where the claim has several")
	command.Flags().BoolVar(&s.yes, "yes", false, "do not ask")
	return command
}

var (
	revisionResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	secretResource   = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

func (t *tool) capabilitySign(ctx context.Context, namespace, name string, s *signing) error {
	_, claim, err := t.claimOf(ctx, namespace, name)
	if err != nil {
		return err
	}
	client, err := t.Cluster.Dynamic()
	if err != nil {
		return err
	}
	controller := t.Cluster.ControllerNamespace(ctx)
	records, err := recordsOf(ctx, client, controller, claim.UID)
	if err != nil {
		return err
	}
	record, err := chosen(records, s.record)
	if err != nil {
		return fmt.Errorf("CapabilityClaim %s/%s: %w", namespace, name, err)
	}
	bound, err := rules.Decode(record.Data)
	if err != nil {
		return fmt.Errorf("ControllerRevision %s/%s: %w", controller, record.Name(), err)
	}
	t.Field("Claim", namespace+"/"+name)
	t.Field("Record", controller+"/"+record.Name())
	t.Field("Written for", bound.Claim)
	t.Field("Provider", strings.TrimSpace(bound.Provider+" "+bound.Version))
	t.Field("Account", rules.NamespaceOf(bound.Spec, controller)+"/"+cmp.Or(bound.Spec.ServiceAccountName, "(the default one)"))
	if plugin := bound.Spec.Plugin; plugin != nil {
		t.Field("Plug-in", strings.TrimPrefix(plugin.Image+"@"+plugin.Digest, "@"))
	}
	if !s.yes {
		if err := t.Confirm("Have it signed?", false); err != nil {
			return err
		}
	}
	if err := ask(ctx, client, controller, record); err != nil {
		return err
	}
	console.Say(t.Out, "the record of claim %s/%s is to be signed; kubectl strata capability why %s/%s says how that gets on", namespace, name, namespace, name)
	return nil
}

// recordsOf reads the records of a claim, the last one first.
func recordsOf(ctx context.Context, client dynamic.Interface, controller string, claim types.UID) ([]rules.Record, error) {
	options := metav1.ListOptions{LabelSelector: v1alpha1.ClaimLabel + "=" + string(claim)}
	list, err := client.Resource(revisionResource).Namespace(controller).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("cannot list the records in the namespace %s: %w", controller, err)
	}
	var found []rules.Record
	for i := range list.Items {
		read := &appsv1.ControllerRevision{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, read); err != nil {
			return nil, fmt.Errorf("cannot read ControllerRevision %s/%s: %w", controller, list.Items[i].GetName(), err)
		}
		record := rules.Record{Of: rules.RecordOfClaim, UID: claim, Number: read.Revision, Data: read.Data.Raw}
		if record.Name() == read.Name {
			found = append(found, record)
		}
	}
	slices.SortFunc(found, func(a, b rules.Record) int { return cmp.Compare(b.Number, a.Number) })
	return found, nil
}

// chosen returns the record that is meant: the last one, where all say the same.
func chosen(records []rules.Record, name string) (rules.Record, error) {
	names := make([]string, 0, len(records))
	for _, record := range records {
		if record.Name() == name {
			return record, nil
		}
		names = append(names, record.Name())
	}
	switch {
	case len(records) == 0:
		return rules.Record{}, errors.New("it has no record, and is bound to nobody")
	case name != "":
		return rules.Record{}, fmt.Errorf("it has no record %s: there is %s", name, strings.Join(names, ", "))
	case slices.ContainsFunc(records, func(one rules.Record) bool { return one.Digest() != records[0].Digest() }):
		return rules.Record{}, fmt.Errorf("it has several records: name one with --record: %s", strings.Join(names, ", "))
	}
	return records[0], nil
}

// ask adds a record to those that the controller is asked to sign.
func ask(ctx context.Context, client dynamic.Interface, controller string, record rules.Record) error {
	secrets := client.Resource(secretResource).Namespace(controller)
	note, err := secrets.Get(ctx, v1alpha1.RecordsName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read Secret %s/%s: %w", controller, v1alpha1.RecordsName, err)
	}
	asked := rules.ParseAsked(note.GetAnnotations()[v1alpha1.SignRecordsAnnotation])
	asked[record.Name()] = record.Digest()
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.SignRecordsAnnotation, asked.String())
	_, err = secrets.Patch(ctx, v1alpha1.RecordsName, types.MergePatchType, change, metav1.PatchOptions{FieldManager: console.FieldManager})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not change Secret %s/%s; ask for the right to patch it: %w", controller, v1alpha1.RecordsName, err)
	}
	if err != nil {
		return fmt.Errorf("cannot ask for the signature in Secret %s/%s: %w", controller, v1alpha1.RecordsName, err)
	}
	return nil
}
