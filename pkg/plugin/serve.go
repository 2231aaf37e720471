// Copyright The Strata Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/strata-project/strata/api/plugin/v1"
)

// Handshake tells a program that Strata has started it: started by somebody else it says so, and
// ends.
var Handshake = goplugin.HandshakeConfig{
	ProtocolVersion: 1, MagicCookieKey: "STRATA_CAPABILITY_PLUGIN", MagicCookieValue: "strata.plugin.v1.CapabilityPlugin",
}

// ServiceName is the name by which the program's service is known in the handshake.
const ServiceName = "capabilities"

// MaxMessage bounds a message of either side, in bytes.
const MaxMessage = 4 << 20

// Serve serves a plug-in until whoever has started the program ends it: over a socket where
// Strata has started it, and over the network where ListenVariable is set, as it is in a
// Deployment of Strata's.
func Serve(plugin Plugin) {
	//nolint:forbidigo // it is main's place that this has
	if address, certificates := os.Getenv(ListenVariable), os.Getenv(CertificatesVariable); address != "" {
		if err := listen(plugin, address, certificates); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: Handshake,
		Plugins:         goplugin.PluginSet{ServiceName: served{plugin: plugin}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, serverOptions()...)...)
		},
	})
}

func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.ChainUnaryInterceptor(recovering)}
}

// served is a plug-in as go-plugin serves it.
type served struct {
	goplugin.NetRPCUnsupportedPlugin
	plugin Plugin
}

// GRPCServer registers the service.
func (s served) GRPCServer(_ *goplugin.GRPCBroker, server *grpc.Server) error {
	pluginv1.RegisterCapabilityPluginServer(server, &service{plugin: s.plugin})
	return nil
}

// GRPCClient is for the other side.
func (s served) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a plug-in asks nobody")
}

type service struct {
	pluginv1.UnimplementedCapabilityPluginServer
	plugin Plugin
}

// Describe says which capabilities there are.
func (s *service) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return describe(s.plugin.Describe()), nil
}

// recovering has a panic be the answer to the question at hand, and not the end of all others.
func recovering(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = status.Error(codes.Internal, fmt.Sprintf("panic: %v", panicked))
		}
	}()
	return next(ctx, request)
}

// Health says what keeps the plug-in from its work, where it knows.
func (s *service) Health(context.Context, *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	response := &pluginv1.HealthResponse{}
	if checker, is := s.plugin.(HealthChecker); is {
		if err := checker.Health(); err != nil {
			response.Problem = err.Error()
		}
	}
	return response, nil
}

// Validate checks parameters, where the plug-in does.
func (s *service) Validate(_ context.Context, in *pluginv1.ValidateRequest) (*pluginv1.ValidateResponse, error) {
	validator, is := s.plugin.(Validator)
	if !is {
		return &pluginv1.ValidateResponse{}, nil
	}
	request, err := requestOf(in.GetClaim(), in.GetParameters(), nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	response := &pluginv1.ValidateResponse{}
	for _, problem := range validator.Validate(request) {
		response.Problems = append(response.Problems, &pluginv1.Problem{Field: problem.Field, Message: problem.Message})
	}
	return response, nil
}

// Plan says of what an instance is made.
func (s *service) Plan(_ context.Context, in *pluginv1.PlanRequest) (*pluginv1.PlanResponse, error) {
	request, err := requestOf(in.GetClaim(), in.GetParameters(), in.GetObjects())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	plan, err := s.plugin.Plan(request)
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	response, err := planned(plan)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	_, response.Ensure = s.plugin.(Outsider)
	return response, nil
}

// Ensure hands out what is outside of any cluster.
func (s *service) Ensure(ctx context.Context, in *pluginv1.EnsureRequest) (*pluginv1.EnsureResponse, error) {
	outsider, is := s.plugin.(Outsider)
	if !is {
		return nil, status.Error(codes.Unimplemented, "it hands out nothing outside of clusters")
	}
	request, err := requestOf(in.GetClaim(), in.GetParameters(), nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ensured, err := outsider.Ensure(ctx, EnsureRequest{
		Claim: request.Claim, Parameters: request.Parameters, Passwords: in.GetPasswords(), Previous: in.GetPrevious(),
	})
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pluginv1.EnsureResponse{Waits: ensured.Waits, Publishes: published(ensured.Publishes)}, nil
}

// Release takes back what was handed out.
func (s *service) Release(ctx context.Context, in *pluginv1.ReleaseRequest) (*pluginv1.ReleaseResponse, error) {
	outsider, is := s.plugin.(Outsider)
	if !is {
		return &pluginv1.ReleaseResponse{}, nil
	}
	request, err := requestOf(in.GetClaim(), in.GetParameters(), nil)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	released := ReleaseRequest{Claim: request.Claim, Parameters: request.Parameters, DeleteData: in.GetDeleteData()}
	if err := outsider.Release(ctx, released); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pluginv1.ReleaseResponse{}, nil
}
