// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// socket is where containerd listens.
const socket = "/run/containerd/containerd.sock"

// containers is a runtime that is ready and runs nothing.
type containers struct {
	cri.UnimplementedRuntimeServiceServer
}

// images has every image.
type images struct {
	cri.UnimplementedImageServiceServer
}

func serveRuntime(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	_ = os.Remove(socket)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, containers{})
	cri.RegisterImageServiceServer(server, images{})
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	return server.Serve(listener)
}

func (containers) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: version("LAB_CONTAINERD", "v2.2.0"), RuntimeApiVersion: "v1"}, nil
}

func (containers) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true},
	}}}, nil
}

func (containers) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_SYSTEMD}}, nil
}

func (containers) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	files, err := filepath.Glob(staticFile("*"))
	if err != nil {
		return nil, err
	}
	list := &cri.ListPodSandboxResponse{}
	for _, file := range files {
		list.Items = append(list.Items, &cri.PodSandbox{Id: strings.TrimPrefix(file, staticFile(""))})
	}
	return list, nil
}

func (containers) StopPodSandbox(_ context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	left := &static{}
	left.readBack(request.GetPodSandboxId())
	left.end()
	return &cri.StopPodSandboxResponse{}, nil
}

func (containers) RemovePodSandbox(_ context.Context, request *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	return &cri.RemovePodSandboxResponse{}, os.Remove(staticFile(request.GetPodSandboxId()))
}

func (images) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	name := request.GetImage().GetImage()
	return &cri.ImageStatusResponse{Image: &cri.Image{Id: name, RepoTags: []string{name}}}, nil
}

func (images) PullImage(_ context.Context, request *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	return &cri.PullImageResponse{ImageRef: request.GetImage().GetImage()}, nil
}

func (images) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	return &cri.ListImagesResponse{}, nil
}

func (images) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{}, nil
}
