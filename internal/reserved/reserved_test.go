// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/strata-project/strata/api/v1alpha1"
	"github.com/strata-project/strata/internal/kinds"
	"github.com/strata-project/strata/internal/objects"
)

var update = flag.Bool("update", false, "write docs/reserved.md")

const root = "../.."

// constant is a constant of the source that holds a word of Strata's.
type constant struct{ name, value, at string }

// constantsIn returns the constants of a package whose names end as those of words do.
func constantsIn(t *testing.T, folder string) []constant {
	t.Helper()
	return constantsNamed(t, folder, `(Label|Annotation|Finalizer)$`)
}

// constantsNamed returns the constants of a package that hold texts, and whose names are as an
// expression says.
func constantsNamed(t *testing.T, folder, names string) []constant {
	t.Helper()
	isNamed := regexp.MustCompile(names)
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	var found []constant
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, name := range spec.Names {
				literal, is := spec.Values[i].(*ast.BasicLit)
				if is && literal.Kind == token.STRING && isNamed.MatchString(name.Name) {
					value, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					found = append(found, constant{name.Name, value, file})
				}
			}
			return true
		})
	}
	return found
}

// sortOf tells the sort of a word from the name of its constant.
func sortOf(name string) Sort {
	switch {
	case strings.HasSuffix(name, "Label"):
		return Label
	case strings.HasSuffix(name, "Annotation"):
		return Annotation
	}
	return Finalizer
}

// unknown returns the constants that are none of the words.
func unknown(constants []constant, known []Word) []string {
	var missing []string
	for _, c := range constants {
		if !slices.ContainsFunc(known, func(word Word) bool { return word.Key == c.value && word.Sort == sortOf(c.name) }) {
			missing = append(missing, c.name)
		}
	}
	return missing
}

// A label, an annotation or a finalizer that comes with the API is in the registry, and so
// judged: by that test a word that is left out of it is found.
func TestEveryWordOfTheAPIIsKnown(t *testing.T) {
	constants := constantsIn(t, "api/v1alpha1")
	if len(constants) < 60 {
		t.Fatalf("only %d constants were found", len(constants))
	}
	if missing := unknown(constants, Words()); len(missing) > 0 {
		t.Errorf("the registry lacks %s: add them to words.go, and say whether a directory may say them", strings.Join(missing, ", "))
	}
	for i, word := range Words() {
		if word.Sort == Type {
			continue
		}
		if missing := unknown(constants, slices.Delete(Words(), i, i+1)); len(missing) != 1 {
			t.Errorf("%s is left out, and the test finds %v", word.Key, missing)
		}
	}
}

// noAct has the annotations of people that are no acts, with the reason: what Flux does to
// one that git lacks is what its object's owner wants, or changes nothing.
var noAct = map[string]string{
	v1alpha1.ReconcileRequestAnnotation: "a look follows at once, and the status keeps that there was one",
	v1alpha1.ShareWithAnnotation:        "is on ConfigMaps and Secrets of others, which Strata does not write: the commands that it offers write as a manager that Flux leaves alone",
	v1alpha1.UpdateVersionAnnotation:    "is said by directories alone",
	v1alpha1.PruneAnnotation:            "is on objects of layers, which Strata applies: it leaves annotations of others there",
	v1alpha1.FluxPruneAnnotation:        "as above",
	v1alpha1.FluxReconcileAnnotation:    "as above",
	v1alpha1.FluxSSAAnnotation:          "as above",
	v1alpha1.FluxForceAnnotation:        "as above",
}

// An annotation that people set is an act, which Flux does not undo and of which it is said
// whether git is a place for it, or it is said here why it is none.
func TestEveryWordOfPeopleIsAnActOrNone(t *testing.T) {
	judged := []v1alpha1.ActInGit{v1alpha1.ActStands, v1alpha1.ActNames, v1alpha1.ActIsUsedUp, v1alpha1.ActOpens}
	acts := map[string]bool{}
	for _, act := range v1alpha1.Acts() {
		if acts[act.Annotation] || !slices.Contains(judged, act.InGit) || len(act.On) == 0 {
			t.Errorf("%+v is there twice, on no kind, or not judged", act)
		}
		acts[act.Annotation] = true
		if !slices.ContainsFunc(Words(), func(word Word) bool {
			return word.Key == act.Annotation && word.Sort == Annotation && word.By == People
		}) {
			t.Errorf("%s is an act, and no word of people", act.Annotation)
		}
	}
	for _, word := range Words() {
		if word.By == People && acts[word.Key] == (noAct[word.Key] != "") {
			t.Errorf("%s is said by people: add it to v1alpha1.Acts, or say here why it is no act, and not both", word.Key)
		}
	}
}

// A word of Strata's domain stands in the API and nowhere else: what is written elsewhere
// would be in no class.
func TestWordsStandInTheAPIAlone(t *testing.T) {
	word := regexp.MustCompile(`^"(kraan|([a-z-]+\.)?kraan\.io)/[^" %]+"$`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "test", "hack", "examples", "node_modules"}, name):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasPrefix(path, filepath.Join(root, "api")):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING && word.MatchString(literal.Value) {
				t.Errorf("%s has %s: make it a constant of the API, and enter it in words.go", path, literal.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A directory says what is people's to say. It says nothing else of Strata's domain, also
// where this version does not know the word.
func TestMaySay(t *testing.T) {
	for _, word := range Words() {
		if word.Sort != Type && MaySay(word.Sort, word.Key) != (word.By == People) {
			t.Errorf("%s %s may be said: %t", word.Sort, word.Key, MaySay(word.Sort, word.Key))
		}
	}
	for name, tc := range map[string]struct {
		reason string
		sort   Sort
		key    string
		want   bool
	}{
		"of a later version":        {"what it decides is not known", Annotation, "kraan.io/comes-later", false},
		"of a domain below":         {"the domain is Strata's", Label, "new.kraan.io/name", false},
		"an annotation as a label":  {"a label of that name means nothing, and may come to", Label, v1alpha1.HoldAnnotation, false},
		"a finalizer of later":      {"nobody would take it off", Finalizer, "kraan.io/new", false},
		"a label of helm":           {"it says which release has made an object", Label, ReleaseLabel, false},
		"somebody's":                {"it is none of Strata's", Label, "team", true},
		"somebody's domain":         {"it only ends like Strata's", Annotation, "notkraan.io/claim", true},
		"a domain that begins so":   {"it only begins like Strata's", Annotation, "kraan.io.example.com/claim", true},
		"somebody's finalizer":      {"its controller takes it off", Finalizer, "example.com/keep", true},
		"an annotation of Flux":     {"it is how authors speak to Flux", Annotation, v1alpha1.FluxPruneAnnotation, true},
		"an annotation of Kraan":    {"it is how authors speak to Kraan", Annotation, v1alpha1.UpdateVersionAnnotation, true},
		"a prefix without a domain": {"Kraan's own", Label, "kraan/anything", false},
	} {
		if got := MaySay(tc.sort, tc.key); got != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}

func secret(namespace, name string) objects.ID {
	return objects.ID{Kind: "Secret", Namespace: namespace, Name: name}
}

func TestNames(t *testing.T) {
	of := func(group, kind, namespace, name string) objects.ID {
		return objects.ID{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	for name, tc := range map[string]struct {
		reason string
		id     objects.ID
		want   string
	}{
		"a record of a claim":         {"it says as whom is acted", of("apps", "ControllerRevision", "strata-system", "claim.4f3c.9"), KeptRecord},
		"a record of a provider":      {"it says what is run", of("apps", "ControllerRevision", "strata-system", "provider.4f3c.1"), KeptRecord},
		"of somebody's StatefulSet":   {"in another namespace", of("apps", "ControllerRevision", "shop", "claim.4f3c.9"), ""},
		"of another name":             {"a StatefulSet's beside the controller", of("apps", "ControllerRevision", "strata-system", "db-6d5f"), ""},
		"the Lease of hosts":          {"whoever has it leads", of("coordination.k8s.io", "Lease", "strata-system", HostsLease), KeptLease},
		"the Lease on hosts":          {"whoever has it works there", of("coordination.k8s.io", "Lease", "kube-system", HostsLease).On("fleet/prod"), KeptLease},
		"that name elsewhere":         {"an ordinary Lease", of("coordination.k8s.io", "Lease", "shop", HostsLease), ""},
		"the manifest of hosts":       {"what was last applied", of("", "ConfigMap", "kube-system", SavedName).On("fleet/prod"), KeptHosts},
		"how hosts encrypt":           {"what all Secrets are written with", of("", "ConfigMap", "kube-system", EncryptionName), KeptHosts},
		"a kubeconfig of Cluster API": {"it is an ordinary name without an owner", secret("fleet", "north-kubeconfig"), ""},
		"a binding of others":         {"the same", secret("shop", "db-binding"), ""},
		"passwords of others":         {"the same", secret("shop", "db-passwords"), ""},
		"a plug-in of others":         {"the same", of("apps", "Deployment", "shop", "plugin-manager"), ""},
	} {
		if got := Name(tc.id, "strata-system"); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// A name that is made from an owner is kept for that owner, in its namespace, here.
func TestOwners(t *testing.T) {
	own := func(kind, namespace, name string) objects.ID {
		return objects.ID{Group: v1alpha1.GroupVersion.Group, Kind: kind, Namespace: namespace, Name: name}
	}
	plugin := PluginName("mysql.example", "sha256:abc")
	for name, tc := range map[string]struct {
		id   objects.ID
		want []Owner
	}{
		"kubeconfig":    {secret("fleet", HostKubeConfigName("edge")), []Owner{{own("HostCluster", "fleet", "edge"), KeptForHosts}}},
		"passwords":     {secret("shop", PasswordsName("db")), []Owner{{own("CapabilityClaim", "shop", "db"), KeptForClaim}}},
		"binding":       {secret("shop", kinds.BindingNameOf("db")), []Owner{{own("CapabilityClaim", "shop", "db"), KeptForClaim}}},
		"plug-in":       {secret("databases", plugin), []Owner{{own("CapabilityProvider", "", ""), KeptForPlugin}}},
		"its Service":   {objects.ID{Kind: "Service", Namespace: "databases", Name: plugin}, []Owner{{own("CapabilityProvider", "", ""), KeptForPlugin}}},
		"elsewhere":     {secret("fleet", HostKubeConfigName("edge")).On("fleet/prod"), nil},
		"another kind":  {objects.ID{Kind: "ConfigMap", Namespace: "fleet", Name: "edge-kubeconfig"}, nil},
		"ordinary name": {secret("fleet", "edge"), nil},
	} {
		if got := Owners(tc.id); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// What has a word of an owner is kept whatever its name is, where it is live. A directory
// that says the word is not believed, and takes nothing.
func TestWordsOfOwnersKeepWhatIsLive(t *testing.T) {
	for _, word := range Words() {
		if word.Keeps == "" {
			continue
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{}}}
		switch word.Sort {
		case Label:
			obj.SetLabels(map[string]string{word.Key: ""})
		case Annotation:
			obj.SetAnnotations(map[string]string{word.Key: ""})
		case Finalizer:
			obj.SetFinalizers([]string{word.Key})
		case Type:
			obj.Object["type"] = word.Key
		}
		gk := schema.GroupKind{Kind: "Secret"}
		if got := Live(gk, obj); got != word.Keeps {
			t.Errorf("a live object with %s is %q, want %q", word.Key, got, word.Keeps)
		}
		want := ""
		if word.Refused {
			want = word.Keeps
		}
		if got := Written(gk, obj); got != want {
			t.Errorf("a written object with %s is %q, want %q", word.Key, got, want)
		}
	}
}

// Nothing that the examples list is kept: an ordinary name stays one.
func TestExamplesListNothingThatIsKept(t *testing.T) {
	count := 0
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, obj := range parsed(t, data) {
			count++
			id := objects.IDOf(obj)
			if why := Name(id, "strata-system") + Written(id.GroupKind(), obj); why != "" {
				t.Errorf("%s: %s is %s", path, id, why)
			}
		}
		return nil
	})
	if err != nil || count < 40 {
		t.Fatalf("%d objects were looked at: %v", count, err)
	}
}

// The table of docs/reserved.md is the registry.
func TestDocumentIsCurrent(t *testing.T) {
	file, text := filepath.Join(root, "docs", "reserved.md"), document()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("docs/reserved.md is not current (%v): go test ./internal/reserved -update", err)
	}
}

func document() string {
	text := &strings.Builder{}
	text.WriteString(`# Reserved names and words

Strata keeps some objects for itself: no layer may write, adopt or delete them. The first table lists them by their names. A word is a label, an annotation, a finalizer or a type: the second table has those that Strata alone sets, and the third those that you may set. What the chart makes for the controllers is reserved, too, by its names. The tables are made from ` + "`internal/reserved`" + `, the registry that the controllers ask.

## Objects

Capital letters stand for the name of an object, and ` + "`…`" + ` for any text. A name with an owner is reserved only while the owner exists: ` + "`edge-kubeconfig`" + ` is an ordinary name where there is no HostCluster ` + "`edge`" + ` in its namespace. A layer that had an object before its name was reserved keeps the object.

| kinds | name | namespace | owner | what it is | who reads it |
|---|---|---|---|---|---|
`)
	for _, entry := range Entries() {
		kindNames := make([]string, 0, len(entry.Kinds))
		for _, kind := range entry.Kinds {
			kindNames = append(kindNames, kind.Kind)
		}
		namespace, owner := entry.Namespace, entry.Owner
		switch {
		case entry.Controller:
			namespace = "the controller's"
		case namespace == "":
			namespace = "any"
		}
		if owner == "" {
			owner = "-"
		}
		fmt.Fprintf(text, "| %s | `%s` | %s | %s | %s | %s |\n", strings.Join(kindNames, ", "), entry.Name, namespace, owner, entry.Keeps, entry.Readers)
	}
	text.WriteString(`
## Words that Strata alone sets

The last column says what happens where an object of a directory has the word: it is taken off, and the object is deployed without it, or the object is refused with ` + "`ReservedObject`" + `. Every other label, annotation and finalizer of ` + "`kraan.io`" + ` and its subdomains is taken off, too, unless the third table has it. Where the fourth column is filled, no layer may adopt or delete an object on the cluster that has the word, and the column says what the object counts as.

| word | sort | set on | the object counts as | in a directory |
|---|---|---|---|---|
`)
	for _, word := range Words() {
		if word.By != Controllers {
			continue
		}
		keeps, said := word.Keeps, "taken off"
		if keeps == "" {
			keeps = "-"
		}
		if word.Refused {
			said = "refused"
		}
		fmt.Fprintf(text, "| `%s` | %s | %s | %s | %s |\n", word.Key, word.Sort, word.On, keeps, said)
	}
	text.WriteString(`
## Words that people set

You may set these by hand, or in a directory.

| word | set on |
|---|---|
`)
	for _, word := range Words() {
		if word.By == People {
			fmt.Fprintf(text, "| `%s` | %s |\n", word.Key, word.On)
		}
	}
	return text.String()
}

// parsed returns the objects of a file; what is none is left out.
func parsed(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(string(data), -1) {
		fields := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &fields); err != nil {
			continue // a template
		}
		if obj := (&unstructured.Unstructured{Object: fields}); obj.GetKind() != "" && obj.GetName() != "" {
			found = append(found, obj)
		}
	}
	return found
}
