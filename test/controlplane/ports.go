// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken below the range from which the kernel picks the local ports
// of outgoing connections, so that a stopped component finds its port free.
const (
	firstPort = 12000
	lastPort  = 30000
)

// port is a free port of the loopback interface, reserved against the other
// users of this package, in this process and in others, until it is released.
type port struct {
	number int
	lock   *os.File
}

func (p port) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

func (p port) release() { _ = p.lock.Close() }

// reservePort finds a free port. The reservation is a locked file, which the
// kernel unlocks when this process dies.
func reservePort() (port, error) {
	dir := filepath.Join(os.TempDir(), "strata-ports-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return port{}, err
	}
	for range 1000 {
		number := firstPort + rand.IntN(lastPort-firstPort)
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(number)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return port{}, err
		}
		p := port{number: number, lock: lock}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			p.release()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue
			}
			return port{}, fmt.Errorf("cannot lock %s: %w", lock.Name(), err)
		}
		listener, err := net.Listen("tcp", p.address())
		if err != nil {
			p.release()
			continue
		}
		_ = listener.Close()
		return p, nil
	}
	return port{}, errors.New("no free port on loopback")
}
