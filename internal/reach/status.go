// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/strata-project/strata/internal/printable"
)

// maxRetryAfter is the longest pause in seconds that a cluster may ask for. The caller
// asks no more after an answer without one.
const maxRetryAfter = 2

// How much of what a cluster says of an error is told, in bytes.
const (
	maxErrorText = 4 << 10
	maxErrorName = 256
	maxCauses    = 32
)

// protobufMark begins every answer in protobuf.
var protobufMark = []byte("k8s\x00")

// shortened returns an answer that is an error with no more text than anybody
// reads, and with nothing in it that is not printable. It reads the answer.
func shortened(answer *http.Response) (*http.Response, error) {
	data, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	status := &metav1.Status{}
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	var isStatus bool
	if wrapped, is := bytes.CutPrefix(data, protobufMark); is && mediaType == runtime.ContentTypeProtobuf {
		envelope := &runtime.Unknown{}
		isStatus = envelope.Unmarshal(wrapped) == nil && envelope.Kind == "Status" && status.Unmarshal(envelope.Raw) == nil
	} else {
		isStatus = json.Unmarshal(data, status) == nil && status.Kind == "Status"
	}
	if isStatus {
		shorten(status)
		if data, err = json.Marshal(status); err != nil {
			return nil, err
		}
		answer.Header.Set("Content-Type", runtime.ContentTypeJSON)
	} else {
		data = []byte(printable.Line(string(data), maxErrorText))
		answer.Header.Set("Content-Type", "text/plain")
	}
	answer.Header.Set("Content-Length", strconv.Itoa(len(data)))
	answer.ContentLength = int64(len(data))
	answer.Body = io.NopCloser(bytes.NewReader(data))
	return answer, nil
}

// shorten cuts what a status says.
func shorten(status *metav1.Status) {
	status.APIVersion, status.Kind = "v1", "Status"
	status.ListMeta = metav1.ListMeta{}
	status.Message = printable.Line(status.Message, maxErrorText)
	status.Reason = metav1.StatusReason(printable.Line(string(status.Reason), maxErrorName))
	status.Status = printable.Line(status.Status, maxErrorName)
	details := status.Details
	if details == nil {
		return
	}
	for _, text := range []*string{&details.Name, &details.Group, &details.Kind} {
		*text = printable.Line(*text, maxErrorName)
	}
	details.UID = types.UID(printable.Line(string(details.UID), maxErrorName))
	if details.RetryAfterSeconds < 0 || details.RetryAfterSeconds > maxRetryAfter {
		details.RetryAfterSeconds = 0
	}
	details.Causes = details.Causes[:min(len(details.Causes), maxCauses)]
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(printable.Line(string(cause.Type), maxErrorName))
		cause.Message = printable.Line(cause.Message, maxErrorText)
		cause.Field = printable.Line(cause.Field, maxErrorName)
	}
}
