// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package hostkeeper

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/machines"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/snapshots"
	"github.com/strata-project/strata/internal/ssh"
)

// The keys of a Secret with SSH keys are those that Flux uses for git.
const (
	identityKey    = "identity"
	certificateKey = "identity-cert.pub"
	knownHostsKey  = "known_hosts"
)

// The keys of a Secret with credentials for S3 are those that Flux uses for a Bucket.
const (
	accessKey = "accesskey"
	secretKey = "secretkey"
)

// problem is what somebody has to mend before anything is done.
type problem struct {
	reason  string
	message string
	// passes is true for what may come by itself, such as a Secret.
	passes bool
}

// Error is the message.
func (p *problem) Error() string { return p.message }

// access reads the keys for the hosts of a cluster from the Secrets of its namespace, and
// returns those of the hosts as well.
func (r *Reconciler) access(ctx context.Context, cluster *v1alpha1.HostCluster) (machines.Access, *ssh.Keys, error) {
	spec := cluster.Spec.SSH
	if spec.SecretRef == nil {
		return machines.Access{}, nil, &problem{
			v1alpha1.ReasonInvalidSpec, "spec.ssh.secretRef is missing: it names the Secret with the private key for the hosts, in its key " + identityKey, false,
		}
	}
	found := machines.Access{Dial: r.dial, May: r.may}
	secret, err := r.secret(ctx, cluster.Namespace, spec.SecretRef.Name)
	if err != nil {
		return found, nil, err
	}
	keys, err := keysOf(secret)
	if err != nil {
		return found, nil, err
	}
	found.Auth = keys.Recorded()
	if found.Pins, err = ssh.FixedPins(secret.Data[knownHostsKey]); err != nil {
		return found, nil, &problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s of the Secret %s cannot be read: %v", knownHostsKey, secret.Name, err), true}
	}
	found.BastionAuth = keys.Methods()
	if spec.Bastion == nil || spec.Bastion.SecretRef == nil {
		return found, keys, nil
	}
	if secret, err = r.secret(ctx, cluster.Namespace, spec.Bastion.SecretRef.Name); err != nil {
		return found, nil, err
	}
	bastion, err := keysOf(secret)
	if err != nil {
		return found, nil, err
	}
	found.BastionAuth = bastion.Methods()
	return found, keys, nil
}

// bucket opens the bucket for the snapshots of a cluster; nil where it has none. It is asked
// as whom the HostCluster's namespace has credentials for, never as the controller, and where
// hosts may be reached.
func (r *Reconciler) bucket(ctx context.Context, cluster *v1alpha1.HostCluster) (*snapshots.Bucket, error) {
	spec := cluster.Spec.Snapshots.S3
	if spec == nil {
		return nil, nil
	}
	if spec.SecretRef == nil {
		return nil, &problem{
			v1alpha1.ReasonInvalidSpec, "spec.snapshots.s3.secretRef is missing: it names the Secret with " + accessKey + " and " + secretKey + " of the bucket", false,
		}
	}
	secret, err := r.secret(ctx, cluster.Namespace, spec.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	if len(secret.Data[accessKey]) == 0 || len(secret.Data[secretKey]) == 0 {
		return nil, &problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the Secret %s lacks %s or %s", secret.Name, accessKey, secretKey), true}
	}
	return snapshots.OpenBucket(ctx, snapshots.BucketOptions{
		Endpoint: spec.Endpoint, Region: spec.Region, Bucket: spec.Bucket, Prefix: spec.Prefix,
		AccessKey: string(secret.Data[accessKey]), SecretKey: string(secret.Data[secretKey]), Dial: r.dial,
	})
}

// secret reads a Secret past any cache: none is kept in memory.
func (r *Reconciler) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &problem{v1alpha1.ReasonPending, "there is no Secret " + name + " in namespace " + namespace, true}
	case apierrors.IsForbidden(err):
		return nil, &problem{v1alpha1.ReasonAccessDenied, err.Error(), true}
	case err != nil:
		return nil, fmt.Errorf("cannot read the Secret %s: %w", name, err)
	}
	return secret, nil
}

// keysOf reads the keys of a Secret. Nothing of them is in an error.
func keysOf(secret *corev1.Secret) (*ssh.Keys, error) {
	if len(secret.Data[identityKey]) == 0 {
		return nil, &problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the Secret %s has no %s, which is the private key", secret.Name, identityKey), true}
	}
	found, err := ssh.ReadKeys(secret.Data[identityKey], secret.Data[certificateKey])
	if err != nil {
		return nil, &problem{v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the Secret %s: %v", secret.Name, err), true}
	}
	return found, nil
}

// dial connects to addresses that are allowed, as they are resolved.
func (r *Reconciler) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		return r.mayDial(at.Addr())
	}}
	return dialer.DialContext(ctx, network, address)
}

// may tells what a bastion may be asked to connect to: an address, for it alone finds out
// where a name leads.
func (r *Reconciler) may(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return &reach.RefusedError{Message: host + " is a name, and behind a bastion hosts are reached by their addresses alone"}
	}
	return r.mayDial(address)
}

func (r *Reconciler) mayDial(address netip.Addr) error {
	if len(r.Allowed.Ranges) == 0 {
		return &reach.RefusedError{Message: "no host may be reached, for no range of addresses is allowed: " + RangesFlag + " gives them"}
	}
	return r.Allowed.Address(address)
}
