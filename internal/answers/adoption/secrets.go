// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// secretKey are names of what is secret.
	secretKey = regexp.MustCompile(
		`(?i)passw|passphrase|token|secret|credential|api_?-?key|private_?-?key|access_?-?key|auth_?-?key|encryption_?-?key|signing_?-?key|htpasswd|connection_?-?string`,
	)
	// plainKey are names that look like those, and only say where the secret is, or
	// that there is one.
	plainKey = regexp.MustCompile(
		`(?i)^existing|^image_?pull_?secrets$|(name|names|ref|refs|keyref|enabled|create|path|file|ttl|annotations|labels)$|secretkey$|passwordkey$|passwordskey$|tokenkey$`,
	)
	// secretText is text that is secret, whatever its name.
	secretText = regexp.MustCompile(
		`(?i)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----|[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@|` +
			`(password|passwd|token|secret|api_?-?key)[a-z_-]*=[^\s$]|` +
			`(?m)^\s*["']?[a-z_.-]*(password|passwd|token|secret|api_?-?key)["']?\s*:\s*["']?[^\s$"'{|>]`,
	)
)

// TakeSecrets parts values into those that may be seen and those that look
// secret: both together, the plain ones over the secret ones, are what there
// was. A list that holds something secret goes whole, because Helm does not
// merge lists. Paths names what was taken, in order.
func TakeSecrets(values map[string]any) (plain, secret map[string]any, paths []string) {
	plain, secret = map[string]any{}, map[string]any{}
	takeFrom(values, plain, secret, "", false, &paths)
	return plain, secret, paths
}

func takeFrom(values, plain, secret map[string]any, path string, below bool, paths *[]string) {
	for _, key := range sortedKeys(values) {
		value, at := values[key], join(path, key)
		isSecret := isSecretKey(key, below) || key == "value" && isSecretVariable(values)
		switch inner := value.(type) {
		case map[string]any:
			open, hidden := map[string]any{}, map[string]any{}
			takeFrom(inner, open, hidden, at, isSecret, paths)
			if len(open) > 0 || len(hidden) == 0 {
				plain[key] = open
			}
			if len(hidden) > 0 {
				secret[key] = hidden
			}
		case []any:
			if found := secretsIn(inner, at, isSecret); len(found) > 0 {
				secret[key] = inner
				*paths = append(*paths, found...)
			} else {
				plain[key] = inner
			}
		default:
			if isSecretValue(value, isSecret) {
				secret[key] = value
				*paths = append(*paths, at)
			} else {
				plain[key] = value
			}
		}
	}
}

// secretsIn returns where a list holds something secret.
func secretsIn(list []any, path string, below bool) []string {
	var found []string
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch item := item.(type) {
		case map[string]any:
			takeFrom(item, map[string]any{}, map[string]any{}, at, below, &found)
		case []any:
			found = append(found, secretsIn(item, at, below)...)
		default:
			if isSecretValue(item, below) {
				found = append(found, at)
			}
		}
	}
	return found
}

func isSecretKey(key string, below bool) bool {
	if plainKey.MatchString(key) && !strings.EqualFold(key, "secretkey") {
		return false
	}
	return below || secretKey.MatchString(key)
}

// isSecretVariable tells whether a mapping is an environment variable, or the
// like, whose name says that its value is secret.
func isSecretVariable(values map[string]any) bool {
	name, _ := values["name"].(string)
	return secretKey.MatchString(name)
}

func isSecretValue(value any, named bool) bool {
	switch value := value.(type) {
	case string:
		return value != "" && (named || secretText.MatchString(value))
	case int64, float64:
		return named
	}
	return false
}
