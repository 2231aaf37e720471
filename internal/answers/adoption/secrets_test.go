// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func parse(t interface{ Fatal(...any) }, text string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		var fields map[string]any
		decoder := json.NewDecoder(strings.NewReader(string(data)))
		decoder.UseNumber()
		if err = decoder.Decode(&fields); err == nil {
			obj.Object = fields
			return obj
		}
	}
	t.Fatal(err, text)
	return nil
}

func valuesOf(t testing.TB, text string) map[string]any {
	t.Helper()
	values, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	read, err := readValues(values)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestTakeSecrets(t *testing.T) {
	for _, test := range []struct{ values, plain, secret, paths string }{
		{"a: 1", "a: 1", "{}", ""},
		{"auth: {username: me, password: x}", "auth: {username: me}", "auth: {password: x}", "auth.password"},
		{"adminPassword: 1234\npassword: ''\ntoken: null", "password: ''\ntoken: null", "adminPassword: 1234", "adminPassword"},
		{"existingSecret: x\nsecretName: y\nauth: {existingSecretPasswordKey: z, secretKeyRef: {name: a}}", "existingSecret: x\nsecretName: y\nauth: {existingSecretPasswordKey: z, secretKeyRef: {name: a}}", "{}", ""},
		{"secrets: {a: {b: x, on: true}}", "secrets: {a: {on: true}}", "secrets: {a: {b: x}}", "secrets.a.b"},
		{"secretKey: x\napiKey: k\nAWS_SECRET_ACCESS_KEY: z", "{}", "secretKey: x\napiKey: k\nAWS_SECRET_ACCESS_KEY: z", "AWS_SECRET_ACCESS_KEY apiKey secretKey"},
		{"env: [{name: LEVEL, value: info}, {name: DB_PASSWORD, value: x}]", "{}", "env: [{name: LEVEL, value: info}, {name: DB_PASSWORD, value: x}]", "env[1].value"},
		{"env: [{name: LEVEL, value: info}]", "env: [{name: LEVEL, value: info}]", "{}", ""},
		{"args: [[--a], [--password=x]]", "{}", "args: [[--a], [--password=x]]", "args[1][0]"},
		{"url: postgres://me:x@db/shop", "{}", "url: postgres://me:x@db/shop", "url"},
		{"url: https://db:8080/shop", "url: https://db:8080/shop", "{}", ""},
		{"file: |\n  -----BEGIN RSA PRIVATE KEY-----\n", "{}", "file: |\n  -----BEGIN RSA PRIVATE KEY-----\n", "file"},
		{"config: |\n  user: me\n  password: x\n", "{}", "config: |\n  user: me\n  password: x\n", "config"},
		{"tokens: []\nempty: {}", "tokens: []\nempty: {}", "{}", ""},
		{"imagePullSecrets: [{name: regcred}]", "imagePullSecrets: [{name: regcred}]", "{}", ""},
	} {
		plain, secret, paths := TakeSecrets(valuesOf(t, test.values))
		if diff := cmp.Diff(valuesOf(t, test.plain), plain); diff != "" {
			t.Errorf("%s: plain -want +got:\n%s", test.values, diff)
		}
		if diff := cmp.Diff(valuesOf(t, test.secret), secret); diff != "" {
			t.Errorf("%s: secret -want +got:\n%s", test.values, diff)
		}
		if got := strings.Join(paths, " "); got != test.paths {
			t.Errorf("%s: %s", test.values, got)
		}
	}
}

// merged is what Helm makes of two layers of values: mappings are merged, anything
// else is replaced.
func merged(below, above map[string]any) map[string]any {
	result := map[string]any{}
	for key, value := range below {
		result[key] = value
	}
	for key, value := range above {
		inner, is := value.(map[string]any)
		under, was := result[key].(map[string]any)
		if is && was {
			value = merged(under, inner)
		}
		result[key] = value
	}
	return result
}

func anyValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.SampledFrom([]string{"", "x", "a://b:c@d", "password: y"}).Draw(t, "text")
		case 2:
			return rapid.Int64().Draw(t, "number")
		case 3:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			return rapid.SliceOfN(anyValue(depth-1), 0, 3).Draw(t, "list")
		default:
			return rapid.MapOfN(rapid.SampledFrom([]string{"a", "name", "value", "password", "secrets", "secretName"}), anyValue(depth-1), 0, 4).Draw(t, "map")
		}
	})
}

// Both parts together are always what there was, and nothing secret is left.
func TestNoValueIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.SampledFrom([]string{"a", "token", "env", "name", "value"}), anyValue(3)).Draw(t, "values")
		before := fmt.Sprint(values)
		plain, secret, paths := TakeSecrets(values)
		if diff := cmp.Diff(values, merged(secret, plain)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		if (len(paths) == 0) != (len(secret) == 0) {
			t.Fatalf("%v are said to be secret, and %v is", paths, secret)
		}
		if before != fmt.Sprint(values) {
			t.Fatal("the values were changed")
		}
		if _, again, _ := TakeSecrets(plain); len(again) > 0 {
			t.Fatalf("%v is left", again)
		}
	})
}
