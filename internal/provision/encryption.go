// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/strata-project/strata/internal/encryption"
	"github.com/strata-project/strata/internal/hostclusters"
	"github.com/strata-project/strata/internal/hosts"
	"github.com/strata-project/strata/internal/observe"
	"github.com/strata-project/strata/internal/probes"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/scripts"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh"
)

// maxEncryptionSteps is how many steps there may be on the way to another key: two that
// change what API servers have, one that writes Secrets again, one that removes, and some
// where somebody was killed.
const maxEncryptionSteps = 10

// secretsAtOnce is how many Secrets are listed at once, and maxSecretPages how often.
const secretsAtOnce, maxSecretPages = 100, 10_000

// encrypt takes the cluster to the key that the manifest wants. done is false where a host is
// still at work for an earlier actor.
func (w *worker) encrypt(ctx context.Context) (done bool, err error) {
	if !slices.ContainsFunc(w.sight.Changes, func(c hostclusters.Change) bool { return c.Encryption }) {
		return true, nil
	}
	changes := w.sight.Changes
	defer func() { w.sight.Changes = changes }()
	made := map[string]string{}
	for range maxEncryptionSteps {
		has := w.sight.Providers()
		wanted := encryption.Wanted(w.Cluster.Spec.APIServer, has)
		for name := range made {
			wanted = name
		}
		if wanted == "" {
			var secret string
			wanted, secret = encryption.NewKey(w.Cluster.Spec.APIServer.Encryption.KeyGeneration)
			made[wanted] = secret
		}
		used, err := w.providersInUse(ctx)
		if err != nil {
			return false, err
		}
		done := true
		switch step := encryption.Next(has, used, wanted); {
		case step.Rewrite:
			err = w.rewriteSecrets(ctx, wanted)
		case step.Remove, step.Providers != nil:
			done, err = w.giveEncryption(ctx, step.Providers, made)
		default:
			w.Report(Event{Message: "all Secrets in etcd are written with " + wanted})
			return true, w.saveProvider(ctx, wanted)
		}
		if err != nil || !done {
			return false, err
		}
		if _, err := w.look(ctx); err != nil {
			return false, err
		}
		if w.sight.Cluster == nil {
			return false, errors.New("the cluster does not answer: " + w.sight.NotQueried)
		}
	}
	return false, fmt.Errorf("not all Secrets are written with one key after %d steps: something else changes what API servers are given", maxEncryptionSteps)
}

// providersInUse returns with what the Secrets in etcd are written.
func (w *worker) providersInUse(ctx context.Context) ([]string, error) {
	etcd, err := w.sight.Cluster.Etcd(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = etcd.Close() }()
	ctx, cancel := context.WithTimeoutCause(ctx, actionTime, fmt.Errorf("etcd does not say within %s with what Secrets are encrypted", actionTime))
	defer cancel()
	return snapshots.Providers(ctx, etcd)
}

// giveEncryption gives all API servers a configuration with some providers, or none, one host
// after another. made are keys that no host has yet.
func (w *worker) giveEncryption(ctx context.Context, providers []string, made map[string]string) (done bool, err error) {
	// What was known of all Secrets is so no more.
	if err := w.saveProvider(ctx, ""); err != nil {
		return false, err
	}
	var encrypting encryption.Configuration
	if providers != nil {
		keys, err := w.encryptionKeys(ctx)
		if err != nil {
			return false, err
		}
		maps.Copy(keys, made)
		if encrypting, err = encryption.New(providers, keys); err != nil {
			return false, err
		}
	}
	configuration, err := hostclusters.WithAPIServer(w.sight.Cluster.Configuration, w.Cluster.Spec.APIServer, encrypting.File)
	if err != nil {
		return false, err
	}
	for _, host := range w.Cluster.Spec.ControlPlane {
		if done, err := w.updateHost(ctx, host.Name, configuration, encrypting); err != nil || !done {
			return done, err
		}
	}
	return true, w.saveConfiguration(ctx, configuration)
}

// encryptionKeys returns the keys that hosts have, by their names.
func (w *worker) encryptionKeys(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	for _, host := range w.Cluster.Spec.ControlPlane {
		encrypting, err := w.encryptionOn(ctx, host.Name)
		if err != nil {
			return nil, err
		}
		if encrypting.File == "" {
			continue
		}
		_, keys, err := encryption.Read([]byte(encrypting.Content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", host.Name, err)
		}
		for name, key := range keys {
			if was, known := found[name]; known && was != key {
				return nil, fmt.Errorf("%s has another key %s than a host before: somebody has changed it", host.Name, name)
			}
			found[name] = key
		}
	}
	return found, nil
}

// encryptionOn returns the configuration of the API server on a host; its zero value where
// it has none of Strata's.
func (w *worker) encryptionOn(ctx context.Context, host string) (encryption.Configuration, error) {
	file := w.sight.Facts[host].Encryption
	if file == "" {
		return encryption.Configuration{}, nil
	}
	script, err := probes.EncryptionScript(file)
	if err != nil {
		return encryption.Configuration{}, err
	}
	result, err := w.Machines.Run(ctx, host, ssh.Command{Input: script, Timeout: askTime, MaxOutput: probes.MaxAnswer})
	if err != nil {
		return encryption.Configuration{}, err
	}
	read, err := probes.ReadEncryption(file, result.Output)
	if err != nil {
		return read, fmt.Errorf("%s: %w", host, err)
	}
	return read, nil
}

// sharedEncryption returns the configuration that a host gets whose API server is begun anew:
// that of the host through which the cluster is asked. kubeadm's own configuration names it
// then, also where etcd was restored and has that of before.
func (w *worker) sharedEncryption(ctx context.Context) (encryption.Configuration, error) {
	cluster := w.sight.Cluster
	named, isForeign := hostclusters.EncryptionIn(cluster.Configuration)
	if isForeign {
		return encryption.Configuration{}, nil
	}
	shared, err := w.encryptionOn(ctx, cluster.Leader)
	if err != nil || shared.File == named {
		return shared, err
	}
	configuration, err := hostclusters.WithEncryption(cluster.Configuration, shared.File)
	if err != nil {
		return shared, err
	}
	if err := w.saveConfiguration(ctx, configuration); err != nil {
		return shared, err
	}
	cluster.Configuration = configuration
	return shared, nil
}

// firstEncryption returns the configuration of the first host of a new cluster. One that has
// begun with a key goes on with it.
func (w *worker) firstEncryption(ctx context.Context, action hosts.Action) (encryption.Configuration, error) {
	wanted := w.Cluster.Spec.APIServer.Encryption
	if begun, err := w.encryptionOn(ctx, action.Host); err != nil || begun.File != "" || wanted == nil {
		return begun, err
	}
	name, secret := encryption.NewKey(wanted.KeyGeneration)
	return encryption.New([]string{name, encryption.InClear}, map[string]string{name: secret})
}

// rewriteSecrets has the API server write all Secrets again, by which they are written with
// the key that comes first. One that somebody else has written meanwhile is so already.
func (w *worker) rewriteSecrets(ctx context.Context, provider string) error {
	secrets := w.sight.Cluster.Client.CoreV1()
	ctx = reach.Passing(ctx)
	written := 0
	for from, pages := "", 0; ; pages++ {
		if pages > maxSecretPages {
			return fmt.Errorf("the API server lists more than %d Secrets, which are not written again", maxSecretPages*secretsAtOnce)
		}
		list, err := secrets.Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: secretsAtOnce, Continue: from})
		if apierrors.IsResourceExpired(err) {
			return nil // what is not written yet is seen in etcd
		}
		if err != nil {
			return fmt.Errorf("cannot list the Secrets to write them again: %w", err)
		}
		for i := range list.Items {
			each := &list.Items[i]
			_, err := secrets.Secrets(each.Namespace).Update(ctx, each, metav1.UpdateOptions{})
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("cannot write the Secret %s/%s again: %w", each.Namespace, each.Name, err)
			}
		}
		written += len(list.Items)
		w.Report(Event{Message: fmt.Sprintf("has written %d Secrets with %s", written, provider)})
		if from = list.Continue; from == "" {
			return nil
		}
	}
}

// saveProvider keeps in the cluster with what all Secrets are known to be written.
func (w *worker) saveProvider(ctx context.Context, provider string) error {
	objects := w.sight.Cluster.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	wanted := map[string]string{observe.WrittenWith: provider}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := objects.Get(ctx, observe.EncryptionName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: observe.EncryptionName}, Data: wanted}
			_, err = objects.Create(ctx, object, metav1.CreateOptions{})
			return err
		case err != nil || object.Data[observe.WrittenWith] == provider:
			return err
		}
		object.Data = wanted
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot write the ConfigMap %s in kube-system: %w", observe.EncryptionName, err)
	}
	return nil
}

// updateHost gives a host of the control plane what its API server is given, and waits until
// it is healthy again: the next one may stop then.
func (w *worker) updateHost(ctx context.Context, host, configuration string, encrypting encryption.Configuration) (done bool, err error) {
	action := hosts.Action{Verb: hosts.VerbUpdate, Host: host, Version: w.Cluster.Spec.Version}
	named, _ := hostclusters.EncryptionIn(w.sight.Cluster.Configuration)
	done, err = w.runScript(ctx, scripts.Job{
		Cluster: w.Cluster, ID: w.id, Action: action, Configuration: configuration, Encryption: encrypting, Kept: []string{named},
	})
	if err != nil || !done || configuration == "" {
		return done, err
	}
	return true, w.awaitHealthy(ctx, action)
}
