// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// steady returns functions that take the place of those by which templates draw
// something at random, or look at the clock: two renderings differ in what versions
// and values change, and in nothing else. Passwords that a chart makes would be kept
// by it or change with every upgrade; neither is for a preview to show. Keys and
// certificates are texts that only look like some, which costs no time to make.
func steady() template.FuncMap {
	d := draws{}
	return template.FuncMap{
		"randAlphaNum": func(n int) (string, error) { return d.text(n, lower+upper+digits) },
		"randAlpha":    func(n int) (string, error) { return d.text(n, lower+upper) },
		"randNumeric":  func(n int) (string, error) { return d.text(n, digits) },
		"randAscii":    func(n int) (string, error) { return d.text(n, lower+upper+digits+"!#%+-=") },
		"randBytes": func(n int) (string, error) {
			text, err := d.text(n, lower)
			return base64.StdEncoding.EncodeToString([]byte(text)), err
		},
		"randInt": func(from, to int) int {
			if to <= from {
				return from
			}
			sum := d.sum(fmt.Sprint("int", from, to))
			return from + int(sum[0])%(to-from)
		},
		"shuffle": func(text string) string { return text },
		"uuidv4": func() string {
			sum := d.sum("uuid")
			sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
			return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
		},
		"now":      func() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"ago":      func(any) string { return "0s" },
		"bcrypt":   func(text string) string { return "$2a$10$" + hash(text)[:53] },
		"htpasswd": func(user, password string) string { return user + ":$2a$10$" + hash(password)[:53] },

		"genPrivateKey":            func(kind string) string { return d.pem(kind+" PRIVATE KEY", "") },
		"genCA":                    d.certificate,
		"genCAWithKey":             d.certificate,
		"genSelfSignedCert":        d.certificate,
		"genSelfSignedCertWithKey": d.certificate,
		"genSignedCert":            d.certificate,
		"genSignedCertWithKey":     d.certificate,
		"buildCustomCert": func(cert, key string) (keyPair, error) {
			c, errCert := base64.StdEncoding.DecodeString(cert)
			k, errKey := base64.StdEncoding.DecodeString(key)
			if errCert != nil || errKey != nil {
				return keyPair{}, fmt.Errorf("buildCustomCert needs a certificate and a key in base64")
			}
			return keyPair{Cert: string(c), Key: string(k)}, nil
		},
	}
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	// maxDraw is how many characters may be drawn at once.
	maxDraw = 1 << 20
)

// keyPair is a certificate and its key, as templates know it.
type keyPair struct{ Cert, Key string }

// draws counts what was drawn, by what was asked for: each draw is another one, and
// one more of a kind changes none of another kind.
type draws map[string]uint64

func (d draws) sum(what string) [sha256.Size]byte {
	d[what]++
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(what), d[what]))
}

func (d draws) text(n int, letters string) (string, error) {
	if n < 0 || n > maxDraw {
		return "", fmt.Errorf("%d characters cannot be drawn at random", n)
	}
	seed := d.sum(fmt.Sprint(n, letters))
	var text strings.Builder
	for text.Len() < n {
		for _, b := range seed[:min(len(seed), n-text.Len())] {
			text.WriteByte(letters[int(b)%len(letters)])
		}
		seed = sha256.Sum256(seed[:])
	}
	return text.String(), nil
}

func (d draws) pem(kind, what string) string {
	kind = strings.ToUpper(kind)
	sum := d.sum(kind + what)
	return "-----BEGIN " + kind + "-----\n" + base64.StdEncoding.EncodeToString(sum[:]) + "\n-----END " + kind + "-----\n"
}

func (d draws) certificate(name string, _ ...any) keyPair {
	return keyPair{Cert: d.pem("CERTIFICATE", name), Key: d.pem("RSA PRIVATE KEY", name)}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
