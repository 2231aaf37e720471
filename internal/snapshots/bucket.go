// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshots

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/strata-project/strata/internal/printable"
	"github.com/strata-project/strata/internal/reach"
	"github.com/strata-project/strata/internal/sshsig"
)

const (
	// maxObject is the longest object that S3 takes in one request.
	maxObject = 5 << 30
	// defaultRegion is that of a bucket of which nothing says another one.
	defaultRegion = "us-east-1"
	// connectTime is how long a bucket may take to accept a connection, and headerTime to begin
	// its answer.
	connectTime, headerTime = 30 * time.Second, 2 * time.Minute
	// listTime is how long a whole answer may take, and objectTime that with a snapshot.
	listTime, objectTime = 2 * time.Minute, time.Hour
	// maxListing is how long a page of a list may be, maxPages how many there are, and
	// maxHeader how long the headers of an answer are.
	maxListing, maxPages, maxHeader = 16 << 20, 100, 64 << 10
)

// BucketOptions say which bucket of S3 has snapshots.
type BucketOptions struct {
	// Endpoint is the URL of a server that speaks S3; empty for Amazon's of the region.
	Endpoint, Region string
	// Bucket, and Prefix of its keys.
	Bucket, Prefix string
	// Own returns the configuration that AWS's own programs find on this machine, for a client
	// of HTTP; nil has AccessKey and SecretKey be used, and nothing of the machine's. It is
	// given, so that a program that must not look there links nothing that could.
	Own                  func(ctx context.Context, client aws.HTTPClient) (aws.Config, error)
	AccessKey, SecretKey string
	// Dial connects; nil for any address, and through the proxy of the environment.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Bucket keeps snapshots in a bucket of S3.
type Bucket struct {
	client       *s3.Client
	name, prefix string
}

// OpenBucket returns a bucket, and asks nobody yet.
func OpenBucket(ctx context.Context, o BucketOptions) (*Bucket, error) {
	made := awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
		transport.DialContext, transport.ResponseHeaderTimeout = (&net.Dialer{Timeout: connectTime}).DialContext, headerTime
		transport.MaxResponseHeaderBytes = maxHeader
		if o.Dial != nil {
			transport.Proxy, transport.DialContext = nil, o.Dial
		}
	})
	loaded := aws.Config{Region: cmp.Or(o.Region, defaultRegion), Credentials: credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, "")}
	if o.Own != nil {
		var err error
		if loaded, err = o.Own(ctx, made); err != nil {
			return nil, fmt.Errorf("cannot read the configuration for S3: %w", err)
		}
		loaded.Region = cmp.Or(o.Region, loaded.Region, defaultRegion)
		if with, is := loaded.HTTPClient.(*awshttp.BuildableClient); is {
			made = with // with the authorities of the environment
		}
	}
	found := &Bucket{name: o.Bucket, prefix: strings.Trim(o.Prefix, "/")}
	// A server may not have what is signed for it sent to somebody else: no redirect is followed.
	loaded.HTTPClient = reach.Client(made.GetTransport(), reach.Bounds{Server: found.String(), Of: boundOf})
	// Servers other than Amazon's do not know its newer checksums; a snapshot has its own.
	loaded.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	loaded.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	found.client = s3.NewFromConfig(loaded, func(options *s3.Options) {
		if o.Endpoint != "" {
			options.BaseEndpoint, options.UsePathStyle = aws.String(o.Endpoint), true
		}
	})
	return found, nil
}

// boundOf bounds the answer of a bucket: a page of a list, what is known of a snapshot, a
// snapshot, or the few words that say that something was done.
func boundOf(req *http.Request) reach.Bound {
	isObject := strings.HasSuffix(req.URL.Path, plainEnding) || strings.HasSuffix(req.URL.Path, encryptedEnding)
	switch {
	case !isObject || req.Method == http.MethodDelete:
		return reach.Bound{Size: maxListing, Time: listTime}
	case req.Method == http.MethodGet:
		return reach.Bound{Size: maxObject, Time: objectTime}
	}
	return reach.Bound{Size: maxListing, Time: objectTime}
}

// String names the bucket with its prefix, as a URL.
func (b *Bucket) String() string { return "s3://" + path.Join(b.name, b.prefix) }

func (b *Bucket) key(name string) *string { return aws.String(path.Join(b.prefix, name)) }

// plainly says in a line why a bucket has refused something.
func (b *Bucket) plainly(doing string, err error) error {
	var said smithy.APIError
	var refused *net.OpError
	var large *reach.TooLargeError
	switch {
	case errors.As(err, &large):
		err = large
	case errors.As(err, &said):
		err = fmt.Errorf("%s: %s", said.ErrorCode(), printable.Line(said.ErrorMessage(), 200))
	case errors.As(err, &refused):
		err = refused
	default:
		err = errors.New(printable.Line(err.Error(), 300))
	}
	return fmt.Errorf("%s %s: %w", doing, b, err)
}

// Keep puts a snapshot from a folder into the bucket, what is known of it last, and deletes
// all of the cluster but the newest ones; 0 keeps all. It returns where it is.
func (b *Bucket) Keep(ctx context.Context, taken Snapshot, newest int) (Snapshot, error) {
	if taken.Size > maxObject {
		return Snapshot{}, fmt.Errorf("the snapshot has %d bytes, and a bucket takes %d: keep it in spec.snapshots.directory", taken.Size, int64(maxObject))
	}
	files := filesOf(taken.File)
	slices.Reverse(files) // the facts last: until then it is no snapshot
	for _, file := range files {
		if taken.SignedBy == "" && strings.HasSuffix(file, signatureEnding) {
			continue
		}
		if err := b.put(ctx, file); err != nil {
			return Snapshot{}, b.plainly("cannot keep the snapshot in", err)
		}
	}
	taken.File = b.String() + "/" + filepath.Base(taken.File)
	if newest <= 0 {
		return taken, nil
	}
	all, err := b.List(ctx, taken.Cluster)
	if err != nil {
		return taken, err
	}
	for _, old := range oldOnes(all, taken.ClusterID, newest, taken.SignedBy) {
		for _, file := range filesOf(old.File) {
			if _, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: b.key(path.Base(file))}); err != nil {
				return taken, b.plainly("cannot delete an old snapshot in", err)
			}
		}
	}
	return taken, nil
}

func (b *Bucket) put(ctx context.Context, file string) error {
	opened, err := os.Open(file) //nolint:gosec // it is in a folder of ours
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	_, err = b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: b.key(filepath.Base(file)), Body: opened})
	return err
}

// List returns the snapshots of clusters with a name, the newest first.
func (b *Bucket) List(ctx context.Context, cluster string) ([]Snapshot, error) {
	begins := *b.key(strings.ReplaceAll(cluster, "/", "-") + "-")
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &begins})
	var names []string
	signed := map[string]bool{}
	for count, read := 0, 0; pages.HasMorePages(); read++ {
		if read >= maxPages {
			return nil, fmt.Errorf("%s lists its objects on more than %d pages, which are not read", b, maxPages)
		}
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.plainly("cannot list the snapshots in", err)
		}
		if count += len(page.Contents); count > maxFiles {
			return nil, fmt.Errorf("%s has more than %d objects: give snapshots a prefix of their own", b, maxFiles)
		}
		for _, each := range page.Contents {
			if name := path.Base(aws.ToString(each.Key)); named.MatchString(name) && *b.key(name) == aws.ToString(each.Key) {
				names = append(names, name)
			} else if facts, is := strings.CutSuffix(name, signatureEnding); is && *b.key(name) == aws.ToString(each.Key) {
				signed[facts] = true
			}
		}
	}
	var found []Snapshot
	for _, name := range names {
		data, err := b.read(ctx, name, maxFacts)
		if err != nil {
			return nil, err
		}
		snapshot, err := readSigned(b.String()+"/"+name, data, func() ([]byte, error) {
			if !signed[name] {
				return nil, fs.ErrNotExist
			}
			return b.read(ctx, name+signatureEnding, sshsig.MaxSize)
		})
		if err == nil && snapshot.Cluster == cluster {
			found = append(found, snapshot)
		}
	}
	newestFirst(found)
	return found, nil
}

func (b *Bucket) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	into := &bytes.Buffer{}
	err := b.get(ctx, name, into, limit)
	return into.Bytes(), err
}

// get writes an object, which has a limit.
func (b *Bucket) get(ctx context.Context, name string, to io.Writer, limit int64) error {
	answer, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: b.key(name)})
	var said smithy.APIError
	if errors.As(err, &said) && (said.ErrorCode() == "NoSuchKey" || said.ErrorCode() == "NotFound") {
		return fmt.Errorf("there is no %s in %s: %w", name, b, fs.ErrNotExist)
	}
	if err != nil {
		return b.plainly("cannot read "+name+" of", err)
	}
	defer func() { _ = answer.Body.Close() }()
	n, err := io.Copy(to, io.LimitReader(answer.Body, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("it is longer than %d bytes", limit)
	}
	if err != nil {
		return b.plainly("cannot read "+name+" of", err)
	}
	return nil
}

// Fetch writes a snapshot of the bucket into a folder, and returns it there. One that is not
// taken is not fetched: what is in the bucket may be another one than was listed.
func (b *Bucket) Fetch(ctx context.Context, snapshot Snapshot, dir string, trust Trust) (Snapshot, error) {
	base := path.Base(snapshot.File)
	if facts := factsOf(base); snapshot.File != b.String()+"/"+base || facts == base+factsEnding || !named.MatchString(facts) {
		return Snapshot{}, fmt.Errorf("%s is no snapshot in %s", printable.Line(snapshot.File, 200), b)
	}
	fetch := func(name string, limit int64) error {
		err := write(filepath.Join(dir, ".fetching"), filepath.Join(dir, name), func(to io.Writer) error { return b.get(ctx, name, to, limit) })
		if err != nil {
			return fmt.Errorf("cannot fetch the snapshot: %w", err)
		}
		return nil
	}
	if err := fetch(factsOf(base), maxFacts); err != nil {
		return Snapshot{}, err
	}
	if err := fetch(factsOf(base)+signatureEnding, sshsig.MaxSize); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, err
	}
	found, err := Find(filepath.Join(dir, base))
	if err == nil {
		asked := found
		asked.File = snapshot.File // which is what somebody knows it by
		err = trust.Check(asked)
	}
	if err != nil {
		return Snapshot{}, err
	}
	return found, fetch(base, min(found.Size, maxObject))
}

// IsInBucket tells whether something names an object of S3.
func IsInBucket(file string) bool {
	parsed, err := url.Parse(file)
	return err == nil && parsed.Scheme == "s3"
}
