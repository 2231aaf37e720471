{{/* The chart's name, cut to what a label takes. */}}
{{- define "strata.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of everything that the chart makes. */}}
{{- define "strata.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "strata.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "strata.selectorLabels" -}}
app.kubernetes.io/name: {{ include "strata.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "strata.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "strata.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: strata
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "strata.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "strata.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "strata.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The image of what keeps HostClusters. Values that name one of the two images by a digest
say which the other one is: two programs of different releases are not what anybody asks for.
The chart of a release lists its own images in an annotation. */}}
{{- define "strata.hostsImage" -}}
{{- $image := .Values.image -}}
{{- $own := dig "image" (dict "repository" "" "tag" "" "digest" "") .Values.hosts -}}
{{- $released := index .Chart.Annotations "artifacthub.io/images" | default "" -}}
{{- $repository := default (printf "%s-hosts" $image.repository) $own.repository -}}
{{- if $own.digest -}}
{{- if and (contains $own.digest $released) (not (and $image.digest (contains $image.digest $released))) -}}
{{- fail "image names another image than this release's, and hosts.image the one of this release: let hosts.image name the one that belongs to it, by hosts.image.digest, or by hosts.image.tag with an empty digest" -}}
{{- end -}}
{{- printf "%s@%s" $repository $own.digest -}}
{{- else if and $image.digest (not $own.tag) -}}
{{- fail "image.digest names the image of the controller alone: name that of the controller of hosts with hosts.image.digest or hosts.image.tag" -}}
{{- else -}}
{{- printf "%s:%s" $repository (coalesce $own.tag $image.tag .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The service account as the subject of a binding. */}}
{{- define "strata.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "strata.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* What keeps HostClusters is another program, which no selector of the controller finds. */}}
{{- define "strata.hostsSelectorLabels" -}}
app.kubernetes.io/name: {{ include "strata.name" . }}-hosts
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "strata.hostsLabels" -}}
{{- merge (include "strata.hostsSelectorLabels" . | fromYaml) (include "strata.labels" . | fromYaml) | toYaml -}}
{{- end -}}

{{- define "strata.hostsSubjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "strata.fullname" . }}-hosts
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* A file of rules without its comments. */}}
{{- define "strata.rules" -}}
{{- regexReplaceAll "(?m)^#.*\n" (.Files.Get .file) "" | trim -}}
{{- end -}}

{{/* The whole seconds of a duration such as 1h30m. Prometheus reads no fractions
and only one order of units; PromQL compares numbers. */}}
{{- define "strata.seconds" -}}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|s|m|h)" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get $units $unit)) -}}
{{- end -}}
{{- ceil $sum | int64 -}}
{{- end -}}

{{/* Says true where metrics are served over TLS, to those who may read them. */}}
{{- define "strata.metricsSecure" -}}
{{- if or .Values.metrics.secure .Values.lockdown -}}true{{- end -}}
{{- end -}}

{{/* Refuses values that would take back what lockdown promises. */}}
{{- define "strata.lockdown" -}}
{{- if .Values.lockdown -}}
{{- if .Values.rbac.clusterAdmin -}}
{{- fail "lockdown and rbac.clusterAdmin exclude each other: a controller with every right is held by nothing" -}}
{{- end -}}
{{- if has "*" .Values.artifacts.hosts -}}
{{- fail "lockdown: artifacts.hosts must not have *, which has artifacts fetched from wherever a source's status says" -}}
{{- end -}}
{{- if and .Values.remoteClusters.enabled (not .Values.remoteClusters.allowedRanges) -}}
{{- fail "lockdown: remoteClusters.allowedRanges must say where other clusters are; without it a kubeconfig leads to whatever this cluster can reach" -}}
{{- end -}}
{{- range .Values.remoteClusters.allowedRanges -}}
{{- if hasSuffix "/0" . -}}
{{- fail (printf "lockdown: remoteClusters.allowedRanges must not have %s, which is every address" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.hosts.enabled (not .Values.hosts.namespaces) -}}
{{- fail "lockdown: hosts.namespaces must say whose HostClusters are kept; without it the controller of hosts reads and writes the Secrets of all namespaces" -}}
{{- end -}}
{{- if .Values.hosts.enabled -}}
{{- range .Values.hosts.extraArgs -}}
{{- if regexMatch "^--(namespaces|allowed-host-|snapshot-|metrics-secure|insecure-)" . -}}
{{- fail (printf "lockdown: hosts.extraArgs must not have %s" .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.hosts.allowedCIDRs -}}
{{- if hasSuffix "/0" . -}}
{{- fail (printf "lockdown: hosts.allowedCIDRs must not have %s, which is every address" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraArgs -}}
{{- if regexMatch "^--(no-cross-namespace-refs|source-namespaces|require-service-account|no-secrets-in-names|insecure-|artifact-hosts|allowed-cluster-|metrics-secure)" . -}}
{{- fail (printf "lockdown: extraArgs must not have %s" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
