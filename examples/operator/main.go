// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operator keeps websites: for each Website it makes the pages, servers and a Service,
// and says in its status where the site is.
package main

import (
	"errors"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/strata-project/strata/pkg/primary"
)

// Website is a site of one page.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec,omitempty"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec says what the page says, and how many servers serve it.
type WebsiteSpec struct {
	Page     string `json:"page"`
	Replicas int32  `json:"replicas,omitempty"`
	// Certificate is a Secret that somebody else makes, which is waited for; none where it is empty.
	Certificate string `json:"certificate,omitempty"`
}

// WebsiteStatus says where the site is.
type WebsiteStatus struct {
	primary.Status `json:",inline"`
	URL            string `json:"url,omitempty"`
}

// PrimaryStatus is what the engine writes.
func (w *Website) PrimaryStatus() *primary.Status { return &w.Status.Status }

// DeepCopyObject copies a website.
func (w *Website) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	w.Status.DeepCopyInto(&out.Status.Status)
	return &out
}

// WebsiteList is a list of websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

// DeepCopyObject copies a list.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	out := &WebsiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Website))
	}
	return out
}

// wants returns what a website is made of.
func wants(site *Website, _ primary.Seen) ([]primary.Dependent, error) {
	named := metav1.ObjectMeta{Name: site.Name}
	labels := map[string]string{"website": site.Name}
	pages := &corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"index.html": site.Spec.Page}}
	servers := &appsv1.Deployment{ObjectMeta: named}
	servers.Spec.Replicas = &site.Spec.Replicas
	servers.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	servers.Spec.Template.Labels = labels
	servers.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "nginx", Image: "docker.io/library/nginx:1.29", VolumeMounts: []corev1.VolumeMount{{Name: "pages", MountPath: "/usr/share/nginx/html"}},
		}},
		Volumes: []corev1.Volume{{Name: "pages", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: site.Name}},
		}}},
	}
	service := &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
	all := []primary.Dependent{
		{ID: "pages", Object: pages},
		{ID: "servers", Object: servers, DependsOn: []string{"pages"}},
		{ID: "service", Object: service, DependsOn: []string{"servers"}},
	}
	if site.Spec.Certificate != "" {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: site.Spec.Certificate}}
		all = append(all, primary.Dependent{ID: "certificate", Object: secret, Mode: primary.Observe})
	}
	return all, nil
}

func run() error {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(group, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, group)
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = primary.Register(mgr, primary.Kind[*Website]{
		New:     func() *Website { return &Website{} },
		Default: func(site *Website) { site.Spec.Replicas = max(site.Spec.Replicas, 1) },
		Validate: func(site *Website) error {
			if site.Spec.Page == "" {
				return errors.New("spec.page: a website without a page has nothing to say")
			}
			return nil
		},
		Wants: wants,
		Publish: func(site *Website, _ primary.Seen, _ bool) {
			site.Status.URL = fmt.Sprintf("http://%s.%s.svc", site.Name, site.Namespace)
		},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
