// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/test/controlplane"
)

// everyKind are the layers of a bundle whose charts come from a registry and from a git
// repository, with a directory of Flux's, a Job that runs to its end and a layer that only
// waits.
const everyKind = `
  inputs: [{name: text, default: first}]
  layers:
  - name: charts
    applications:
    - {name: from-registry, application: PREFIX-registry, version: 1.0.0, values: {data: {text: "${inputs.text}"}}}
    - {name: from-git, application: PREFIX-git, version: 1.0.0, values: {data: {text: "${inputs.text}"}}}
    job:
      name: migrate
      namespace: PREFIX
      spec: {backoffLimit: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/migrate:1", args: ["${inputs.text}"]}]}}}
  - name: gate
    dependsOn: [charts]
    waitFor: [{apiVersion: v1, kind: ConfigMap, namespace: PREFIX, name: from-git, readyExpr: "object.data.text != ''"}]
  - name: directory
    dependsOn: [gate]
    source: {name: addons, namespace: PREFIX, path: ./extra}
`

// catalogueOfEveryKind publishes a chart in a registry and in a git repository.
func (f *fixture) catalogueOfEveryKind() {
	f.Helper()
	f.must(stack.oci.PushChart(f.ctx, f.prefix+"/charts/configmap", "configmap", "1.0.0"))
	repo, err := stack.git.NewRepo(f.prefix + "-charts")
	f.must(err)
	commit, err := repo.Replace("charts", controlplane.Charts())
	f.must(err)
	for name, chart := range map[string]string{
		"registry": fmt.Sprintf("{oci: {url: %q, insecure: true}}", stack.oci.URL(f.prefix+"/charts/configmap")),
		"git":      fmt.Sprintf("{git: {url: %q, path: ./configmap, commit: %s}}", repo.URL(), commit),
	} {
		app := &v1alpha1.HelmApplication{}
		f.written(app, fmt.Sprintf("metadata: {name: PREFIX-%s}\nspec:\n  versions:\n  - {version: 1.0.0, namespace: {name: PREFIX}, chart: %s}\n", name, chart))
		f.Cleanup(func() { f.must(client.IgnoreNotFound(stack.client.Delete(f.ctx, app))) })
	}
}

// Charts come from wherever the catalogue says, a Job runs to its end before what depends
// on its layer begins, anew for each content, and a directory is used as it stands. A
// bundle that is deleted meanwhile takes nothing away.
func TestBundleOfEveryKind(t *testing.T) {
	f := newFixture(t)
	f.catalogueOfEveryKind()
	f.push(map[string]string{"extra/settings.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: %s}\ndata: {from: directory}\n", f.prefix)})
	bundle := f.bundle("1.0.0", everyKind)
	f.platform("fleet", "  bundle: {family: PREFIX}\n  layerTemplate: {orphanGrace: 1s}\n")
	platform := f.platformReady("fleet", "1.0.0")
	if got := platform.Status.Layers; got != (v1alpha1.LayerCount{Deployed: 3, Total: 3}) {
		t.Errorf("it counts layers %+v", got)
	}
	tells := func(text string) error {
		for _, name := range []string{"from-registry", "from-git"} {
			if data, err := f.configMapOn(stack.client, f.prefix, name); err != nil || data["text"] != text {
				return fmt.Errorf("ConfigMap %s has %v: %w", name, data, err)
			}
		}
		return nil
	}
	f.must(tells("first"))
	ran := f.ranOnce("first")
	extra := &corev1.ConfigMap{}
	f.must(stack.client.Get(f.ctx, types.NamespacedName{Namespace: f.prefix, Name: "extra"}, extra))
	if extra.CreationTimestamp.Before(ran.Status.CompletionTime) || extra.Data["from"] != "directory" {
		t.Errorf("the directory was there at %s, and the Job had ended at %s", extra.CreationTimestamp, ran.Status.CompletionTime)
	}

	t.Log("another content runs the Job again")
	f.editPlatform("fleet", `{"spec":{"inputs":{"text":"second"}}}`)
	f.eventually("the Job of the second content has run", func() error {
		if err := tells("second"); err != nil {
			return err
		}
		return f.hasJob("second")
	})
	f.ranOnce("second")

	t.Log("the bundle is deleted while it is in use, and comes back")
	f.must(stack.client.Delete(f.ctx, bundle))
	f.platformSays("fleet", v1alpha1.ReadyCondition, metav1.ConditionFalse, "there is no ApplicationBundle of family "+f.prefix)
	f.throughout(2*time.Second, "what is installed stays", func() error {
		for _, name := range []string{"from-registry", "from-git"} {
			release := &helmv2.HelmRelease{}
			if f.absent(release, name) || release.DeletionTimestamp != nil {
				return errors.New(name + " goes")
			}
		}
		return tells("second")
	})
	f.bundle("1.0.0", everyKind)
	f.platformReady("fleet", "1.0.0")
	f.platformGone("fleet")
	f.nothingLeft(stack.client, "the management cluster")
}

// jobOf returns the Job that was given a text; nil for none.
func (f *fixture) jobOf(text string) *batchv1.Job {
	f.Helper()
	jobs := &batchv1.JobList{}
	f.must(stack.client.List(f.ctx, jobs, client.InNamespace(f.prefix)))
	for i := range jobs.Items {
		if job := &jobs.Items[i]; strings.Join(job.Spec.Template.Spec.Containers[0].Args, "") == text {
			return job
		}
	}
	return nil
}

func (f *fixture) hasJob(text string) error {
	if f.jobOf(text) == nil {
		return errors.New("there is none")
	}
	return nil
}

// ranOnce checks that the Job of a text has ended well.
func (f *fixture) ranOnce(text string) *batchv1.Job {
	f.Helper()
	var job *batchv1.Job
	f.eventually("the Job of "+text+" has ended", func() error {
		if job = f.jobOf(text); job == nil || job.Status.CompletionTime == nil || job.Status.Succeeded != 1 {
			return fmt.Errorf("it is %+v", job)
		}
		return nil
	})
	return job
}

// chosenApplications are four applications of one layer, of which inputs turn off all but
// the first, or all.
const chosenApplications = `
  inputs: [{name: more, type: Boolean, default: true}, {name: any, type: Boolean, default: true}]
  layers:
  - name: apps
    applications:
    - {name: one, application: PREFIX-app, version: 1.0.0, when: inputs.any}
    - {name: two, application: PREFIX-app, version: 1.0.0, when: inputs.more && inputs.any, dependsOn: [one]}
    - {name: three, application: PREFIX-app, version: 1.0.0, when: inputs.more && inputs.any, dependsOn: [two]}
    - {name: four, application: PREFIX-app, version: 1.0.0, when: inputs.more && inputs.any}
`

// Applications that inputs turn off go although they are most of their layer, or all of it:
// the bundle says that they may. They are back when they are turned on.
func TestInputsTurnApplicationsOff(t *testing.T) {
	f := newFixture(t)
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", chosenApplications)
	f.platform("fleet", "  bundle: {family: PREFIX}\n  layerTemplate: {orphanGrace: 1s}\n")
	f.platformReady("fleet", "1.0.0")
	there := func(want ...string) {
		t.Helper()
		f.eventually(fmt.Sprintf("there are %v", want), func() error {
			for _, name := range []string{"one", "two", "three", "four"} {
				if f.missing(stack.client, &corev1.ConfigMap{}, name) == slices.Contains(want, name) {
					return fmt.Errorf("whether %s is there is wrong", name)
				}
			}
			return nil
		})
		f.platformReady("fleet", "1.0.0")
	}
	there("one", "two", "three", "four")
	f.editPlatform("fleet", `{"spec":{"inputs":{"more":false}}}`)
	there("one")
	f.editPlatform("fleet", `{"spec":{"inputs":{"any":false}}}`)
	there()
	f.editPlatform("fleet", `{"spec":{"inputs":{"any":true,"more":true}}}`)
	there("one", "two", "three", "four")
}

// A layer's templates read an object that another layer of the bundle waits for, once it is
// as that layer wants it, and follow what they read of it and nothing else.
func TestTemplatesReadWhatAnotherLayerWaitsFor(t *testing.T) {
	f := newFixture(t)
	f.application("app", "configmap", "1.0.0")
	f.bundle("1.0.0", `
  layers:
  - name: edge
    waitFor: [{apiVersion: v1, kind: ConfigMap, namespace: PREFIX, name: published, readyExpr: "has(object.data) && 'address' in object.data", as: published}]
    applications: [{name: gateway, application: PREFIX-app, version: 1.0.0}]
  - name: apps
    applications: [{name: apps, application: PREFIX-app, version: 1.0.0, values: {data: {at: "http://${objects.published.data.address}:80"}}}]
`)
	f.platform("shop", "  bundle: {family: PREFIX}\n")
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.prefix, Name: "published"}}
	f.eventually("the layers are there", func() error {
		return stack.client.Get(f.ctx, types.NamespacedName{Name: f.name("shop-apps")}, &v1alpha1.AddonsLayer{})
	})
	f.state("shop-apps", v1alpha1.StatePending, "waits for ConfigMap "+f.prefix+"/published, which layer edge waits for: it does not exist")
	f.must(stack.client.Create(f.ctx, published))
	f.state("shop-apps", v1alpha1.StatePending, "published, which layer edge waits for: is waited for until")
	reads := func(want string) {
		t.Helper()
		f.eventually("the release has the address "+want, func() error {
			data, err := f.configMapOn(stack.client, f.prefix, "apps")
			if err == nil && data["at"] != want {
				err = fmt.Errorf("it has %v", data)
			}
			return err
		})
		f.platformReady("shop", "1.0.0")
	}
	f.patch(published, `{"data":{"address":"192.0.2.1"}}`)
	reads("http://192.0.2.1:80")
	digest := f.get("shop-apps").Status.Digest
	f.patch(published, `{"data":{"other":"yes"}}`)
	f.patch(published, `{"data":{"address":"192.0.2.2"}}`)
	reads("http://192.0.2.2:80")
	release := f.release("apps")
	if release.GetGeneration() != 2 || f.get("shop-apps").Status.Digest == digest {
		t.Errorf("the release was written %d times for two addresses", release.GetGeneration())
	}
	t.Log("what is gone takes nothing away")
	f.must(stack.client.Delete(f.ctx, published))
	f.state("shop-apps", v1alpha1.StatePending, "it does not exist")
	if f.missing(stack.client, &corev1.ConfigMap{}, "apps") {
		t.Error("the release is gone")
	}
}
